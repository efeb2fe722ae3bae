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
	last, err := best(attemptDir, func(evidence.Observation) int { return 1 })
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
// no answer does not. An end that was seen stands, and most of all one that has a
// name: whoever asks later may be told less, and whoever asked earlier may write
// later.
func LastObservation(attemptDir string) (*evidence.Observation, error) {
	return best(attemptDir, func(o evidence.Observation) int {
		switch {
		case o.Phase == evidence.PhaseEnded && o.Word != "":
			return 3
		case o.Phase == evidence.PhaseEnded:
			return 2
		case o.Phase != evidence.PhaseUnknown || o.Word != "":
			return 1
		}
		return 0
	})
}

// best returns the newest of the lines that weigh most; those that weigh nothing do
// not count. A torn line, left by a crash, is no observation.
func best(attemptDir string, weight func(evidence.Observation) int) (*evidence.Observation, error) {
	data, err := regular.ReadFile(filepath.Join(attemptDir, SchedulerFile), maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var found *evidence.Observation
	most := 0
	for line := range bytes.Lines(data) {
		var o evidence.Observation
		if !bytes.HasSuffix(line, []byte("\n")) || json.Unmarshal(line, &o) != nil {
			continue
		}
		if w := weight(o); w > 0 && w >= most {
			found, most = &o, w
		}
	}
	return found, nil
}
