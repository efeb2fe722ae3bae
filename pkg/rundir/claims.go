package rundir

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"assay/pkg/durable"
	"assay/pkg/regular"
)

// claimsDir holds a file for each run that uses nodes by name, below the directory of
// runs.
const claimsDir = ".claims"

// lockLooks is how often it is looked whether a lock is free.
const lockLooks = 50 * time.Millisecond

// ErrClaimsHeld says that other processes held the claims all the time.
var ErrClaimsHeld = errors.New("another assay process holds it")

// Claim says which nodes a run uses.
type Claim struct {
	Name   string   `json:"-"` // of the run directory; a claim moves with the directory of runs
	RunID  string   `json:"run_id"`
	Target string   `json:"target"`
	Nodes  []string `json:"nodes"`
	// Unreadable is why nothing else is known of it; nil when it could be read.
	Unreadable error `json:"-"`
}

// Claims are the claims of the runs below a directory, held by one process at a time.
type Claims struct {
	runs string
	mode fs.FileMode // of the files
	lock *os.File
}

// HoldClaims takes hold of the claims below runs, a directory that is made when it is not
// there. It waits while another process holds them, at most as long as told, then fails
// with ErrClaimsHeld.
func HoldClaims(ctx context.Context, runs string, wait time.Duration) (*Claims, error) {
	if err := os.MkdirAll(runs, 0o755); err != nil {
		return nil, err
	}
	info, err := os.Stat(runs)
	if err != nil {
		return nil, err
	}
	// Whoever may make a run there may claim nodes, too.
	mode := info.Mode()
	dir := filepath.Join(runs, claimsDir)
	if err := os.Mkdir(dir, mode.Perm()); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	d, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	widen(d, mode.Perm()|mode&fs.ModeSetgid)
	_ = d.Close() // nothing was written
	c := &Claims{runs: runs, mode: 0o666 & mode.Perm()}
	if c.lock, err = os.OpenFile(filepath.Join(dir, LockFile), os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW, c.mode); err != nil {
		return nil, err
	}
	widen(c.lock, c.mode)
	if err := lockWithin(ctx, c.lock, wait); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", c.lock.Name(), err), c.lock.Close())
	}
	return c, nil
}

// widen gives what a process of this user has made the mode that it should have, whatever
// the umask was. That of others is their affair.
func widen(f *os.File, mode fs.FileMode) {
	if info, err := f.Stat(); err == nil && info.Mode()&mode != mode {
		_ = f.Chmod(info.Mode() | mode)
	}
}

// lockWithin locks a file once no other process does.
func lockWithin(ctx context.Context, f *os.File, wait time.Duration) error {
	for until := time.Now().Add(wait); ; {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return err
		}
		if time.Now().After(until) {
			return ErrClaimsHeld
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(lockLooks):
		}
	}
}

// Release lets other processes have the claims.
func (c *Claims) Release() { _ = c.lock.Close() }

// Dir is the directory of the run of a claim.
func (c *Claims) Dir(claim Claim) string { return filepath.Join(c.runs, claim.Name) }

// List returns all claims.
func (c *Claims) List() ([]Claim, error) {
	entries, err := os.ReadDir(filepath.Join(c.runs, claimsDir))
	if err != nil {
		return nil, err
	}
	var out []Claim
	for _, e := range entries {
		name, is := strings.CutSuffix(e.Name(), ".json")
		if !is || strings.HasPrefix(name, ".") {
			continue
		}
		claim, err := readClaim(c.File(name))
		if errors.Is(err, fs.ErrNotExist) {
			continue // its run has just ended
		}
		claim.Name, claim.Unreadable = name, err
		out = append(out, claim)
	}
	return out, nil
}

func readClaim(path string) (claim Claim, err error) {
	data, err := regular.ReadFile(path, maxFile)
	if err != nil {
		return claim, err
	}
	if err := json.Unmarshal(data, &claim); err != nil {
		return Claim{}, fmt.Errorf("%s: %w", path, err)
	}
	return claim, nil
}

// Add writes the claim of a run below this directory.
func (c *Claims) Add(claim Claim) error {
	return durable.WriteJSON(c.File(claim.Name), claim, c.mode)
}

// Drop removes the claim of a run; one that is not there is no error.
func (c *Claims) Drop(name string) error { return DropClaim(c.runs, name) }

// DropClaim removes the claim of a run below runs, if there is one. Only the process that
// drives the run may do that without holding the claims.
func DropClaim(runs, name string) error {
	err := os.Remove(claimFile(runs, name))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return nil
	}
	return err
}

// File is where the claim of a run lies.
func (c *Claims) File(name string) string { return claimFile(c.runs, name) }

func claimFile(runs, name string) string { return filepath.Join(runs, claimsDir, name+".json") }

// sharedPrefix begins the names of the files that say which other runs were started on
// some nodes of a run while it was active.
const sharedPrefix = "shared-by-"

// NoteShared records with a run that another one was started on some of its nodes.
func NoteShared(dir, by string) error {
	return durable.WriteFile(filepath.Join(dir, sharedPrefix+by), nil, 0o600)
}

// SharedBy are the runs that were started on some nodes of this one while it was active.
func (r *Run) SharedBy() ([]string, error) {
	files, err := filepath.Glob(filepath.Join(r.Dir, sharedPrefix+"*"))
	if err != nil {
		return nil, err
	}
	for i, f := range files {
		files[i] = strings.TrimPrefix(filepath.Base(f), sharedPrefix)
	}
	return files, nil
}
