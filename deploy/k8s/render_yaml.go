package k8s

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// rendered are the objects of a job. It has either a Job or a JobSet.
type rendered struct {
	Service   *corev1.Service
	ConfigMap *corev1.ConfigMap
	Secret    *corev1.Secret // without data; nil when there is nothing to put in
	Job       *batchv1.Job
	JobSet    map[string]any
}

const (
	separator     = "---\n"
	headerComment = "# What assay submits. kubectl apply -f takes it too.\n"
	//nolint:gosec // it is about secrets, and none
	secretComment = "# The values of the env_file and of variables that look like secrets are put in when the job is submitted.\n"
)

// encode writes the objects as documents of YAML, in the order in which kubectl
// should create them.
func (o rendered) encode() ([]byte, error) {
	var out bytes.Buffer
	out.WriteString(headerComment)
	for _, doc := range []struct {
		comment string
		object  any
		given   bool
	}{
		{"", o.Service, o.Service != nil},
		{"", o.ConfigMap, o.ConfigMap != nil},
		{secretComment, o.Secret, o.Secret != nil},
		{"", o.Job, o.Job != nil},
		{"", o.JobSet, o.JobSet != nil},
	} {
		if !doc.given {
			continue
		}
		text, err := document(doc.object)
		if err != nil {
			return nil, err
		}
		out.WriteString(separator + doc.comment)
		out.Write(text)
	}
	return out.Bytes(), nil
}

// document is an object as YAML, without what only a server fills.
func document(object any) ([]byte, error) {
	data, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	var tree map[string]any
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	if err := dec.Decode(&tree); err != nil {
		return nil, err
	}
	delete(tree, "status")
	dropTimes(tree)
	if data, err = json.Marshal(tree); err != nil {
		return nil, err
	}
	if escaped := escapeUnprintable(data); len(escaped) > len(data) {
		return append(escaped, '\n'), nil // readers of YAML refuse such characters however they are quoted, and JSON is YAML
	}
	return yaml.JSONToYAML(data)
}

// escapeUnprintable escapes in JSON the characters that no YAML may hold as they are,
// or that end its lines (YAML 1.1, 5.1 and 5.4). They can only stand in strings.
func escapeUnprintable(data []byte) []byte {
	var out []byte
	from := 0
	for i, r := range string(data) {
		control := r >= 0x7f && r <= 0x9f // U+0085 is one, and ends a line of YAML
		if !control && r != 0x2028 && r != 0x2029 && r != 0xfeff && r != 0xfffe && r != 0xffff {
			continue
		}
		out = append(append(out, data[from:i]...), fmt.Sprintf(`\u%04x`, r)...)
		from = i + utf8.RuneLen(r)
	}
	return append(out, data[from:]...)
}

// dropTimes removes the times of creation, which are null.
func dropTimes(tree map[string]any) {
	for name, value := range tree {
		switch v := value.(type) {
		case nil:
			if name == "creationTimestamp" {
				delete(tree, name)
			}
		case map[string]any:
			dropTimes(v)
		case []any:
			for _, item := range v {
				if m, ok := item.(map[string]any); ok {
					dropTimes(m)
				}
			}
		}
	}
}

// decodeRendered reads what encode wrote. Anything else in it is an error: what was
// rendered may have been changed by hand, and must then still mean something.
func decodeRendered(data []byte) (rendered, error) {
	var out rendered
	for i, doc := range bytes.Split(append([]byte("\n"), data...), []byte("\n"+separator)) {
		if i == 0 { // the header
			continue
		}
		if err := out.add(doc); err != nil {
			return rendered{}, fmt.Errorf("%s: document %d: %w", jobYAML, i, err)
		}
	}
	if out.Service == nil || out.ConfigMap == nil || (out.Job == nil) == (out.JobSet == nil) {
		return rendered{}, fmt.Errorf("%s: it needs a Service, a ConfigMap, and either a Job or a JobSet", jobYAML)
	}
	return out, nil
}

func (o *rendered) add(doc []byte) error {
	var kind struct {
		Kind string `json:"kind"`
	}
	if err := yaml.Unmarshal(doc, &kind); err != nil {
		return err
	}
	var into any
	var taken bool
	switch kind.Kind {
	case "Service":
		taken = o.Service != nil
		into = &o.Service
	case "ConfigMap":
		taken = o.ConfigMap != nil
		into = &o.ConfigMap
	case "Secret":
		taken = o.Secret != nil
		into = &o.Secret
	case "Job":
		taken = o.Job != nil
		into = &o.Job
	case "JobSet":
		taken = o.JobSet != nil
		into = &o.JobSet
	default:
		return fmt.Errorf("the kind %q is none of Service, ConfigMap, Secret, Job and JobSet", kind.Kind)
	}
	if taken {
		return fmt.Errorf("it is a second %s", kind.Kind)
	}
	return yaml.UnmarshalStrict(doc, into)
}
