package rundir

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"assay/pkg/evidence"
	"assay/pkg/regular"
)

// AppendObservation adds what a target said to scheduler.jsonl of an attempt,
// unless it only repeats the last line.
func (r *Run) AppendObservation(attemptDir string, o evidence.Observation) error {
	last, err := newest(attemptDir, func(evidence.Observation) bool { return true })
	if err != nil {
		return err
	}
	if last != nil && last.Same(o) {
		return nil
	}
	line, err := json.Marshal(o)
	if err != nil {
		return err
	}
	f, err := r.openFile(filepath.Join(attemptDir, SchedulerFile), os.O_APPEND)
	if err != nil {
		return err
	}
	if torn(f) {
		line = append([]byte{'\n'}, line...)
	}
	_, err = f.Write(append(line, '\n'))
	if o.Phase.Over() { // what went before can be asked again
		err = errors.Join(err, f.Sync())
	}
	return errors.Join(err, f.Close())
}

// openFile opens a file of the run for reading and writing. One that is new gets
// the mode of the run's files, whatever the umask.
func (r *Run) openFile(path string, flag int) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR|flag, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return os.OpenFile(path, os.O_RDWR|flag, 0)
	}
	if err != nil {
		return nil, err
	}
	if err := f.Chmod(r.FileMode()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// torn says whether a crash left a line without its end.
func torn(f *os.File) bool {
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return false
	}
	last := make([]byte, 1)
	_, err = f.ReadAt(last, info.Size()-1)
	return err == nil && last[0] != '\n'
}

// LastObservation returns the newest observation of an attempt that says
// something, or nil when there is none. A word that is not known says something;
// no answer does not.
func LastObservation(attemptDir string) (*evidence.Observation, error) {
	return newest(attemptDir, func(o evidence.Observation) bool { return o.Phase != evidence.PhaseUnknown || o.Word != "" })
}

// newest returns the last line that is wanted. A torn line, left by a crash, is
// no observation.
func newest(attemptDir string, wanted func(evidence.Observation) bool) (*evidence.Observation, error) {
	data, err := regular.ReadFile(filepath.Join(attemptDir, SchedulerFile), maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for end := bytes.LastIndexByte(data, '\n'); end >= 0; {
		start := bytes.LastIndexByte(data[:end], '\n') + 1
		var o evidence.Observation
		if json.Unmarshal(data[start:end], &o) == nil && wanted(o) {
			return &o, nil
		}
		end = start - 1
	}
	return nil, nil
}
