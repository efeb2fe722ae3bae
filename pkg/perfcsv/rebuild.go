package perfcsv

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"

	"assay/pkg/durable"
	"assay/pkg/exitcode"
)

// Rebuilt says what Rebuild did.
type Rebuilt struct {
	Rows int
	// Kept is where the file that was replaced lies now; empty when there was none
	// or it was the same already.
	Kept string
}

// Rebuild writes a new perf.csv at path from batches of rows, in their order.
// The new file takes the place of an old one at once or not at all, with writers
// kept waiting; the old one is kept under another name. An error in a batch ends
// it, and leaves the old file as it was.
func Rebuild(path string, batches iter.Seq2[[]Row, error]) (Rebuilt, error) {
	path, err := resolve(path)
	if err != nil {
		return Rebuilt{}, err
	}
	old, err := openLocked(path)
	if err != nil {
		return Rebuilt{}, err
	}
	fresh, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return Rebuilt{}, errors.Join(exitcode.With(exitcode.Invalid, err), old.Close())
	}
	done, err := fill(fresh, batches)
	if err == nil {
		done.Kept, err = swap(path, fresh, old)
	}
	if err != nil {
		err = fmt.Errorf("rebuild %s: %w", path, err)
	}
	err = errors.Join(err, fresh.Close(), old.Close(), removeTemp(fresh.Name()))
	return done, err
}

func removeTemp(name string) error {
	if err := os.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func fill(f *os.File, batches iter.Seq2[[]Row, error]) (Rebuilt, error) {
	var done Rebuilt
	out := bufio.NewWriterSize(f, 1<<20)
	_, err := out.Write(header())
	if err != nil {
		return done, err
	}
	for rows, err := range batches {
		if err != nil {
			return done, err
		}
		data, err := encode(rows)
		if err != nil {
			return done, err
		}
		if _, err := out.Write(data); err != nil {
			return done, err
		}
		done.Rows += len(rows)
	}
	return done, errors.Join(out.Flush(), f.Sync())
}

// swap puts fresh at path. The old file, when it differs, is kept.
func swap(path string, fresh, old *os.File) (kept string, err error) {
	same, err := equal(fresh, old)
	if same || err != nil {
		return "", err
	}
	info, err := old.Stat()
	if err != nil {
		return "", err
	}
	if kept, err = keep(path, info.Size()); err != nil {
		return "", err
	}
	if err := fresh.Chmod(info.Mode().Perm()); err != nil {
		return kept, err
	}
	if err := os.Rename(fresh.Name(), path); err != nil {
		return kept, err
	}
	return kept, durable.SyncDir(filepath.Dir(path))
}

// keep gives the file at path a second name, which stays when path is replaced.
func keep(path string, size int64) (string, error) {
	if size == 0 {
		return "", nil
	}
	for i := 1; ; i++ {
		name := fmt.Sprintf("%s.old-%d", path, i)
		if err := os.Link(path, name); !errors.Is(err, fs.ErrExist) {
			return name, err
		}
	}
}

// equal says whether two files hold the same bytes.
func equal(a, b *os.File) (bool, error) {
	infoA, errA := a.Stat()
	infoB, errB := b.Stat()
	if err := errors.Join(errA, errB); err != nil || infoA.Size() != infoB.Size() {
		return false, err
	}
	const step = 1 << 20
	bufA, bufB := make([]byte, step), make([]byte, step)
	for at := int64(0); at < infoA.Size(); at += step {
		n, errA := a.ReadAt(bufA, at)
		m, errB := b.ReadAt(bufB, at)
		if err := errors.Join(ignoreEOF(errA), ignoreEOF(errB)); err != nil {
			return false, err
		}
		if !bytes.Equal(bufA[:n], bufB[:m]) {
			return false, nil
		}
	}
	return true, nil
}

func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
