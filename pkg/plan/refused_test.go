package plan_test

import (
	"fmt"
	"testing"

	"assay/pkg/manifest"
	"assay/pkg/plan"
)

// refusal is why a manifest of one model and one test, with more text in them, is
// refused; empty when it is not.
func refusal(t *testing.T, entry, test string, opt plan.Options) string {
	t.Helper()
	m, err := manifest.Decode(fmt.Appendf(nil, `{"built_images": {"n": {}}, "context": {},
		"built_models": {"n": {"name": "n", "command": ["true"]%s}},
		"suite": {"name": "s", "max_concurrent_nodes": "all", "tests": [{"key": "n"%s}]}}`, entry, test))
	if err != nil {
		t.Fatal(err)
	}
	opt.ManifestDir = "/m"
	if _, _, err = plan.Jobs(m, opt); err != nil {
		return err.Error()
	}
	return ""
}

func TestRefused(t *testing.T) {
	for _, tt := range []struct {
		name        string
		entry, test string
		opt         plan.Options
		want        string // all of it
	}{
		{
			"axes of one variable", "", `, "variant": {"size": "1", "SIZE": "2", "other": "3"}`, plan.Options{},
			`manifest: /suite/tests/0/variant: the axes "SIZE" and "size" have one variable, ASSAY_VARIANT_SIZE, which can hold the value of one of them only; rename one`,
		},
		{"axes of two variables", "", `, "variant": {"size": "1", "size-x": "2"}`, plan.Options{}, ""},
	} {
		if got := refusal(t, tt.entry, tt.test, tt.opt); got != tt.want {
			t.Errorf("%s: %s\nwant %s", tt.name, got, tt.want)
		}
	}
}
