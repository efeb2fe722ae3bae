package container_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay/pkg/container"
)

// argvCase is a file of testdata/argv: a container, and the words that each runtime is
// given for it.
type argvCase struct {
	Spec      container.Spec `json:"spec"`
	Env       []string       `json:"env,omitempty"`
	Docker    []string       `json:"docker"`
	Podman    []string       `json:"podman"`
	Apptainer []string       `json:"apptainer,omitempty"`
	Vars      []string       `json:"apptainer_env,omitempty"`
	Pyxis     []string       `json:"pyxis,omitempty"`
	Error     string         `json:"error,omitempty"` // of apptainer and pyxis
}

// TestArgv compares the words with those of the files. With UPDATE_GOLDEN set it writes
// them instead.
func TestArgv(t *testing.T) {
	paths, err := filepath.Glob("testdata/argv/*.json")
	if err != nil || len(paths) < 4 {
		t.Fatalf("%d cases (%v)", len(paths), err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".json"), func(t *testing.T) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var want argvCase
			if err := json.Unmarshal(data, &want); err != nil {
				t.Fatal(err)
			}
			got := argvCase{Spec: want.Spec, Env: want.Env, Docker: want.Spec.Create("docker"), Podman: want.Spec.Create("podman")}
			got.Apptainer, got.Vars, err = want.Spec.Apptainer(want.Env)
			if err != nil {
				got.Error = err.Error()
			}
			if got.Pyxis, err = container.Pyxis(want.Spec.Image, want.Spec.Mounts); err != nil && err.Error() != got.Error {
				t.Errorf("pyxis says %v, and apptainer %s", err, got.Error)
			}
			if os.Getenv("UPDATE_GOLDEN") != "" {
				out, err := json.MarshalIndent(got, "", "  ")
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, append(out, '\n'), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Error(d)
			}
		})
	}
}
