package k8s

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"pgregory.net/rapid"

	"assay/deploy"
	"assay/pkg/exitcode"
	"assay/pkg/manifest"
	"assay/pkg/plan"
	"assay/pkg/rundir"
)

// attemptOf plans the manifest of an archive, whose files are in a directory of
// their own, and returns its only job as it is handed to a target. Lines of the
// archive's comment change files: exec, binary, link.
func attemptOf(t *testing.T, archive *txtar.Archive) plan.Attempt {
	t.Helper()
	dir := t.TempDir()
	for _, f := range archive.Files {
		at := filepath.Join(dir, f.Name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, f.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	prepareFiles(t, dir, string(archive.Comment))
	text, err := os.ReadFile(filepath.Join(dir, "build_manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	m, err := manifest.Decode(text)
	if err != nil {
		t.Fatal(err)
	}
	jobs, _, err := plan.Jobs(m, plan.Options{ManifestDir: dir, Nodes: namedNodes(string(archive.Comment))})
	if err != nil || len(jobs) != 1 {
		t.Fatalf("%d jobs: %v", len(jobs), err)
	}
	return plan.Attempt{
		Version: plan.AttemptVersion, RunID: "20260101-000000-abcdef", Nonce: "00112233445566778899aabbccddeeff", ManifestDigest: "sha256:0",
		Number: 1, Dir: "/runs/20260101-000000-abcdef/jobs/bench/1", Job: jobs[0],
	}
}

// namedNodes are those of the line nodes of a comment.
func namedNodes(comment string) []string {
	for line := range strings.Lines(comment) {
		if names, ok := strings.CutPrefix(strings.TrimSpace(line), "nodes "); ok {
			return strings.Split(names, ",")
		}
	}
	return nil
}

func prepareFiles(t *testing.T, dir, comment string) {
	t.Helper()
	for line := range strings.Lines(comment) {
		verb, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		at := filepath.Join(dir, name)
		var err error
		switch verb {
		case "exec":
			err = os.Chmod(at, 0o755)
		case "binary":
			err = os.WriteFile(at, []byte{0xff, 0, 1, '\n'}, 0o644)
		case "large":
			err = os.WriteFile(at, bytes.Repeat([]byte("0123456789abcde\n"), maxShipped/16+1), 0o644)
		case "link":
			err = os.Symlink(filepath.Join(dir, "shared.txt"), at)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func archives(t *testing.T, pattern string, atLeast int) map[string]*txtar.Archive {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) < atLeast {
		t.Fatalf("%d cases (%v)", len(paths), err)
	}
	out := map[string]*txtar.Archive{}
	for _, path := range paths {
		if out[path], err = txtar.ParseFile(path); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// yamlOf is the job.yaml among rendered files.
func yamlOf(t *testing.T, files []deploy.File) []byte {
	t.Helper()
	if len(files) != 2 || files[0].Name != rundir.JobFile || files[1].Name != jobYAML {
		t.Fatalf("files %v", files)
	}
	for _, f := range files {
		if f.Mode != 0o600 {
			t.Errorf("%s has mode %v", f.Name, f.Mode)
		}
	}
	return files[1].Data
}

// TestRender renders the job of each archive and compares what is submitted with
// the file beside it. What is read back from it is what was written.
func TestRender(t *testing.T) {
	for path, archive := range archives(t, "testdata/render/*.txtar", 12) {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			a := attemptOf(t, archive)
			target := New(Options{Host: "login-1"})
			files, err := target.Render(a)
			if err != nil {
				t.Fatal(err)
			}
			text := yamlOf(t, files)
			sameAs(t, strings.TrimSuffix(path, ".txtar")+".yaml", text)
			if bytes.Contains(text, []byte("never-written")) {
				t.Error("a value of the env_file is written down")
			}
			if again, err := target.Render(a); err != nil || !bytes.Equal(yamlOf(t, again), text) {
				t.Errorf("the second time it is another (%v)", err)
			}
			objects, err := decodeRendered(text)
			if err != nil {
				t.Fatal(err)
			}
			if again, err := objects.encode(); err != nil || !bytes.Equal(again, text) {
				t.Errorf("what was read back differs (%v):\n%s", err, cmp.Diff(string(text), string(again)))
			}
			var inPod plan.Attempt
			if err := json.Unmarshal([]byte(objects.ConfigMap.Data[rundir.JobFile]), &inPod); err != nil || inPod.Nonce != a.Nonce || inPod.Job.EnvFile != nil {
				t.Errorf("the job file of the pods: %+v, %v", inPod, err)
			}
		})
	}
}

// sameAs compares bytes with a file. With UPDATE_GOLDEN set it writes the file.
func sameAs(t *testing.T, path string, got []byte) {
	t.Helper()
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s differs (-want +got):\n%s", path, diff)
	}
}

// TestRenderRefuses compares what each archive is refused for with the last line of
// its comment.
func TestRenderRefuses(t *testing.T) {
	for path, archive := range archives(t, "testdata/refused/*.txtar", 10) {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			before, want, ok := strings.Cut(string(archive.Comment), "error: ")
			if !ok {
				t.Fatal("the case names no error")
			}
			_, err := New(Options{}).Render(attemptOf(t, archive))
			if err != nil && os.Getenv("UPDATE_GOLDEN") != "" {
				archive.Comment = []byte(before + "error: " + err.Error() + "\n")
				sameAs(t, path, txtar.Format(archive))
				return
			}
			if err == nil || exitcode.Of(err) != exitcode.Invalid || strings.TrimSpace(want) != err.Error() {
				t.Errorf("exit code %v, error\n%v\nwant\n%s", exitcode.Of(err), err, want)
			}
		})
	}
}

// TestDecodeRenderedIsStrict changes what was rendered.
func TestDecodeRenderedIsStrict(t *testing.T) {
	archive, err := txtar.ParseFile("testdata/render/minimal.txtar")
	if err != nil {
		t.Fatal(err)
	}
	files, err := New(Options{}).Render(attemptOf(t, archive))
	if err != nil {
		t.Fatal(err)
	}
	text := string(yamlOf(t, files))
	docs := strings.Split(text, separator)
	for name, changed := range map[string]string{
		"unknown field": strings.Replace(text, "completions:", "completion:", 1),
		"second job":    text + separator + docs[len(docs)-1],
		"other kind":    text + separator + "kind: Pod\n",
		"no job":        strings.Join(docs[:len(docs)-1], separator),
		"empty":         "",
		"no YAML":       text + separator + "{",
		"twice":         strings.Replace(text, "completions:", "completions: 2\n  completions:", 1),
	} {
		if changed == text {
			t.Fatalf("%s: nothing was changed", name)
		}
		if o, err := decodeRendered([]byte(changed)); err == nil {
			t.Errorf("%s: read as %s", name, fmt.Sprint(o))
		}
	}
}

// TestRunnerImageOfTheSite takes the runner image from the environment where the
// manifest names none.
func TestRunnerImageOfTheSite(t *testing.T) {
	for file, want := range map[string]string{"testdata/refused/no_runner.txtar": "site/runner:1", "testdata/render/minimal.txtar": "registry.example/assay-runner:1"} {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		files, err := New(Options{Env: []string{runnerVariable + "=site/runner:1"}}).Render(attemptOf(t, archive))
		if err != nil {
			t.Fatal(err)
		}
		if text := yamlOf(t, files); !bytes.Contains(text, []byte("image: "+want+"\n")) {
			t.Errorf("%s: no image %s in\n%s", file, want, text)
		}
	}
}

// expand does to a text what Kubernetes does to commands and variables of pods, for
// a pod in which every name has a value.
func expand(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '$' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		end := strings.IndexByte(s[i:], ')')
		switch {
		case s[i] == '$':
			b.WriteByte('$')
		case s[i] == '(' && end > 0:
			b.WriteString("expanded")
			i += end
		default:
			b.WriteString("$" + s[i:i+1])
		}
	}
	return b.String()
}

// TestEscape keeps every text as it is.
func TestEscape(t *testing.T) {
	if got := expand("$(A) $$(A) $A $"); got != "expanded $(A) $A $" {
		t.Fatalf("expand gives %q", got)
	}
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringMatching(`([$(){}A ]|\PC){0,20}`).Draw(t, "text")
		if got := expand(escape(s)); got != s {
			t.Fatalf("%q becomes %q", s, got)
		}
	})
}
