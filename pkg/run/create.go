package run

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"assay/deploy"
	"assay/pkg/environ"
	"assay/pkg/exitcode"
	"assay/pkg/plan"
	"assay/pkg/rundir"
)

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
	if dir := filepath.Join(runs, id); unbegun(dir) {
		return exitcode.Errorf(exitcode.Invalid, "%s is the rest of a run that was never begun: its process ended before %s was there; if none is about to write it, remove it, or give another --run-id", dir, rundir.LedgerFile)
	}
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
