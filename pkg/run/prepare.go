// Package run executes a manifest: it plans the jobs, hands them to their
// target, watches them, collects what they left, judges it and reports. Every
// step leaves its result in the run directory, so that another process can go on
// where this one ended.
package run

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"assay/deploy"
	"assay/pkg/envfile"
	"assay/pkg/environ"
	"assay/pkg/exitcode"
	"assay/pkg/manifest"
	"assay/pkg/plan"
	"assay/pkg/rundir"
)

// Input is what a run is made from.
type Input struct {
	ManifestPath string // where the manifest was read; relative paths in it start there
	Manifest     []byte // its JSON
	Env          []string
	Bare         bool // ignore images, run on the host
	Strict       bool
	KeepAlive    bool // containers stay when their ranks have ended
	Timeout      *int // seconds for every job, when given
	LogLimit     int64

	Nodes           []string           // that the run uses, by name; empty: that is left to the manifest
	Pairs           string             // which links tests of scope pair are about
	Hardware        string             // key of the file of thresholds
	MaxNodes        manifest.NodeLimit // under load at the same time; 0: as the suite says
	DurationSeconds int                // of tests that have one; 0: as they say
	Baseline        bool               // measure, gate nothing
}

// Prepared is a manifest that can be run.
type Prepared struct {
	Input
	Parsed   *manifest.Manifest
	Suite    *manifest.Suite // nil: there is none
	Target   string
	Jobs     []plan.Job
	Warnings []string
}

// Prepare plans the jobs of a manifest and reads their env_files, so that what
// is wrong with either is known before anything runs.
func Prepare(ctx context.Context, in Input) (*Prepared, error) {
	m, err := manifest.Decode(in.Manifest)
	if err != nil {
		return nil, exitcode.With(exitcode.Invalid, fmt.Errorf("%s: %w", in.ManifestPath, err))
	}
	dir, err := filepath.Abs(filepath.Dir(in.ManifestPath))
	if err != nil {
		return nil, err
	}
	jobs, warnings, err := plan.Jobs(m, plan.Options{
		ManifestDir: dir, Bare: in.Bare, Strict: in.Strict, KeepAlive: in.KeepAlive, TimeoutSeconds: in.Timeout,
		Nodes: in.Nodes, Pairs: in.Pairs, Hardware: in.Hardware, MaxNodes: in.MaxNodes, DurationSeconds: in.DurationSeconds, Baseline: in.Baseline,
	})
	if err != nil {
		return nil, exitcode.With(exitcode.Invalid, fmt.Errorf("%s: %w", in.ManifestPath, err))
	}
	suite, err := m.ParseSuite()
	if err != nil {
		return nil, exitcode.With(exitcode.Invalid, fmt.Errorf("%s: %w", in.ManifestPath, err))
	}
	p := &Prepared{Input: in, Parsed: m, Suite: suite, Jobs: jobs, Warnings: warnings, Target: m.Deployment.TargetName()}
	return p, p.resolveModelDirs(ctx, modelRoot(dir, m.ModelDir))
}

// resolveModelDirs finds MODEL_DIR for each job: from its env_vars, its env_file
// or the environment, in this order; else the models root that the manifest names,
// which is its own directory unless it says otherwise.
func (p *Prepared) resolveModelDirs(ctx context.Context, root string) error {
	loaded := map[plan.EnvFile]envfile.Vars{}
	for i := range p.Jobs {
		job := &p.Jobs[i]
		var fromFile string
		if job.EnvFile != nil {
			vars, done := loaded[*job.EnvFile]
			if !done {
				var err error
				if vars, err = loadEnvFile(ctx, *job.EnvFile, p.Env); err != nil {
					return err
				}
				loaded[*job.EnvFile] = vars
			}
			fromFile, _ = vars.Lookup("MODEL_DIR")
		}
		dir := firstNonEmpty(job.Env["MODEL_DIR"], fromFile, environ.Get(p.Env, "MODEL_DIR"))
		job.ModelDir = modelRoot(root, dir)
	}
	return nil
}

// modelRoot is the models root of a manifest that lies in dir.
func modelRoot(dir, root string) string {
	if filepath.IsAbs(root) {
		return filepath.Clean(root)
	}
	return filepath.Join(dir, root)
}

func loadEnvFile(ctx context.Context, f plan.EnvFile, env []string) (envfile.Vars, error) {
	return envfile.Load(ctx, envfile.Options{
		Path: f.Path, Format: f.Format, Base: env, Timeout: time.Duration(f.TimeoutSeconds) * time.Second,
	})
}

func firstNonEmpty(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

// Check asks the target what would fail, when it can tell. notice is told what it
// warns about.
func (p *Prepared) Check(ctx context.Context, t deploy.Target, runs string, notice func(string)) error {
	c, ok := t.(deploy.Checker)
	if !ok {
		return nil
	}
	runs, err := filepath.Abs(runs)
	if err != nil {
		return err
	}
	code := exitcode.Invalid
	var problems []string
	for _, f := range c.Check(ctx, p.CheckRequest(runs)) {
		switch f.State {
		case deploy.FindingProblem:
			problems = append(problems, f.Text())
			if f.Unavailable {
				code = exitcode.Error
			}
		case deploy.FindingWarning:
			notice(f.Subject + ": " + f.Text())
		case deploy.FindingUnknown, deploy.FindingOK:
		}
	}
	if len(problems) == 0 {
		return nil
	}
	return exitcode.Errorf(code, "%s: %s", p.ManifestPath, strings.Join(problems, "\n"))
}

// CheckRequest is what a target is asked before a run below runs, an absolute
// directory.
func (p *Prepared) CheckRequest(runs string) deploy.CheckRequest {
	return deploy.CheckRequest{Jobs: p.Jobs, Runs: runs, RankBinary: p.RankBinary()}
}

// SharedWorkspace is the directory that the manifest says all nodes share, or "".
func (p *Prepared) SharedWorkspace() string {
	if p.Parsed == nil || p.Parsed.Deployment.Slurm == nil || p.Target != "slurm" {
		return ""
	}
	s := p.Parsed.Deployment.Slurm
	return p.path(s.SharedWorkspace)
}

// RankBinary is the assay that the manifest wants ranks wrapped by, or "".
func (p *Prepared) RankBinary() string {
	if p.Parsed == nil {
		return ""
	}
	return p.path(p.Parsed.Deployment.RankBinary)
}

// path makes a path of the manifest absolute; an empty one stays empty.
func (p *Prepared) path(path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	dir, err := filepath.Abs(filepath.Dir(p.ManifestPath))
	if err != nil {
		return path
	}
	return filepath.Join(dir, path)
}

// Digest identifies the bytes of a manifest.
func Digest(manifest []byte) string {
	sum := sha256.Sum256(manifest)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Settings are what a run is told apart from its manifest.
type Settings struct {
	Runs        string // directory below which run directories are made
	PerfCSV     string // empty: none is written
	Concurrency int    // jobs at once, at least 1
	Shared      bool   // let the group read and write the run directory
	RunID       string // empty: a new one
	Force       bool   // go on although active runs use some of the nodes
	Now         time.Time
}

// Create makes the run directory with everything that is expected to happen
// written down: the manifest, the ledger, and the rendered files of each job.
func (p *Prepared) Create(ctx context.Context, s Settings, t deploy.Target) (*rundir.Run, error) {
	if s.RunID == "" {
		s.RunID = newID(s.Now)
	}
	if err := rundir.CheckID(s.RunID); err != nil {
		return nil, exitcode.With(exitcode.Invalid, err)
	}
	runs, err := filepath.Abs(s.Runs)
	if err != nil {
		return nil, err
	}
	perf := s.PerfCSV
	if perf != "" {
		if perf, err = filepath.Abs(perf); err != nil {
			return nil, err
		}
	}
	path, err := filepath.Abs(p.ManifestPath)
	if err != nil {
		return nil, err
	}
	l := rundir.Ledger{
		Version: rundir.LedgerVersion, RunID: s.RunID, Nonce: randomHex(16), ManifestDigest: Digest(p.Manifest),
		ManifestPath: path, Target: t.Name(), CreatedAt: s.Now.UTC(),
		Concurrency: max(1, s.Concurrency), Strict: p.Strict, PerfCSV: perf, Shared: s.Shared,
		Pipeline: environ.Get(p.Env, "pipeline"), BuildNumber: environ.Get(p.Env, "BUILD_NUMBER"),
	}
	for _, j := range p.Jobs {
		l.Jobs = append(l.Jobs, rundir.Entry{ID: j.ID, Key: j.Key, Stage: j.Stage, Nodes: j.Nodes, Cost: j.Cost()})
	}
	if p.Suite != nil {
		l.Suite = p.Suite.Name
	}
	l.MaxNodes = plan.MaxNodes(p.Suite, p.MaxNodes)
	if _, err := os.Lstat(filepath.Join(runs, l.RunID)); err == nil {
		return nil, exists(runs, l.RunID)
	}
	l.Nodes = p.Nodes
	r, err := p.create(ctx, runs, l, t)
	if err != nil {
		return nil, err
	}
	// Last, so that others wait for nothing but the ledger.
	claims, forced, err := claim(ctx, r, s.Force)
	if err != nil {
		_ = os.RemoveAll(r.Dir) // nothing was run
		return nil, err
	}
	defer claims.Release()
	r.Ledger.Forced = forced
	return r, exitcode.With(exitcode.Error, r.Commit())
}

func exists(runs, id string) error {
	return exitcode.Errorf(exitcode.Invalid, "there is a run %q in %s already; give another --run-id", id, runs)
}

// create makes the run directory of a ledger, which is not a run yet.
func (p *Prepared) create(ctx context.Context, runs string, l rundir.Ledger, t deploy.Target) (*rundir.Run, error) {
	r, err := rundir.Create(runs, l, p.Manifest)
	if errors.Is(err, fs.ErrExist) {
		return nil, exists(runs, l.RunID)
	}
	if err != nil {
		return nil, exitcode.With(exitcode.Error, err)
	}
	binary := p.RankBinary()
	if stager, ok := t.(deploy.Stager); ok && binary == "" {
		if binary, err = stager.Stage(ctx, runs); err != nil {
			return nil, exitcode.Errorf(exitcode.Error, "the assay that wraps the ranks cannot be put below %s: %w", runs, err)
		}
	}
	for _, j := range p.Jobs {
		switch err := p.stage(r, t, j, binary); {
		case exitcode.Of(err) == exitcode.Invalid:
			_ = os.RemoveAll(r.Dir) // nothing was run
			return nil, exitcode.Errorf(exitcode.Invalid, "job %s: %w", j.ID, err)
		case err != nil:
			return nil, exitcode.Errorf(exitcode.Error, "job %s: cannot write its files: %w", j.ID, err)
		}
	}
	return r, nil
}

// Attempt is the first attempt of a job, with the identity of the run it belongs
// to.
func (p *Prepared) Attempt(l rundir.Ledger, dir string, j plan.Job, rankBinary string) plan.Attempt {
	return plan.Attempt{
		Version: plan.AttemptVersion, RunID: l.RunID, Nonce: l.Nonce, ManifestDigest: l.ManifestDigest,
		Number: 1, Dir: dir, LogLimit: p.LogLimit, Job: j, RankBinary: rankBinary, DurationSeconds: j.Asked(j.Policy.DurationSeconds),
	}
}

// stage renders a job into its attempt directory.
func (p *Prepared) stage(r *rundir.Run, t deploy.Target, j plan.Job, rankBinary string) error {
	dir, err := r.MakeAttemptDir(j.ID, 1)
	if err != nil {
		return err
	}
	files, err := t.Render(p.Attempt(r.Ledger, dir, j, rankBinary))
	if err != nil {
		return err
	}
	return writeFiles(r, dir, files)
}

// newID returns a run id that sorts by time.
func newID(now time.Time) string {
	return now.UTC().Format("20060102-150405") + "-" + randomHex(3)
}

func randomHex(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails (crypto/rand)
	return hex.EncodeToString(b)
}
