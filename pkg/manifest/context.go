package manifest

import (
	"bytes"
	stdjson "encoding/json"
	"errors"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"assay/pkg/card"
)

// Context is the context block: where and how models were built to run.
type Context struct {
	DockerEnvVars      card.Env                      `json:"docker_env_vars"`
	DockerMounts       map[string]string             `json:"docker_mounts"` // container path → host path
	DockerBuildArg     map[string]stdjson.RawMessage `json:"docker_build_arg"`
	DockerGPUs         card.Words                    `json:"docker_gpus"`
	GPUVendor          string                        `json:"gpu_vendor"` // "AMD", "NVIDIA" or empty
	GuestOS            string                        `json:"guest_os"`
	SkipPerfCollection card.Flag                     `json:"skip_perf_collection"`
	Tools              []Tool                        `json:"tools"`
	PreScripts         []Script                      `json:"pre_scripts"`
	PostScripts        []Script                      `json:"post_scripts"`
	EncapsulateScript  string                        `json:"encapsulate_script"` // words put before the script
}

// Script is a pre- or post-script: an object with a path and arguments, or only
// the path.
type Script struct {
	Path string    `json:"path"`
	Args card.Args `json:"args"`
}

// UnmarshalJSONFrom accepts {"path": …, "args": …} and a string.
func (s *Script) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	*s = Script{}
	switch dec.PeekKind() {
	case '"':
		return json.UnmarshalDecode(dec, &s.Path)
	case '{':
		type object Script
		return json.UnmarshalDecode(dec, (*object)(s))
	default:
		return &json.SemanticError{Err: errors.New("a script is an object with a path, or only the path")}
	}
}

// Tool is a profiler or tracer that wraps the script: an object with a name and
// settings, or only the name.
type Tool struct {
	Name string
	Raw  stdjson.RawMessage // as it stands
}

// UnmarshalJSONFrom accepts {"name": …, …} and a string.
func (t *Tool) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	kind := dec.PeekKind()
	raw, err := dec.ReadValue()
	if err != nil {
		return err
	}
	*t = Tool{Raw: stdjson.RawMessage(bytes.Clone(raw))}
	switch kind {
	case '"':
		return json.Unmarshal(raw, &t.Name)
	case '{':
		var object struct {
			Name string `json:"name"`
		}
		err := json.Unmarshal(raw, &object)
		t.Name = object.Name
		return within(dec.StackPointer(), err)
	default:
		return &json.SemanticError{JSONPointer: dec.StackPointer(), Err: errors.New("a tool is an object with a name, or only the name")}
	}
}
