package manifest

import (
	"bytes"
	"errors"
	"fmt"

	"assay/pkg/card"

	stdjson "encoding/json"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"assay/pkg/exitcode"
)

// document is the manifest as it lies in the file.
type document struct {
	BuiltImages         map[string]Image   `json:"built_images"`
	BuiltModels         entries            `json:"built_models"`
	Context             Context            `json:"context"`
	DeploymentConfig    Deployment         `json:"deployment_config"`
	CredentialsRequired card.Words         `json:"credentials_required"`
	Summary             stdjson.RawMessage `json:"summary"`
	Suite               stdjson.RawMessage `json:"suite"`
	ModelDir            string             `json:"model_dir"`

	Slurm       *card.Slurm  `json:"slurm"`
	PBS         *PBS         `json:"pbs"`
	K8s         *K8s         `json:"k8s"`
	Kubernetes  *K8s         `json:"kubernetes"`
	Distributed *Distributed `json:"distributed"`
}

// Decode reads a manifest. Names are matched as they are written, unknown ones
// are ignored. An error carries exitcode.Invalid and names the JSON pointer.
func Decode(data []byte) (*Manifest, error) {
	var d document
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if err := json.Unmarshal(data, &d); err != nil {
		return nil, exitcode.With(exitcode.Invalid, explain(err, data))
	}
	m := &Manifest{
		Images:              d.BuiltImages,
		Models:              d.BuiltModels,
		Context:             d.Context,
		Deployment:          d.DeploymentConfig,
		CredentialsRequired: d.CredentialsRequired,
		Summary:             present(d.Summary),
		Suite:               present(d.Suite),
		ModelDir:            d.ModelDir,
	}
	settle(&m.Deployment, d)
	return m, nil
}

// settle moves deployment blocks of the top level under the deployment, where
// it has none of its own, and the alias kubernetes to k8s.
func settle(dep *Deployment, d document) {
	dep.Verdict = present(dep.Verdict)
	dep.at = map[string]string{}
	if dep.Slurm == nil && d.Slurm != nil {
		dep.Slurm, dep.at["slurm"] = d.Slurm, "/slurm"
	}
	if dep.PBS == nil && d.PBS != nil {
		dep.PBS, dep.at["pbs"] = d.PBS, "/pbs"
	}
	if dep.Distributed == nil && d.Distributed != nil {
		dep.Distributed, dep.at["distributed"] = d.Distributed, "/distributed"
	}
	switch {
	case dep.K8s != nil:
	case dep.Kubernetes != nil:
		dep.K8s, dep.at["k8s"] = dep.Kubernetes, "/deployment_config/kubernetes"
	case d.K8s != nil:
		dep.K8s, dep.at["k8s"] = d.K8s, "/k8s"
	case d.Kubernetes != nil:
		dep.K8s, dep.at["k8s"] = d.Kubernetes, "/kubernetes"
	}
	dep.Kubernetes = nil
}

// present returns nil for a raw null.
func present(raw stdjson.RawMessage) stdjson.RawMessage {
	if string(raw) == "null" {
		return nil
	}
	return raw
}

// entries keeps built_models in the order of the document.
type entries []Entry

// UnmarshalJSONFrom reads an object of entries.
func (list *entries) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	*list = nil
	switch dec.PeekKind() {
	case 'n':
		return dec.SkipValue()
	case '{':
	default:
		return &json.SemanticError{Err: errors.New("an object of models by key is expected")}
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	for dec.PeekKind() != '}' {
		name, err := dec.ReadToken()
		if err != nil {
			return err
		}
		e := Entry{Key: name.String()}
		raw, err := dec.ReadValue()
		if err != nil {
			return err
		}
		if err := json.Unmarshal(raw, &e.Model); err != nil {
			return within(dec.StackPointer(), err)
		}
		*list = append(*list, e)
	}
	_, err := dec.ReadToken()
	return err
}

// within puts the pointer of a value before the pointer of an error inside it.
func within(at jsontext.Pointer, err error) error {
	var semantic *json.SemanticError
	if !errors.As(err, &semantic) {
		return err
	}
	inner := *semantic
	inner.JSONPointer = at + semantic.JSONPointer
	return &inner
}

// explain turns a library error into one sentence with a JSON pointer.
func explain(err error, data []byte) error {
	var semantic *json.SemanticError
	var syntax *jsontext.SyntacticError
	switch {
	case errors.As(err, &semantic):
		return fmt.Errorf("manifest: %s: %w", place(semantic.JSONPointer), reason(semantic))
	case errors.As(err, &syntax):
		line, column := position(data, syntax.ByteOffset)
		return fmt.Errorf("manifest: line %d, column %d (%s): not valid JSON: %w", line, column, place(syntax.JSONPointer), syntax.Err)
	}
	return fmt.Errorf("manifest: %w", err)
}

// position turns a byte offset into a line and a column in bytes, both from 1.
func position(data []byte, offset int64) (line, column int) {
	before := data[:min(max(offset, 0), int64(len(data)))]
	return bytes.Count(before, []byte("\n")) + 1, len(before) - bytes.LastIndexByte(before, '\n')
}

func place(p jsontext.Pointer) string {
	if p == "" {
		return "at the top"
	}
	return string(p)
}

func reason(e *json.SemanticError) error {
	if e.Err != nil {
		return e.Err
	}
	return fmt.Errorf("%s is not allowed here", kind(e.JSONKind))
}

func kind(k jsontext.Kind) string {
	switch k {
	case 'n':
		return "null"
	case 't', 'f':
		return "a boolean"
	case '"':
		return "a string"
	case '0':
		return "a number"
	case '[':
		return "a list"
	case '{':
		return "an object"
	default:
		return "this value"
	}
}
