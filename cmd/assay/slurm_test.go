//go:build slurm

package main

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"assay/deploy/slurm/slurmtest"
)

// TestSlurm runs the built binary against a real cluster, in every way in which a
// job can end, and looks at what a user gets: exit code, verdict, rows of perf.csv
// and the record of what the scheduler said. The scenarios run at the same time,
// each with a directory of its own; most of them wait for the cluster, so give
// `go test` more than its default: -parallel 16.
func TestSlurm(t *testing.T) {
	bin := filepath.Join(slurmtest.Open(t).SharedDir(), "assay")
	cmd := exec.Command("go", "build", "-o", bin, "assay/cmd/assay")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // what is staged runs on every node
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, scenarios := range []map[string]func(*session){
		ends(), cancels(), recoveries(), places(), crowds(),
	} {
		for name, scenario := range scenarios {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				scenario(newSession(t, bin))
			})
		}
	}
	verdictCases(t, bin)
}

// session is one user in a directory of their own.
type session struct {
	*testing.T
	*slurmtest.Cluster
	bin string
	dir string
	env []string
	as  *slurmtest.User // nil: who runs the tests
}

func newSession(t *testing.T, bin string) *session {
	c := slurmtest.Open(t)
	s := &session{T: t, Cluster: c, bin: bin, dir: c.SharedDir(), env: append(c.Env(), "NO_COLOR=1")}
	t.Cleanup(s.endJobs)
	return s
}

// object is a JSON object.
type object = map[string]any

// entry is an entry of a manifest that runs a bash script.
func entry(script string) object { return object{"command": []string{"bash", "-c", script}} }

// oneJob is a manifest of one entry, named job. What is in slurm wins.
func oneJob(nodes int, model, slurm object) object {
	return manyJobs(map[string]object{"job": model}, merge(object{"nodes": nodes}, slurm))
}

func manyJobs(models map[string]object, slurm object) object {
	images, built := object{}, object{}
	for name, model := range models {
		images[name] = object{"docker_image": nil}
		built[name] = merge(object{"name": name}, model)
	}
	return object{
		"built_images": images, "built_models": built, "context": object{},
		"deployment_config": object{"target": "slurm", "slurm": merge(object{"partition": "main", "time": "5"}, slurm)},
	}
}

func merge(objects ...object) object {
	all := object{}
	for _, o := range objects {
		maps.Copy(all, o)
	}
	return all
}

// write makes a file in the session's directory; one that begins with #! can be
// executed.
func (s *session) write(name, text string) string {
	s.Helper()
	path := filepath.Join(s.dir, name)
	mode := os.FileMode(0o644)
	if strings.HasPrefix(text, "#!") {
		mode = 0o755
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		s.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		s.Fatal(err)
	}
	return path
}

func (s *session) writeManifest(m object) { s.Helper(); s.writeJSON("m.json", m) }

func (s *session) writeJSON(name string, value any) {
	s.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		s.Fatal(err)
	}
	s.write(name, string(data))
}
