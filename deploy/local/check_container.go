package local

import (
	"context"
	"fmt"
	"slices"

	"assay/deploy"
	"assay/pkg/container"
)

// checkContainers looks for what runs containers, and with time to spare for the
// images.
func (t *Target) checkContainers(ctx context.Context, req deploy.CheckRequest) []deploy.Finding {
	var found []deploy.Finding
	runners := map[string]container.CLI{}
	var seen []container.Image
	for _, j := range req.Jobs {
		c := j.Container
		if c == nil {
			continue
		}
		cli, known := runners[c.Runtime]
		if !known {
			var f deploy.Finding
			cli, f = t.checkRuntime(ctx, c.Runtime)
			runners[c.Runtime] = cli
			found = append(found, f)
		}
		image := container.Image{Name: c.Image, Pull: c.Pull, SHA: c.SHA, ID: c.ImageID}
		if cli.Path == "" || cli.Name == container.Apptainer || !req.Thorough || slices.Contains(seen, image) {
			continue
		}
		seen = append(seen, image)
		found = append(found, checkImage(ctx, cli, image))
	}
	if len(runners) > 0 {
		if err := container.CheckStatic(t.opt.Binary); err != nil {
			found = append(found, deploy.Finding{Subject: "assay", State: deploy.FindingProblem, Message: err.Error(), Unavailable: true})
		}
	}
	return found
}

func (t *Target) checkRuntime(ctx context.Context, want string) (container.CLI, deploy.Finding) {
	cli, err := container.FindRunner(ctx, t.opt.Env, want)
	if err != nil {
		return container.CLI{}, deploy.Finding{
			Subject: "container runtime", State: deploy.FindingProblem, Message: err.Error(),
			Fix: "--bare runs the scripts directly on this host", Unavailable: true,
		}
	}
	return cli, deploy.Finding{Subject: "container runtime", State: deploy.FindingOK, Message: fmt.Sprintf("is %s (%s)", cli.Name, cli.Path)}
}

func checkImage(ctx context.Context, cli container.CLI, image container.Image) deploy.Finding {
	f := deploy.Finding{Subject: "image " + image.Name, State: deploy.FindingOK}
	id, found, err := cli.Has(ctx, image)
	switch {
	case err != nil:
		f.State, f.Message = deploy.FindingUnknown, "could not be looked at: "+err.Error()
	case found:
		f.Message = "is here, as " + id
	case image.Pull == "":
		f.State, f.Message = deploy.FindingWarning, "is not here as it was recorded, and has no name in a registry: it will be pulled by its own name"
		f.Fix = "build it here, or push it with assay build --registry"
	default:
		f.State, f.Message = deploy.FindingWarning, "is not here as it was recorded: it will be pulled as "+image.Pull
	}
	return f
}
