package rundir

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"assay/deploy"
	"assay/pkg/durable"
	"assay/pkg/evidence"
	"assay/pkg/regular"
)

// Latest is the name that stands for the newest run.
const Latest = "latest"

// LedgerVersion is the version of the format of run.json.
const LedgerVersion = 1

// maxFile bounds what is read of a file in the run directory, in bytes: more than
// a manifest may have.
const maxFile = 256 << 20

// Ledger is what must arrive, written down before anything is launched: so that
// absence is a result.
type Ledger struct {
	Version        int       `json:"version"`
	RunID          string    `json:"run_id"`
	Nonce          string    `json:"nonce"`
	ManifestDigest string    `json:"manifest_digest"`
	ManifestPath   string    `json:"manifest_path"` // where the manifest was read; its directory is the default model directory
	Target         string    `json:"target"`
	CreatedAt      time.Time `json:"created_at"`
	Concurrency    int       `json:"concurrency"` // jobs at once
	Strict         bool      `json:"strict"`
	PerfCSV        string    `json:"perf_csv"`     // absolute; empty: none is written
	Shared         bool      `json:"shared"`       // readable by the group
	Pipeline       string    `json:"pipeline"`     // `pipeline` in the environment of the run, for perf.csv
	BuildNumber    string    `json:"build_number"` // BUILD_NUMBER in the environment of the run, for perf.csv
	Jobs           []Entry   `json:"jobs"`

	Suite    string   `json:"suite,omitempty"`                // name of the suite; empty: there is none
	Nodes    []string `json:"nodes,omitempty"`                // that the run was told to use, and claims
	MaxNodes int      `json:"max_concurrent_nodes,omitempty"` // nodes under load at the same time; 0: no limit
	// Forced are the runs that used some of the nodes when this one was started all
	// the same (--force).
	Forced []string `json:"forced,omitempty"`
}

// Entry is one job of the run, in the order in which jobs are submitted.
type Entry struct {
	ID  string `json:"id"`  // directory name
	Key string `json:"key"` // key of the manifest entry

	Stage int      `json:"stage,omitempty"` // it begins once every job of a lower stage is settled
	Nodes []string `json:"nodes,omitempty"` // that it runs on, where that is fixed
	Cost  int      `json:"cost,omitempty"`  // nodes that it puts under load
}

// check refuses ids that are no plain directory names: they become paths.
func (l Ledger) check() error {
	if err := CheckID(l.RunID); err != nil {
		return err
	}
	for _, j := range l.Jobs {
		if err := CheckID(j.ID); err != nil {
			return err
		}
	}
	return nil
}

// CheckID says what is wrong with the id of a run or a job: it has to be a name
// of at most 128 letters, digits, dots, hyphens and underscores that begins with
// neither dot nor hyphen, and not the word that stands for the newest run.
func CheckID(id string) error {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	switch {
	case id == "" || len(id) > 128 || !strings.ContainsRune(letters+"_", rune(id[0])) || strings.Trim(id, letters+"._-") != "":
		return fmt.Errorf("%q is no id: use at most 128 letters, digits, dots, hyphens and underscores, and begin with neither dot nor hyphen", id)
	case id == Latest:
		return fmt.Errorf("%q is no id: it stands for the newest run", id)
	}
	return nil
}

// LaunchRecord is how far the submission of one attempt got: launch.json in the
// attempt directory. The intent is on disk before the target is asked, the
// handle right after its answer.
type LaunchRecord struct {
	evidence.Launch
	Handle *deploy.Handle `json:"handle,omitempty"`
}

// PerfRecord says whether the rows of the run are in perf.csv: perf.json.
type PerfRecord struct {
	Path   string `json:"path"`
	Done   bool   `json:"done"`
	Offset int64  `json:"offset"` // size of the file before the append; rows of this run can only lie behind it
	// Attempts are those whose rows are in, as job/number: they are never added again,
	// whatever is learnt of them later.
	Attempts []string `json:"attempts,omitempty"`
}

// Run is an open run directory.
type Run struct {
	Dir    string
	Ledger Ledger
}

// FileMode is the mode of files in the run directory.
func (r *Run) FileMode() fs.FileMode {
	if r.Ledger.Shared {
		return 0o660
	}
	return 0o600
}

// DirMode is the mode of directories in the run directory.
func (r *Run) DirMode() fs.FileMode { return dirMode(r.Ledger.Shared) }

func dirMode(shared bool) fs.FileMode {
	if shared {
		return 0o770 | fs.ModeSetgid
	}
	return 0o700
}

// Create makes the directory of a new run below runs and writes the manifest into
// it. The directory must not exist. It is a run once Commit has written the
// ledger.
func Create(runs string, l Ledger, manifest []byte) (*Run, error) {
	if err := l.check(); err != nil {
		return nil, err
	}
	mode := dirMode(l.Shared)
	if err := os.MkdirAll(runs, 0o755); err != nil {
		return nil, fmt.Errorf("cannot create the runs directory: %w", err)
	}
	dir := filepath.Join(runs, l.RunID)
	if err := makeDir(dir, mode); err != nil {
		return nil, fmt.Errorf("cannot create the run directory: %w", err)
	}
	r := &Run{Dir: dir, Ledger: l}
	if err := durable.WriteFile(filepath.Join(dir, ManifestFile), manifest, r.FileMode()); err != nil {
		return nil, fmt.Errorf("cannot keep the manifest: %w", err)
	}
	if err := r.reserve(); err != nil {
		return nil, fmt.Errorf("cannot set room aside: %w", err)
	}
	return r, nil
}

// Commit writes the ledger, when everything that it speaks of is there.
func (r *Run) Commit() error {
	if err := r.writeJSON(LedgerFile, r.Ledger); err != nil {
		return fmt.Errorf("cannot write the ledger: %w", err)
	}
	return durable.SyncDir(filepath.Dir(r.Dir))
}

// makeDir creates one directory with exactly mode, whatever the umask.
func makeDir(dir string, mode fs.FileMode) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	return os.Chmod(dir, mode)
}

// Open reads the ledger of an existing run.
func Open(dir string) (*Run, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	data, err := regular.ReadFile(filepath.Join(abs, LedgerFile), maxFile)
	if err != nil {
		return nil, err
	}
	r := &Run{Dir: abs}
	if err := json.Unmarshal(data, &r.Ledger); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(abs, LedgerFile), err)
	}
	if v := r.Ledger.Version; v != LedgerVersion {
		return nil, fmt.Errorf("%s has format version %d, this assay knows %d", filepath.Join(abs, LedgerFile), v, LedgerVersion)
	}
	if err := r.Ledger.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(abs, LedgerFile), err)
	}
	return r, nil
}

// Manifest returns the bytes that were run.
func (r *Run) Manifest() ([]byte, error) {
	return regular.ReadFile(filepath.Join(r.Dir, ManifestFile), maxFile)
}

// AttemptDir is the directory of one attempt of a job of this run.
func (r *Run) AttemptDir(job string, attempt int) string { return AttemptDir(r.Dir, job, attempt) }

// Rel is a path below the run directory as seen from there, so that it stays true
// when the directory is moved or mounted elsewhere.
func (r *Run) Rel(path string) string {
	rel, err := filepath.Rel(r.Dir, path)
	if err != nil {
		return path
	}
	return filepath.ToSlash(rel)
}

// MakeAttemptDir creates the directory of one attempt, if it is not there.
func (r *Run) MakeAttemptDir(job string, attempt int) (string, error) {
	dir := r.AttemptDir(job, attempt)
	for _, d := range []string{filepath.Dir(filepath.Dir(dir)), filepath.Dir(dir), dir} {
		if err := makeDir(d, r.DirMode()); err != nil && !errors.Is(err, fs.ErrExist) {
			return "", err
		}
	}
	return dir, nil
}

// WriteLaunch records how far the submission of an attempt got.
func (r *Run) WriteLaunch(attemptDir string, l LaunchRecord) error {
	return durable.WriteJSON(filepath.Join(attemptDir, LaunchFile), l, r.FileMode())
}

// ReadLaunch returns the record of an attempt. An attempt without one is
// planned: nothing was ever asked of the target; but one that is a restart by the
// scheduler has the record of the attempt that was submitted.
func ReadLaunch(attemptDir string) (LaunchRecord, error) {
	l := LaunchRecord{Launch: evidence.Launch{State: evidence.LaunchPlanned}}
	found, err := readJSON(filepath.Join(attemptDir, LaunchFile), &l)
	if found || err != nil {
		return l, err
	}
	if dir, restarted := submittedDir(attemptDir); restarted {
		return ReadLaunch(dir)
	}
	return l, nil
}

// WritePerf records the state of the rows of this run in perf.csv. That they are
// in can be found out again from the file itself, so only where they begin waits
// for the disk.
func (r *Run) WritePerf(p PerfRecord) error {
	if !p.Done {
		return r.writeJSON(PerfFile, p)
	}
	data, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return err
	}
	return durable.Replace(filepath.Join(r.Dir, PerfFile), append(data, '\n'), r.FileMode())
}

// ReopenPerf lets more rows of this run be added to perf.csv.
func (r *Run) ReopenPerf() error {
	p, found, err := r.ReadPerf()
	if err != nil || !found || !p.Done {
		return err
	}
	p.Done = false
	return r.WritePerf(p)
}

// ReadPerf returns that state; found is false when no append was ever begun.
func (r *Run) ReadPerf() (p PerfRecord, found bool, err error) {
	found, err = readJSON(filepath.Join(r.Dir, PerfFile), &p)
	return p, found, err
}

func (r *Run) writeJSON(name string, v any) error {
	return durable.WriteJSON(filepath.Join(r.Dir, name), v, r.FileMode())
}

// readJSON reads a file that may not be there yet.
func readJSON(path string, v any) (found bool, err error) {
	data, err := regular.ReadFile(path, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return false, fmt.Errorf("%s: %w", path, err)
	}
	return true, nil
}
