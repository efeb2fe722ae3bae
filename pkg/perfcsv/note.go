package perfcsv

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"

	"assay/pkg/exitcode"

	"golang.org/x/sys/unix"
)

// A note lies beside perf.csv and says what the append that is under way will
// have written: from the byte begin, where a record starts, to the byte end. It
// is written before the rows are, in program order, so after a kill it tells
// exactly where a torn append began, which the text alone cannot: a newline may
// stand inside a value. It also names the bytes before begin, so that a note of
// another file is not believed.
type note struct {
	begin, end int64
}

const (
	noteFormat = "assay-append-1 %020d %020d %08x"
	noteLength = len("assay-append-1 ") + 20 + 1 + 20 + 1 + 8 + 1 + 8 + 1
	noteReach  = 64 // how many bytes before begin it vouches for
)

func notePath(path string) string {
	return filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".append")
}

// writeNote leaves the note for an append to f. That it cannot be opened, because
// the directory or the note is somebody else's, is no reason to lose rows: then
// there is none, or an older one, which still says where a record began.
func writeNote(f *os.File, path string, begin, end int64) error {
	sum, err := sumBefore(f, begin)
	if err != nil {
		return err
	}
	text := fmt.Appendf(nil, noteFormat, begin, end, sum)
	text = fmt.Appendf(text, " %08x\n", crc32.ChecksumIEEE(text))
	out, err := os.OpenFile(notePath(path), os.O_WRONLY|os.O_CREATE|unix.O_NONBLOCK, 0o666)
	if err != nil {
		return nil
	}
	_, err = out.WriteAt(text, 0)
	if err = errors.Join(err, out.Close()); err != nil {
		return exitcode.Errorf(exitcode.Error, "append to %s: leave a note of it: %w", path, err)
	}
	return nil
}

// readNote returns the note about f; ok is false when there is none that can be
// believed.
func readNote(f *os.File, path string) (n note, ok bool) {
	in, err := os.OpenFile(notePath(path), os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return note{}, false
	}
	defer in.Close()
	text := make([]byte, noteLength)
	if _, err := io.ReadFull(in, text); err != nil {
		return note{}, false
	}
	var before, sum uint32
	if _, err := fmt.Sscanf(string(text), noteFormat+" %08x\n", &n.begin, &n.end, &before, &sum); err != nil {
		return note{}, false
	}
	if crc32.ChecksumIEEE(text[:noteLength-10]) != sum || n.begin < 0 || n.end < n.begin {
		return note{}, false
	}
	got, err := sumBefore(f, n.begin)
	return n, err == nil && got == before
}

// sumBefore is the checksum of the bytes of f that lie just before offset.
func sumBefore(f *os.File, offset int64) (uint32, error) {
	start := max(0, offset-noteReach)
	b := make([]byte, offset-start)
	if _, err := f.ReadAt(b, start); err != nil {
		return 0, err
	}
	return crc32.ChecksumIEEE(b), nil
}
