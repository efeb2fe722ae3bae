package rank

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"assay/pkg/regular"
	"assay/pkg/rundir"
)

// place is where a results file may appear.
type place struct {
	path    string
	before  *digest // of what lay there before the workload
	claim   *claim  // of a place outside of the directory of the rank
	refused string  // why nothing that appears there counts
}

// secure finds out whether the place is the rank's own. One that is not may be
// written by others too: it has to be claimed, and in a job of several ranks it
// counts for none. Links decide where a place really is, so this is asked again
// once the pre-scripts have run.
func (w *wrapper) secure(p *place) {
	real := realPlace(p.path)
	inside, err := filepath.Rel(realPath(w.dir), real)
	if (err == nil && filepath.IsLocal(inside)) || p.claim != nil || p.refused != "" {
		return
	}
	if w.attempt.Job.WorldSize > 1 {
		p.refused = "lies where other ranks may write too; write to $MAD_OUTPUT_CSV, or to a relative path"
		return
	}
	if at := slices.IndexFunc(w.claims, func(c *claim) bool { return c.of == real }); at >= 0 {
		p.claim = w.claims[at]
		return
	}
	switch c, err := takeClaim(real); {
	case errors.Is(err, errClaimed):
		p.refused = contested
	case err != nil:
		p.refused = fmt.Sprintf("cannot be kept for this job alone: %v", err)
	default:
		p.claim = c
		w.claims = append(w.claims, c)
	}
}

const contested = "may be of another job that ran at the same time and writes there too; write to $MAD_OUTPUT_CSV, or to a relative path"

// objection says why what appeared in the place does not count, or "".
func (p *place) objection() string {
	if p.refused == "" && p.claim != nil && p.claim.wanted() {
		return contested
	}
	return p.refused
}

// realPlace is where a path leads, although its end may not be there yet.
func realPlace(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	dir := filepath.Dir(path)
	if dir == path {
		return path
	}
	return filepath.Join(realPlace(dir), filepath.Base(path))
}

// digest tells whether content is the same. Times and inodes do not: a file that
// was only touched, or written again as it was, has nothing new.
type digest struct {
	size int64
	sum  [sha256.Size]byte
}

// digestOf is the digest of a regular file, or nil when there is none.
func digestOf(path string) *digest {
	f, err := regular.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	d, err := readDigest(f)
	if err != nil {
		return nil
	}
	return d
}

func readDigest(r io.Reader) (*digest, error) {
	h := sha256.New()
	n, err := io.Copy(h, r)
	d := &digest{size: n}
	h.Sum(d.sum[:0])
	return d, err
}

// begins reports whether the content of f begins with what d is of.
func (d *digest) begins(f *os.File) bool {
	now, err := readDigest(io.NewSectionReader(f, 0, d.size))
	return err == nil && *now == *d
}

// fresh gives what the file holds beyond what it held before: all of it when that
// is not its beginning, else its header and the rows that were added. Nil means
// that there is nothing new. Whole reports whether it is all of the file.
func (d *digest) fresh(f *os.File) (r io.Reader, whole bool, err error) {
	info, err := f.Stat()
	if err != nil {
		return nil, false, err
	}
	all := io.NewSectionReader(f, 0, info.Size())
	if d == nil || !d.begins(f) {
		return all, true, nil
	}
	if info.Size() == d.size {
		return nil, false, nil
	}
	header, err := bufio.NewReader(all).ReadBytes('\n')
	if _, serr := all.Seek(0, io.SeekStart); serr != nil {
		return nil, false, serr
	}
	if err != nil || int64(len(header)) > d.size { // it had no rows
		return all, true, nil
	}
	return io.MultiReader(bytes.NewReader(header), io.NewSectionReader(f, d.size, info.Size()-d.size)), false, nil
}

// metricsPlaces are where a workload may leave its metrics.json.
func metricsPlaces() []string {
	return []string{rundir.ResultsDir + "/" + rundir.MetricsFile, rundir.WorkDir + "/" + rundir.MetricsFile}
}
