package k8s

import (
	"encoding/json"
	"testing"

	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"
)

// Whatever a text holds, it is read back as it was written.
func TestDocumentsKeepEveryText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text") + rapid.SampledFrom([]string{"", "\x7f", "\u0080", "\u0085", "\ufeff", "\x01", "\n---\n", "\uffff"}).Draw(t, "odd")
		doc, err := document(map[string]any{"data": map[string]string{"a": text}})
		if err != nil {
			t.Fatal(err)
		}
		var back struct{ Data map[string]string }
		data, err := yaml.YAMLToJSON(doc)
		if err == nil {
			err = json.Unmarshal(data, &back)
		}
		if err != nil || back.Data["a"] != text {
			t.Fatalf("%q came back as %q (%v) by\n%s", text, back.Data["a"], err, doc)
		}
	})
}
