package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"assay/pkg/container"
	"assay/pkg/plan"
	"assay/pkg/procfs"
	"assay/pkg/run"
	"assay/pkg/rundir"
)

// leftContainers looks for containers that ranks left on this machine: kept on
// purpose, or because the process that watched them was killed. With remove they are
// removed.
func (a *app) leftContainers(ctx context.Context, remove bool) (found []orphan, problems []error) {
	for _, name := range []string{plan.RuntimeDocker, plan.RuntimePodman} {
		cli, err := container.Find(ctx, a.Env, name)
		if err != nil {
			continue // nothing of ours runs with what does not work here
		}
		states, err := cli.Ours(ctx)
		if err != nil {
			problems = append(problems, fmt.Errorf("containers could not be listed: %w", err))
		}
		for _, s := range states {
			o, err := a.leftContainer(ctx, cli, s, remove)
			if err != nil {
				problems = append(problems, fmt.Errorf("container %s: %w", s.Name, err))
			}
			if o != nil {
				found = append(found, *o)
			}
		}
	}
	return found, problems
}

// leftContainer looks at one container; nil means that it is somebody's.
func (a *app) leftContainer(ctx context.Context, cli container.CLI, s container.State, remove bool) (*orphan, error) {
	if watched(s.Labels[container.LabelWrapper]) {
		return nil, nil
	}
	// runs/<run>/jobs/<job>/<attempt>
	dir := filepath.Dir(filepath.Dir(filepath.Dir(s.Labels[container.LabelDir])))
	o := &orphan{RunID: s.Labels[container.LabelRun], Dir: dir, Container: s.Name, Kept: s.Labels[container.LabelKeep] == "true", far: true}
	if host, err := os.Hostname(); err != nil || host != s.Labels[container.LabelHost] {
		o.Elsewhere = s.Labels[container.LabelHost]
		return o, err
	}
	r, err := rundir.Open(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		o.Lost = true
	case err != nil:
		return nil, nil // another user's, most likely
	case r.Ledger.Nonce != s.Labels[container.LabelNonce]:
		o.Lost = true
	case s.Running && goesOn(r):
		return nil, nil
	default:
		o.Over = true
	}
	if !remove {
		return o, nil
	}
	err = cli.Remove(ctx, s.ID)
	o.Removed = err == nil
	return o, err
}

// goesOn reports whether a run is driven, or has jobs without a verdict: who attaches
// to it goes on with what its containers do.
func goesOn(r *rundir.Run) bool {
	unlock, err := r.Lock()
	if err != nil {
		return errors.Is(err, rundir.ErrLocked)
	}
	defer unlock()
	return run.Judge(r).Pending() > 0
}

// watched reports whether the process that a label names still runs.
func watched(label string) bool {
	pid, start, boot, ok := container.ParseWrapperID(label)
	if !ok {
		return false
	}
	now, err := procfs.BootID()
	return err == nil && now == boot && procfs.Handle{PID: pid, Start: start}.Alive()
}

// describeContainer says what became of a container, or what can be done about it.
func (o orphan) describeContainer() string {
	why := "was left by a process that was killed"
	if o.Kept {
		why = "was kept"
	}
	switch {
	case o.Elsewhere != "":
		return fmt.Sprintf("container %s was made on %s: run gc there", o.Container, o.Elsewhere)
	case o.Removed:
		return fmt.Sprintf("container %s %s, and has been removed", o.Container, why)
	}
	return fmt.Sprintf("container %s %s; remove it with: assay gc --cancel", o.Container, why)
}
