// Package run executes a manifest: it plans the jobs, hands them to their
// target, watches them, collects what they left, judges it and reports. Every
// step leaves its result in the run directory, so that another process can go on
// where this one ended.
package run

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"assay/deploy"
	"assay/pkg/envfile"
	"assay/pkg/environ"
	"assay/pkg/exitcode"
	"assay/pkg/manifest"
	"assay/pkg/plan"
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
