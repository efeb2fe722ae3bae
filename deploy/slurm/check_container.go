package slurm

import (
	"context"
	"slices"
	"strings"

	"assay/deploy"
	"assay/pkg/container"
	"assay/pkg/plan"
)

// containerFindings are about what this machine can tell of ranks in containers: what
// runs them is on the nodes.
func (t *Target) containerFindings(ctx context.Context, req deploy.CheckRequest) []deploy.Finding {
	var found []deploy.Finding
	if slices.ContainsFunc(req.Jobs, func(j plan.Job) bool { return j.Container.Wrapped() }) {
		binary := req.RankBinary
		if binary == "" {
			binary = t.s.opt.Binary
		}
		if err := container.CheckStatic(binary); err != nil {
			found = append(found, outage("assay", err.Error(), ""))
		}
	}
	if slices.ContainsFunc(req.Jobs, inPyxis) {
		found = append(found, t.s.pyxisFinding(ctx))
	}
	return found
}

// pyxisFinding asks srun whether it has the options of pyxis.
func (s *scheduler) pyxisFinding(ctx context.Context) deploy.Finding {
	const subject = "pyxis"
	out, err := s.tools.run(ctx, nil, "srun", "--help")
	switch {
	case err != nil:
		return unknown(subject, err)
	case strings.Contains(out, "--container-image"):
		return ok(subject, "srun has --container-image")
	}
	return outage(subject, "srun has no --container-image: the plugin pyxis is not configured here", "name another container_runtime, such as docker or apptainer")
}
