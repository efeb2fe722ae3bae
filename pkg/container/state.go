package container

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// ErrGone says that there is no such container.
var ErrGone = errors.New("there is no such container")

// State is a container as its engine has it.
type State struct {
	ID, Name string
	Labels   map[string]string
	Status   string // the engine's word: "created", "running", "exited" …
	Running  bool
	Started  bool   // it was started at all
	ExitCode int    // of one that ended
	OOM      bool   // a process in it was killed because of its memory limit
	Memory   int64  // that limit in bytes; 0: none
	Error    string // why it could not be started
}

// inspected is what docker and podman print of a container.
type inspected struct {
	ID    string `json:"Id"`
	Name  string
	State struct {
		Status    string
		Running   bool
		OOMKilled bool
		ExitCode  int
		Error     string
		StartedAt string
	}
	Config     struct{ Labels map[string]string }
	HostConfig struct{ Memory int64 }
}

// State looks at a container. The error is ErrGone when there is none.
func (c CLI) State(ctx context.Context, id string) (State, error) {
	states, err := c.states(ctx, []string{id})
	if err != nil {
		return State{}, err
	}
	if len(states) != 1 {
		return State{}, fmt.Errorf("%s inspect gave %d containers instead of one", c.Name, len(states))
	}
	return states[0], nil
}

func (c CLI) states(ctx context.Context, ids []string) ([]State, error) {
	out, err := c.Output(ctx, append([]string{"container", "inspect"}, ids...)...)
	var failed *Failure
	if errors.As(err, &failed) && absent(failed) {
		err = ErrGone
	}
	var list []inspected
	if jerr := json.Unmarshal([]byte(out), &list); jerr != nil && err == nil {
		err = fmt.Errorf("%s container inspect: its answer cannot be read: %w", c.Name, jerr)
	}
	states := make([]State, len(list))
	for i, s := range list {
		states[i] = State{
			ID: s.ID, Name: strings.TrimPrefix(s.Name, "/"), Labels: s.Config.Labels, Status: s.State.Status, Running: s.State.Running,
			Started: s.State.StartedAt != "" && !strings.HasPrefix(s.State.StartedAt, "0001-"), ExitCode: s.State.ExitCode,
			OOM: s.State.OOMKilled, Memory: s.HostConfig.Memory, Error: s.State.Error,
		}
	}
	return states, err
}

// Ours lists the containers of assay that the engine has, of all runs.
func (c CLI) Ours(ctx context.Context) ([]State, error) {
	out, err := c.Output(ctx, "ps", "--all", "--quiet", "--no-trunc", "--filter", "label="+LabelNonce)
	if err != nil {
		return nil, err
	}
	ids := strings.Fields(out)
	if len(ids) == 0 {
		return nil, nil
	}
	states, err := c.states(ctx, ids)
	if errors.Is(err, ErrGone) { // one of them, meanwhile
		err = nil
	}
	return states, err
}

// Remove ends a container, if it runs, and removes it. One that is not there is no
// error.
func (c CLI) Remove(ctx context.Context, id string) error {
	_, err := c.Output(ctx, "rm", "--force", "--volumes", id)
	var failed *Failure
	if errors.As(err, &failed) && absent(failed) {
		return nil
	}
	return err
}

// Signal sends a signal, such as "TERM", to the first process of a container.
func (c CLI) Signal(ctx context.Context, id, name string) error {
	_, err := c.Output(ctx, "kill", "--signal", name, id)
	return err
}
