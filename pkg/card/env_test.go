package card_test

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"assay/pkg/card"
)

func TestEnvLeavesOutRemarks(t *testing.T) {
	var c card.Card
	text := `{"env_vars": {"A": 1, "_comment": "x", "_comments": 1, "_note_2": "x", "_docs": "x", "_about": true, "_x": {"why": null}, "_y": ["z"],
		"_JAVA_OPTIONS": "-Xmx1g", "_docker_flags": "-i", "_": "sh", "_NOTE": "real"}}`
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		t.Fatal(err)
	}
	want := card.Env{"A": "1", "_JAVA_OPTIONS": "-Xmx1g", "_docker_flags": "-i", "_": "sh", "_NOTE": "real"}
	if diff := cmp.Diff(want, c.EnvVars); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestEnvRefuses(t *testing.T) {
	for text, want := range map[string]string{
		`{"A": null}`:        "null is no value for an environment variable",
		`{"_comment": null}`: "null is no value for an environment variable",
		`{"A": {"_x": 1}}`:   "a string, number or boolean is expected",
		`[]`:                 "JSON array",
	} {
		var e card.Env
		if err := json.Unmarshal([]byte(text), &e); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	var e card.Env
	if err := json.Unmarshal([]byte("null"), &e); err != nil || e != nil {
		t.Errorf("null: %v, %v", e, err)
	}
}
