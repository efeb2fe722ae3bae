package rundir

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"assay/pkg/durable"
	"assay/pkg/regular"
)

// claimsDir holds a file for each run that uses nodes by name, below the directory of
// runs.
const claimsDir = ".claims"

// Claim says which nodes a run uses.
type Claim struct {
	RunID  string   `json:"run_id"`
	Dir    string   `json:"dir"` // of the run, absolute
	Target string   `json:"target"`
	Nodes  []string `json:"nodes"`
}

// Claims are the claims of the runs below a directory, held by one process at a time.
type Claims struct {
	runs string
	lock *os.File
}

// HoldClaims waits until no other process holds the claims below runs, an absolute
// directory that is made when it is not there.
func HoldClaims(runs string) (*Claims, error) {
	dir := filepath.Join(runs, claimsDir)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, LockFile), os.O_CREATE|os.O_RDWR, 0o666)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", f.Name(), err), f.Close())
	}
	return &Claims{runs, f}, nil
}

// Release lets other processes have the claims.
func (c *Claims) Release() { _ = c.lock.Close() }

// List returns all claims.
func (c *Claims) List() ([]Claim, error) {
	entries, err := os.ReadDir(filepath.Join(c.runs, claimsDir))
	if err != nil {
		return nil, err
	}
	var out []Claim
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".json") {
			continue
		}
		path := filepath.Join(c.runs, claimsDir, e.Name())
		data, err := regular.ReadFile(path, maxFile)
		if err != nil {
			return nil, err
		}
		var claim Claim
		if err := json.Unmarshal(data, &claim); err != nil {
			return nil, fmt.Errorf("%s: %w; remove it once no such run uses its nodes", path, err)
		}
		out = append(out, claim)
	}
	return out, nil
}

// Add writes the claim of a run below this directory.
func (c *Claims) Add(claim Claim) error {
	claim.Dir = filepath.Join(c.runs, claim.RunID)
	return durable.WriteJSON(c.File(claim.RunID), claim, 0o644)
}

// Drop removes the claim of a run; one that is not there is an error for
// errors.Is(err, fs.ErrNotExist).
func (c *Claims) Drop(runID string) error { return os.Remove(c.File(runID)) }

// File is where the claim of a run lies.
func (c *Claims) File(runID string) string {
	return filepath.Join(c.runs, claimsDir, runID+".json")
}
