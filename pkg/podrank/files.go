package podrank

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"assay/pkg/durable"
	"assay/pkg/pod"
	"assay/pkg/regular"
	"assay/pkg/rundir"
)

// maxFiles is how many files of a rank are looked at for the log of the pod.
const maxFiles = 10000

// errEnough ends a walk.
var errEnough = errors.New("enough")

// fileAt reads a file that is opened for every read: there may be more of them than
// a process may have open.
type fileAt string

// ReadAt implements io.ReaderAt.
func (path fileAt) ReadAt(b []byte, at int64) (int, error) {
	f, err := regular.Open(string(path))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	return f.ReadAt(b, at)
}

// list gives the files of a rank that go into its archive, and what cannot.
func list(dir string) (files []pod.File, omitted []pod.Omitted) {
	err := walk(dir, func(name string, info fs.FileInfo, err error) error {
		switch {
		case err != nil:
			omitted = append(omitted, pod.Omitted{Name: name, Why: err.Error()})
		case !info.Mode().IsRegular():
			omitted = append(omitted, pod.Omitted{Name: name, Why: "it is no regular file"})
		case len(files) == maxFiles:
			omitted = append(omitted, pod.Omitted{Name: name, Bytes: info.Size(), Why: fmt.Sprintf("the rank left more than %d files, and this is the next", maxFiles)})
			return errEnough
		default:
			files = append(files, pod.File{Name: name, Size: info.Size(), Data: fileAt(filepath.Join(dir, name))})
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		omitted = append(omitted, pod.Omitted{Name: rundir.ResultsDir, Why: err.Error()})
	}
	return files, omitted
}

// walk calls f for every file that a rank leaves: its records, its logs, and all
// below its results, by the name below its directory.
func walk(dir string, f func(name string, info fs.FileInfo, err error) error) error {
	for _, name := range []string{rundir.EndFile, rundir.BeginFile, rundir.MetricsFile, rundir.WrapperLog, rundir.StdoutFile, rundir.StderrFile} {
		info, err := os.Lstat(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := f(name, info, err); err != nil {
			return err
		}
	}
	return filepath.WalkDir(filepath.Join(dir, rundir.ResultsDir), func(path string, d fs.DirEntry, err error) error {
		name, rerr := filepath.Rel(dir, path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // removed while it was looked at
		case err == nil && d.IsDir():
			return nil
		case rerr != nil:
			return rerr
		case err != nil:
			return f(name, nil, err)
		}
		info, err := d.Info()
		return f(name, info, err)
	})
}

// keep copies what the rank left to the results volume. The copy appears as a
// whole; that of an earlier start of the rank gives way to it and stays beside it.
func (p *inPod) keep(dir, volume string) error {
	a := p.attempt
	to := rundir.RankDir(filepath.Join(volume, a.RunID, a.Job.ID, strconv.Itoa(a.Number)), p.rank)
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	temp, err := os.MkdirTemp(filepath.Dir(to), "."+filepath.Base(to)+".*")
	if err != nil {
		return err
	}
	err = errors.Join(os.Chmod(temp, 0o755), copyFiles(dir, temp))
	if err == nil {
		err = putInPlace(temp, to)
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(temp))
	}
	return durable.SyncDir(filepath.Dir(to))
}

// copyFiles copies the files of a rank. Links, pipes and the like stay behind.
func copyFiles(from, to string) error {
	return walk(from, func(name string, info fs.FileInfo, err error) error {
		if err != nil || !info.Mode().IsRegular() {
			return err
		}
		src, err := regular.Open(filepath.Join(from, name))
		if err != nil {
			return err
		}
		defer src.Close()
		path := filepath.Join(to, name)
		if strings.Contains(name, "/") {
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				return err
			}
		}
		return durable.Copy(path, src, 0o644)
	})
}

// putInPlace renames a directory to its place.
func putInPlace(temp, to string) error {
	for n := 1; ; n++ {
		aside := fmt.Sprintf("%s.start-%d", to, n)
		if _, err := os.Lstat(aside); err == nil {
			continue
		}
		if err := os.Rename(to, aside); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return os.Rename(temp, to)
	}
}
