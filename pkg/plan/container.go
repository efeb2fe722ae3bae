package plan

import (
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"assay/pkg/card"
	"assay/pkg/manifest"
)

// Container is how the ranks of a job run in containers.
type Container struct {
	Image     string            `json:"image"`              // name that the engine of a node may have it by
	Pull      string            `json:"pull,omitempty"`     // name in a registry; empty: it is not pulled by another name
	SHA       string            `json:"sha,omitempty"`      // recorded digest; empty: whatever has the name
	ImageID   string            `json:"image_id,omitempty"` // recorded id; that one is right too
	Runtime   string            `json:"runtime"`            // "auto", "docker", "podman", "apptainer" or "pyxis"
	Mounts    map[string]string `json:"mounts,omitempty"`   // container path → host path, both absolute
	Options   []string          `json:"options,omitempty"`  // of docker and podman, after ours
	GPUs      []string          `json:"gpus,omitempty"`     // numbers of the GPUs of a node; none: all that the job gets
	KeepAlive bool              `json:"keep_alive,omitempty"`
}

// The runtimes of containers. Auto is decided on the node.
const (
	RuntimeAuto      = "auto"
	RuntimeDocker    = "docker"
	RuntimePodman    = "podman"
	RuntimeApptainer = "apptainer"
	RuntimePyxis     = "pyxis"
)

// Wrapped reports whether a process outside of the container starts and watches it.
// With pyxis SLURM itself does.
func (c *Container) Wrapped() bool { return c != nil && c.Runtime != RuntimePyxis }

// ownStepsLauncher is the launcher whose script starts its own steps and containers.
const ownStepsLauncher = "slurm_multi"

// container fills how the ranks of an entry with an image run in containers.
func (p *planner) container(e manifest.Entry, job *Job) {
	if job.Image == "" || p.target == "k8s" {
		return
	}
	if job.Launcher == ownStepsLauncher {
		p.warn(e.Pointer("distributed", "launcher"), "%s starts its own steps, and the containers in them: its script runs on the first node itself, with the image in DOCKER_IMAGE_NAME", job.Launcher)
		if _, set := job.Env["DOCKER_IMAGE_NAME"]; !set {
			job.Env["DOCKER_IMAGE_NAME"] = job.Image
		}
		return
	}
	image := p.m.Images[e.Key]
	c := &Container{
		Image: image.DockerImage, Runtime: p.runtime(), Mounts: p.mounts(), GPUs: p.deviceNumbers(), KeepAlive: p.opt.KeepAlive,
		ImageID: image.ImageID, Pull: image.RegistryImage,
	}
	// Of an image that it built, madengine records the digest of the base under this name.
	if image.ImageID != "" || image.BaseDocker == "" {
		c.SHA = image.DockerSHA
	}
	at := e.Pointer("additional_docker_run_options")
	c.Options = p.runOptions(p.split(e.AdditionalDockerRunOptions, at), at)
	if len(c.Options) > 0 && (c.Runtime == RuntimeApptainer || c.Runtime == RuntimePyxis) {
		p.warn(at, "ignored: they are for docker and podman, and the runtime is %s", c.Runtime)
	}
	if c.KeepAlive && (c.Runtime == RuntimeApptainer || c.Runtime == RuntimePyxis) {
		p.fail("--keep-alive", fmt.Errorf("only docker and podman can keep a container, and the runtime is %s", c.Runtime))
	}
	if c.Runtime == RuntimePyxis && p.target != "slurm" {
		p.refuse(p.m.Deployment.Pointer("container_runtime"), "pyxis is a plugin of SLURM, and the target is %s", p.target)
	}
	if len(job.Modules) > 0 {
		p.warn(p.slurmPointer(e, "modules"), "modules do not reach into a container, and %q runs in one: none is loaded", e.Key)
		job.Modules = nil
	}
	job.Container = c
}

// words describes a container beyond its image.
func (c *Container) words() string {
	text := "by " + c.Runtime
	if c.Runtime == RuntimeAuto {
		text = "by docker, podman or apptainer, whichever a node has"
	}
	if c.Pull != "" {
		text += ", pulled as " + c.Pull + " where it is missing"
	}
	if c.SHA != "" {
		text += ", of digest " + c.SHA
	}
	if c.KeepAlive {
		text += ", kept when the rank has ended"
	}
	return text
}

// runtime is the container runtime that the manifest names.
func (p *planner) runtime() string {
	return p.oneOf(p.m.Deployment.ContainerRuntime, p.m.Deployment.Pointer("container_runtime"),
		RuntimeAuto, RuntimeDocker, RuntimePodman, RuntimeApptainer, RuntimePyxis)
}

// mounts are the docker_mounts. A host path may be relative to the manifest.
func (p *planner) mounts() map[string]string {
	out := map[string]string{}
	for _, inside := range slices.Sorted(maps.Keys(p.m.Context.DockerMounts)) {
		at, host := "/context/docker_mounts", p.m.Context.DockerMounts[inside]
		switch {
		case !path.IsAbs(inside):
			p.refuse(at, "%q is no absolute path in a container", inside)
		case host == "":
			p.refuse(at, "%s has no path on the host", inside)
		case strings.ContainsRune(inside+host, 0):
			p.refuse(at, "a path cannot hold a NUL character")
		case filepath.IsAbs(host):
			out[path.Clean(inside)] = filepath.Clean(host)
		default:
			out[path.Clean(inside)] = filepath.Join(p.opt.ManifestDir, host)
		}
	}
	return out
}

// deviceNumbers are the GPUs that the manifest singles out.
func (p *planner) deviceNumbers() []string {
	gpus, at := p.m.Deployment.DockerGPUs, p.m.Deployment.Pointer("docker_gpus")
	if len(gpus) == 0 {
		gpus, at = p.m.Context.DockerGPUs, "/context/docker_gpus"
	}
	if !restricts(gpus) {
		return nil
	}
	var out []string
	for _, word := range gpus {
		numbers, err := expandNumbers(word)
		if err != nil {
			p.refuse(at, "%w", err)
			return nil
		}
		out = append(out, numbers...)
	}
	return out
}

// expandNumbers reads one word of docker_gpus: numbers and ranges of them, separated
// by commas, or else the identity of a device.
func expandNumbers(words string) ([]string, error) {
	var out []string
	for word := range strings.SplitSeq(words, ",") {
		word = strings.TrimSpace(word)
		first, last, isRange := strings.Cut(word, "-")
		var from, to card.Int
		switch {
		case word == "" || strings.ContainsAny(word, "\"'\n\r\x00="):
			return nil, fmt.Errorf("%q names no GPU", words)
		case !isRange || from.UnmarshalJSON([]byte(first)) != nil || to.UnmarshalJSON([]byte(last)) != nil:
			out = append(out, word)
			continue
		case from.Value < 0 || to.Value < from.Value || to.Value > maxWorldSize:
			return nil, fmt.Errorf("%q is no range of GPUs", word)
		}
		for n := from.Value; n <= to.Value; n++ {
			out = append(out, fmt.Sprint(n))
		}
	}
	return out, nil
}

// switches are the options of docker run that take no value.
func switches() []string {
	return []string{"--privileged", "--init", "--read-only", "--publish-all", "-P", "--no-healthcheck", "--oom-kill-disable", "--disable-content-trust"}
}

// ownSwitches and ownOptions are ours to decide: containers are named, watched and
// removed by the wrapper of the rank.
func ownSwitches() []string {
	return []string{"--rm", "-d", "--detach", "--sig-proxy", "-i", "-t", "-it", "-ti", "--interactive", "--tty"}
}

func ownOptions() []string {
	return []string{"--name", "--cidfile", "--restart", "--pull", "--detach-keys", "-a", "--attach"}
}

// runOptions are the user's options of docker run without those that would take the
// container out of our hands. What is neither an option nor the value of one would be
// taken for the image, so it is refused.
func (p *planner) runOptions(words []string, at string) []string {
	var keep []string
	for i := 0; i < len(words); {
		name, _, _ := strings.Cut(words[i], "=")
		if len(name) < 2 || name[0] != '-' || name == "--" {
			p.refuse(at, "%q is no option of docker run, nor the value of one", words[i])
			return nil
		}
		if name == "--entrypoint" {
			p.refuse(at, "--entrypoint cannot be given: the wrapper of the rank is the entry point; put the program into scripts or command")
			return nil
		}
		n := optionWords(words[i])
		if i+n > len(words) {
			p.refuse(at, "%s has no value", words[i])
			return nil
		}
		if slices.Contains(ownSwitches(), name) || slices.Contains(ownOptions(), name) {
			p.warn(at, "%s is ignored: containers are named, watched and removed by the wrapper of the rank", name)
		} else {
			keep = append(keep, words[i:i+n]...)
		}
		i += n
	}
	return keep
}

// optionWords is how many words an option takes with its value.
func optionWords(word string) int {
	name, _, joined := strings.Cut(word, "=")
	short := !strings.HasPrefix(name, "--")
	switch {
	case joined, slices.Contains(switches(), name), slices.Contains(ownSwitches(), name), short && len(name) > 2:
		return 1
	}
	return 2
}
