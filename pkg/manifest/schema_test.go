package manifest_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay/pkg/card"
	"assay/pkg/manifest"
	"assay/schemas"
)

// TestStructsHaveTheFieldsOfTheSchema holds the schema and the Go structs
// together: a field that one has and the other has not is a mistake.
func TestStructsHaveTheFieldsOfTheSchema(t *testing.T) {
	text, err := schemas.Read("manifest")
	if err != nil {
		t.Fatal(err)
	}
	type object struct {
		Properties map[string]json.RawMessage
	}
	var schema struct {
		Defs map[string]object `json:"$defs"`
	}
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	for def, value := range map[string]any{
		"builtImage":       manifest.Image{},
		"builtModel":       manifest.Model{},
		"context":          manifest.Context{},
		"deploymentConfig": manifest.Deployment{},
		"script":           manifest.Script{},
		"slurm":            card.Slurm{},
		"pbs":              manifest.PBS{},
		"k8s":              manifest.K8s{},
		"suite":            manifest.Suite{},
		"suiteTest":        manifest.Test{},
		"suiteThresholds":  manifest.Thresholds{},
	} {
		var want []string
		for name := range schema.Defs[def].Properties {
			want = append(want, name)
		}
		slices.Sort(want)
		if diff := cmp.Diff(want, fields(reflect.TypeOf(value))); diff != "" {
			t.Errorf("%s and %T (-schema +struct):\n%s", def, value, diff)
		}
	}
	for _, name := range fields(reflect.TypeFor[card.Distributed]()) {
		if _, ok := schema.Defs["distributed"].Properties[name]; !ok {
			t.Errorf("distributed has no %s in the schema", name)
		}
	}
}

// fields returns the JSON names of the exported fields of a struct, sorted.
func fields(t reflect.Type) []string {
	var names []string
	for _, f := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
