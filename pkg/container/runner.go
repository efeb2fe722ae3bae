package container

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"

	"assay/pkg/environ"
	"assay/pkg/exitcode"
)

// Apptainer is the name of the runtime that has no daemon: its command stays while
// the container runs.
const Apptainer = "apptainer"

// FindRunner looks for what can run a container: an engine as Find does, or
// apptainer, which auto takes when no engine works.
func FindRunner(ctx context.Context, env []string, want string) (CLI, error) {
	if want == Apptainer {
		return findApptainer(env)
	}
	c, err := Find(ctx, env, want)
	if err == nil || ctx.Err() != nil || want != "" && want != "auto" {
		return c, err
	}
	a, aerr := findApptainer(env)
	if aerr != nil {
		return c, exitcode.With(exitcode.Error, fmt.Errorf("%w; %w", err, aerr))
	}
	return a, nil
}

// findApptainer looks for the command, also by its older name.
func findApptainer(env []string) (CLI, error) {
	for _, name := range []string{Apptainer, "singularity"} {
		for _, dir := range filepath.SplitList(environ.Get(env, "PATH")) {
			path, err := exec.LookPath(filepath.Join(dir, name))
			if err == nil && filepath.IsAbs(path) {
				return CLI{Name: Apptainer, Path: path, Env: env}, nil
			}
		}
	}
	return CLI{}, exitcode.With(exitcode.Error, errors.New("there is no apptainer in PATH"))
}
