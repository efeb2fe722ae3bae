package rundir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"assay/pkg/durable"
	"assay/pkg/evidence"
)

// WriteCancel records that the end of the run was asked for. The first request
// stands.
func (r *Run) WriteCancel(c evidence.Cancel) error {
	old, err := r.ReadCancel()
	if err != nil || old != nil {
		return err
	}
	if c.Attempts == nil {
		if c.Attempts, err = r.newest(c.Jobs); err != nil {
			return err
		}
	}
	return r.writeReserved(CancelFile, c)
}

// newest are the numbers of the newest attempts at jobs.
func (r *Run) newest(jobs []string) (map[string]int, error) {
	numbers := map[string]int{}
	for _, j := range jobs {
		n, err := r.LastAttempt(j)
		if err != nil {
			return nil, err
		}
		numbers[j] = n
	}
	return numbers, nil
}

// ReadCancel returns the request to end the run that stands, or nil when there is
// none.
func (r *Run) ReadCancel() (*evidence.Cancel, error) {
	var c evidence.Cancel
	found, err := readJSON(filepath.Join(r.Dir, CancelFile), &c)
	if err != nil || !found {
		return nil, err
	}
	return &c, nil
}

// ReadCancels returns all requests to end the run, those that were lifted first.
func (r *Run) ReadCancels() ([]evidence.Cancel, error) {
	var out []evidence.Cancel
	for n := 1; ; n++ {
		var c evidence.Cancel
		found, err := readJSON(r.liftedFile(n), &c)
		if err != nil {
			return nil, err
		}
		if !found {
			break
		}
		out = append(out, c)
	}
	c, err := r.ReadCancel()
	if c != nil {
		out = append(out, *c)
	}
	return out, err
}

// LiftCancel makes a request to end the run one of the past: what has not been judged
// is to run after all. Without a request it does nothing.
func (r *Run) LiftCancel() error {
	c, err := r.ReadCancel()
	if err != nil || c == nil {
		return err
	}
	if c.Until, err = r.newest(c.Jobs); err != nil {
		return err
	}
	lifted, err := r.ReadCancels()
	if err != nil {
		return err
	}
	// One that was lifted before a crash kept the file of the standing one is there
	// twice, which does no harm.
	if err := durable.WriteJSON(r.liftedFile(len(lifted)), c, r.FileMode()); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(r.Dir, CancelFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return durable.SyncDir(r.Dir)
}

func (r *Run) liftedFile(n int) string {
	return filepath.Join(r.Dir, fmt.Sprintf("cancel-%d.json", n))
}
