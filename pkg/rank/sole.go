package rank

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// claimDir holds the claims to files outside of the ranks' directories. It is the
// same for every process of the host, whatever its TMPDIR is.
const claimDir = "/tmp"

var errClaimed = errors.New("another rank or job has claimed it")

// claim says that one rank alone is to write a file while it runs. It is a locked
// file of its own, beside which nothing lies in the user's directories; whoever
// wants the claim while it is held leaves a byte in it, so that its holder knows
// too.
type claim struct {
	of   string // the path that is claimed
	path string
	f    *os.File
}

// takeClaim claims a path. The error is errClaimed when another has it.
func takeClaim(of string) (*claim, error) {
	dir := claimDir
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		dir = os.TempDir()
	}
	path := filepath.Join(dir, fmt.Sprintf(".assay-claim-%x", sha256.Sum256([]byte(of))))
	for range 100 {
		f, err := openClaim(path)
		if errors.Is(err, fs.ErrExist) {
			continue // made by another at this moment
		}
		if err != nil {
			return nil, err
		}
		c := &claim{of: of, path: path, f: f}
		held, err := c.lock()
		if held || err != nil {
			_ = f.Close()
		}
		switch {
		case err != nil:
			return nil, err
		case held:
			return nil, errClaimed
		case c.inPlace():
			return c, f.Truncate(0)
		}
		_ = f.Close() // its holder has removed it meanwhile
	}
	return nil, errClaimed
}

// openClaim opens the file of a claim, which other users can open too. One that is
// there is not opened for creation: in a sticky directory the kernel forbids that.
func openClaim(path string) (*os.File, error) {
	const flags = os.O_RDWR | os.O_APPEND | unix.O_NOFOLLOW | unix.O_NONBLOCK
	f, err := os.OpenFile(path, flags, 0)
	if !errors.Is(err, fs.ErrNotExist) {
		return f, err
	}
	f, err = os.OpenFile(path, flags|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, err
	}
	_ = f.Chmod(0o666) // whatever the umask is
	return f, nil
}

// lock locks the file, or tells its holder that it was wanted.
func (c *claim) lock() (held bool, err error) {
	err = unix.Flock(int(c.f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if !errors.Is(err, unix.EWOULDBLOCK) {
		return false, err
	}
	_, err = c.f.WriteString("x")
	return true, err
}

func (c *claim) inPlace() bool {
	now, err := os.Lstat(c.path)
	mine, merr := c.f.Stat()
	return err == nil && merr == nil && os.SameFile(now, mine)
}

// wanted reports whether another wanted the claim while it was held.
func (c *claim) wanted() bool {
	info, err := c.f.Stat()
	return err != nil || info.Size() > 0
}

// release gives the claim up.
func (c *claim) release() {
	_ = os.Remove(c.path)
	_ = c.f.Close()
}
