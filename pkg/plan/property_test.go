package plan_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"assay/pkg/card"
	"assay/pkg/launcher"
	"assay/pkg/manifest"
	"assay/pkg/plan"
)

// keys gives keys of all kinds, many of them alike once their odd letters are
// replaced.
func keys() *rapid.Generator[[]string] {
	odd := rapid.StringOfN(rapid.SampledFrom([]rune("aA._-/: \\\n\x00é\u202e")), 0, 4, -1)
	key := rapid.OneOf(odd, rapid.String(), rapid.StringN(70, 120, -1), rapid.SampledFrom([]string{".", "..", "", "con", "a-ca978112"}))
	return rapid.SliceOfNDistinct(key, 1, 20, rapid.ID[string])
}

// manifestOf makes a manifest that can be planned, with a change to each entry.
func manifestOf(keys []string, change func(i int, e *manifest.Entry)) *manifest.Manifest {
	m := &manifest.Manifest{Images: map[string]manifest.Image{}}
	for i, k := range keys {
		e := manifest.Entry{Key: k, Model: manifest.Model{Card: card.Card{Name: "m", Command: []string{"true"}}}}
		if change != nil {
			change(i, &e)
		}
		m.Images[k] = manifest.Image{}
		m.Models = append(m.Models, e)
	}
	return m
}

func TestIDsAreDistinctDirectoryNames(t *testing.T) {
	shape := regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,79}$`)
	rapid.Check(t, func(t *rapid.T) {
		jobs, _, err := plan.Jobs(manifestOf(keys().Draw(t, "keys"), nil), plan.Options{ManifestDir: "/m"})
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]string{}
		for _, j := range jobs {
			if !shape.MatchString(j.ID) || j.ID != filepath.Base(j.ID) {
				t.Fatalf("key %q has the id %q", j.Key, j.ID)
			}
			if other, dup := seen[strings.ToLower(j.ID)]; dup {
				t.Fatalf("keys %q and %q have the same id %q", other, j.Key, j.ID)
			}
			seen[strings.ToLower(j.ID)] = j.Key
		}
	})
}

// TestIDsCannotBeTaken has a key whose id another key already is.
func TestIDsCannotBeTaken(t *testing.T) {
	ids := func(keys ...string) []string {
		jobs, _, err := plan.Jobs(manifestOf(keys, nil), plan.Options{ManifestDir: "/m"})
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, j := range jobs {
			ids = append(ids, j.ID)
		}
		return ids
	}
	alone := ids("a/b")[0]
	got := ids("a/b", alone, alone+"-2")
	if diff := cmp.Diff([]string{alone + "-3", alone, alone + "-2"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestWorldSizeIsNodesTimesRanks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nnodes, nproc := rapid.IntRange(-1, 300).Draw(t, "nnodes"), rapid.IntRange(-1, 300).Draw(t, "nproc")
		name := rapid.SampledFrom(launcher.Names()).Draw(t, "launcher")
		m := manifestOf([]string{"a"}, func(_ int, e *manifest.Entry) {
			e.Distributed = &card.Distributed{Launcher: name, NNodes: card.Int{Value: nnodes, Set: true}, NProcPerNode: card.Int{Value: nproc, Set: true}}
		})
		l, err := launcher.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		ranks := l.RanksPerNode(nproc)
		possible := nnodes >= 1 && nproc >= 1 && nnodes*ranks <= 65536 && !l.SlurmOnly
		jobs, _, err := plan.Jobs(m, plan.Options{ManifestDir: "/m"})
		if (err == nil) != possible {
			t.Fatalf("%d × %d under %s: %v", nnodes, nproc, name, err)
		}
		if err == nil && (jobs[0].WorldSize != nnodes*ranks || jobs[0].Expect.WorldSize != jobs[0].WorldSize || jobs[0].RanksPerNode != ranks) {
			t.Fatalf("%d × %d under %s: %+v", nnodes, nproc, name, jobs[0])
		}
	})
}

func TestJobsAreDeterministicAndSurviveJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String()
		env := rapid.MapOf(rapid.StringMatching(`[A-Z_]{1,8}`), rapid.StringMatching(`[^\x00]{0,8}`)).Draw(t, "env")
		args := rapid.SliceOf(rapid.StringMatching(`[^\x00]{0,8}`)).Draw(t, "args")
		name := text.Filter(func(s string) bool { return s != "" }).Draw(t, "name")
		m := manifestOf(keys().Draw(t, "keys"), func(_ int, e *manifest.Entry) {
			e.Name, e.Command, e.Scripts = name, nil, "run.sh"
			e.Args = card.Args{IsList: true, List: args}
			e.EnvVars = map[string]card.Scalar{}
			for k, v := range env {
				e.EnvVars[k] = card.Scalar(v)
			}
		})
		opt := plan.Options{ManifestDir: "/m"}
		first, _, err := plan.Jobs(m, opt)
		if err != nil {
			t.Fatal(err)
		}
		second, _, _ := plan.Jobs(m, opt)
		if diff := cmp.Diff(first, second); diff != "" {
			t.Fatal(diff)
		}
		data, err := json.Marshal(first)
		if err != nil {
			t.Fatal(err)
		}
		var read []plan.Job
		if err := json.Unmarshal(data, &read); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(first, read, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("a job does not survive JSON (-before +after):\n%s", diff)
		}
	})
}

func TestEnvironmentPrecedence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := [3]bool{rapid.Bool().Draw(t, "context"), rapid.Bool().Draw(t, "deployment"), rapid.Bool().Draw(t, "model")}
		vars := func(i int, value string) map[string]card.Scalar {
			if !in[i] {
				return nil
			}
			return map[string]card.Scalar{"X": card.Scalar(value)}
		}
		m := manifestOf([]string{"a", "b"}, func(i int, e *manifest.Entry) {
			if i == 0 {
				e.EnvVars = vars(2, "model")
			}
		})
		m.Context.DockerEnvVars, m.Deployment.EnvVars = vars(0, "context"), vars(1, "deployment")
		want := [2]string{}
		for i, value := range []string{"context", "deployment"} {
			if in[i] {
				want = [2]string{value, value}
			}
		}
		if in[2] {
			want[0] = "model"
		}
		jobs, _, err := plan.Jobs(m, plan.Options{ManifestDir: "/m"})
		if err != nil {
			t.Fatal(err)
		}
		if got := [2]string{jobs[0].Env["X"], jobs[1].Env["X"]}; got != want {
			t.Fatalf("%v: X = %q, want %q", in, got, want)
		}
	})
}

func TestDescribeKeepsSecretsAndControlCharacters(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.SampledFrom([]string{"TOKEN", "secret", "PassWord", "PASSWD", "API_KEY", "CREDENTIALS", "AUTH", "PGPASS", "cred", "MYSQL_PWD", "PASSPHRASE"}).Draw(t, "part")
		name := rapid.StringMatching(`[A-Z_]{0,3}`).Draw(t, "before") + part + rapid.StringMatching(`[A-Z0-9_]{0,3}`).Draw(t, "after")
		odd := rapid.String().Draw(t, "odd")
		text := plan.Describe(plan.Job{
			ID: "a", Key: odd, Model: odd, Image: odd, ModelDir: odd, Program: plan.Program{Command: []string{odd, odd}},
			Env: map[string]string{name: "hunter2", "PLAIN": odd}, EnvFile: &plan.EnvFile{Path: odd},
		})
		if strings.Contains(text, "hunter2") || !strings.Contains(text, name+"=<set, not shown>") {
			t.Fatalf("the value of %s: %s", name, text)
		}
		for _, r := range text {
			if r != '\n' && (r < ' ' || r == 0x7f || r == '\u202e') {
				t.Fatalf("control character %q in %q", r, text)
			}
		}
	})
}

func TestRedactLeavesTheJobAsItWas(t *testing.T) {
	job := plan.Job{Env: map[string]string{"HF_TOKEN": "hunter2", "PLAIN": "x"}}
	shown := plan.Redact(job)
	if diff := cmp.Diff(map[string]string{"HF_TOKEN": "<set, not shown>", "PLAIN": "x"}, shown.Env); diff != "" {
		t.Error(diff)
	}
	if shown := plan.Redact(plan.Job{Env: map[string]string{"PWD": "/srv", "OLDPWD": "/"}}); shown.Env["PWD"] != "/srv" || shown.Env["OLDPWD"] != "/" {
		t.Errorf("directories are hidden: %v", shown.Env)
	}
	if job.Env["HF_TOKEN"] != "hunter2" {
		t.Error("the job itself was changed")
	}
}

func TestTheDirectoryMustBeAbsolute(t *testing.T) {
	if _, _, err := plan.Jobs(manifestOf([]string{"a"}, nil), plan.Options{ManifestDir: "here"}); err == nil {
		t.Error("a relative directory was taken")
	}
}

// FuzzJobs plans whatever decodes.
func FuzzJobs(f *testing.F) {
	f.Add([]byte(`{"built_images": {"a": {}}, "built_models": {"a": {"name": "a", "scripts": "x", "args": "b 'c'", "distributed": {"nnodes": 2}}}, "context": {}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := manifest.Decode(data)
		if err != nil {
			return
		}
		jobs, _, err := plan.Jobs(m, plan.Options{ManifestDir: "/m"})
		if err == nil && len(jobs) != len(m.Models) {
			t.Errorf("%d jobs of %d entries", len(jobs), len(m.Models))
		}
		for _, j := range jobs {
			_ = plan.Describe(j)
		}
	})
}

func BenchmarkJobs(b *testing.B) {
	var names []string
	for i := range 10000 {
		names = append(names, fmt.Sprintf("model-%d", i))
	}
	m := manifestOf(names, func(_ int, e *manifest.Entry) {
		e.Command, e.Scripts, e.Args = nil, "run.sh", card.Args{Text: "--a 'b c' --d e"}
	})
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := plan.Jobs(m, plan.Options{ManifestDir: "/m"}); err != nil {
			b.Fatal(err)
		}
	}
}
