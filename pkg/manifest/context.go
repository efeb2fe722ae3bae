package manifest

import (
	"encoding/json"

	"assay/pkg/card"
)

// Context is the context block: where and how models were built to run.
type Context struct {
	DockerEnvVars      map[string]card.Scalar     `json:"docker_env_vars"`
	DockerMounts       map[string]string          `json:"docker_mounts"` // container path → host path
	DockerBuildArg     map[string]json.RawMessage `json:"docker_build_arg"`
	DockerGPUs         Words                      `json:"docker_gpus"`
	GPUVendor          string                     `json:"gpu_vendor"` // "AMD", "NVIDIA" or empty
	GuestOS            string                     `json:"guest_os"`
	SkipPerfCollection Flag                       `json:"skip_perf_collection"`
	Tools              []Tool                     `json:"tools"`
	PreScripts         []Script                   `json:"pre_scripts"`
	PostScripts        []Script                   `json:"post_scripts"`
	EncapsulateScript  string                     `json:"encapsulate_script"` // words put before the script
}

// Script is a pre- or post-script: an object with a path and arguments, or only
// the path.
type Script struct {
	Path string
	Args card.Args
}

// UnmarshalJSON accepts {"path": …, "args": …} and a string.
func (s *Script) UnmarshalJSON(b []byte) error {
	*s = Script{}
	if len(b) > 0 && b[0] == '"' {
		return json.Unmarshal(b, &s.Path)
	}
	var object struct {
		Path string    `json:"path"`
		Args card.Args `json:"args"`
	}
	if err := json.Unmarshal(b, &object); err != nil {
		return err
	}
	s.Path, s.Args = object.Path, object.Args
	return nil
}

// Tool is a profiler or tracer that wraps the script: an object with a name and
// settings, or only the name.
type Tool struct {
	Name string
	Raw  json.RawMessage // as it stands
}

// UnmarshalJSON accepts {"name": …, …} and a string.
func (t *Tool) UnmarshalJSON(b []byte) error {
	*t = Tool{Raw: append(json.RawMessage(nil), b...)}
	if len(b) > 0 && b[0] == '"' {
		return json.Unmarshal(b, &t.Name)
	}
	var object struct {
		Name string `json:"name"`
	}
	if err := json.Unmarshal(b, &object); err != nil {
		return err
	}
	t.Name = object.Name
	return nil
}
