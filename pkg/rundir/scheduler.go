package rundir

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"assay/pkg/evidence"
)

// AppendObservation adds what a target said to scheduler.jsonl of an attempt,
// unless it only repeats what is there.
func (r *Run) AppendObservation(attemptDir string, o evidence.Observation) error {
	last, err := LastObservation(attemptDir)
	if err != nil {
		return err
	}
	if last != nil && last.Source == o.Source && last.Phase == o.Phase && last.Word == o.Word && last.Detail == o.Detail {
		return nil
	}
	line, err := json.Marshal(o)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(attemptDir, SchedulerFile), os.O_CREATE|os.O_APPEND|os.O_RDWR, r.FileMode())
	if err != nil {
		return err
	}
	if torn(f) {
		line = append([]byte{'\n'}, line...)
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Sync(), f.Close())
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
// something, or nil when there is none. A torn line, left by a crash, is no
// observation.
func LastObservation(attemptDir string) (*evidence.Observation, error) {
	path := filepath.Join(attemptDir, SchedulerFile)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for end := bytes.LastIndexByte(data, '\n'); end >= 0; {
		start := bytes.LastIndexByte(data[:end], '\n') + 1
		var o evidence.Observation
		if line := data[start:end]; len(bytes.TrimSpace(line)) > 0 {
			if json.Unmarshal(line, &o) == nil && o.Phase != evidence.PhaseUnknown {
				return &o, nil
			}
		}
		end = start - 1
	}
	return nil, nil
}
