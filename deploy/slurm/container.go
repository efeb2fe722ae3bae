package slurm

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"assay/pkg/container"
	"assay/pkg/environ"
	"assay/pkg/plan"
)

// engineVariables are what the commands of container engines find their daemons,
// images and registries by. Passwords are in files that they name, never in them.
func engineVariables() []string {
	return []string{
		"DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "DOCKER_CERT_PATH", "DOCKER_TLS_VERIFY",
		"CONTAINER_HOST", "CONTAINERS_CONF", "CONTAINERS_STORAGE_CONF", "CONTAINERS_REGISTRIES_CONF", "REGISTRY_AUTH_FILE",
		"APPTAINER_CACHEDIR", "APPTAINER_TMPDIR", "SINGULARITY_CACHEDIR", "SINGULARITY_TMPDIR",
	}
}

// engineEnv is what the environment has of these, as KEY=VALUE.
func (s *scheduler) engineEnv() []string {
	var env []string
	for _, name := range engineVariables() {
		if v := environ.Get(s.opt.Env, name); v != "" {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// inPyxis reports whether SLURM itself runs the ranks of a job in containers.
func inPyxis(j plan.Job) bool { return j.Container != nil && !j.Container.Wrapped() }

// inContainer gives the options of srun for ranks that pyxis runs in containers: with
// the directory of the job, which later starts of it use as well, the wrapper, what is
// run, and what the manifest mounts.
func inContainer(a plan.Attempt, assay string) ([]string, error) {
	j := a.Job
	if !inPyxis(j) {
		return nil, nil
	}
	var mounts []container.Mount
	add := func(source, target string, readOnly bool) {
		if target != "/" && !slices.ContainsFunc(mounts, func(m container.Mount) bool { return m.Target == target }) {
			mounts = append(mounts, container.Mount{Source: source, Target: target, ReadOnly: readOnly})
		}
	}
	dir := filepath.Dir(a.Dir)
	add(dir, dir, false)
	add(assay, assay, true)
	for _, target := range slices.Sorted(maps.Keys(j.Container.Mounts)) {
		add(j.Container.Mounts[target], target, false)
	}
	add(j.ModelDir, j.ModelDir, false)
	if j.EnvFile != nil {
		add(j.EnvFile.Path, j.EnvFile.Path, true)
	}
	image := j.Container.Pull
	if image == "" {
		image = j.Container.Image
	}
	words, err := container.Pyxis(image, mounts)
	if err != nil {
		return nil, fmt.Errorf("job %s: %w", j.ID, err)
	}
	return words, nil
}
