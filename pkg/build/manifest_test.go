package build_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"assay/pkg/build"
	"assay/pkg/discover"
	"assay/pkg/exitcode"
)

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func find(t testing.TB, root string) []discover.Found {
	t.Helper()
	res, err := discover.Find(context.Background(), discover.Options{Root: root})
	if err != nil {
		t.Fatal(err)
	}
	return res.Cards
}

// The order of keys in card files and context, and of cards in a file but for
// the summary, leaves no trace in the bytes.
func TestSameInputSameBytes(t *testing.T) {
	pairs := []string{`"name": "a"`, `"scripts": "s.sh"`, `"n_gpus": "-1"`, `"env_vars": {"X": 1, "A": 2}`, `"zz": [1.0, null]`, `"args": null`}
	context1 := []string{`"slurm": {"nodes": 1, "partition": "p"}`, `"gpu_vendor": "AMD"`, `"own": 1e2`, `"dbug": true`, `"docker_mount": {}`}
	var want []byte
	var warnings []string
	rapid.Check(t, func(rt *rapid.T) {
		root := t.TempDir()
		card := strings.Join(rapid.Permutation(pairs).Draw(rt, "card"), ",\n")
		write(t, root+"/models.json", "[{"+card+"}]")
		additional, err := build.ParseContext("{"+strings.Join(rapid.Permutation(context1).Draw(rt, "context"), ", ")+"}", "")
		if err != nil {
			rt.Fatal(err)
		}
		res, err := build.Manifest(context.Background(), build.Options{
			Cards: find(t, root), Root: root, Output: filepath.Join(root, "m.json"), Context: additional, Validate: accept,
		})
		if err != nil {
			rt.Fatal(err)
		}
		for i := range res.Warnings {
			res.Warnings[i] = strings.ReplaceAll(res.Warnings[i], root, "")
		}
		if want == nil {
			want, warnings = res.JSON, res.Warnings
		}
		if diff := cmp.Diff(string(want), string(res.JSON)); diff != "" {
			rt.Fatal(diff)
		}
		if diff := cmp.Diff(warnings, res.Warnings); diff != "" {
			rt.Fatal(diff)
		}
	})
}

// Building does not change what it was given: a second build gives the same.
func TestInputIsNotChanged(t *testing.T) {
	root := t.TempDir()
	write(t, root+"/models.json", `[{"name": "a", "scripts": "s.sh", "git_commit": "x"}]`)
	additional, err := build.ParseContext(`{"env_file": "e", "deployment_config": {"env_vars": {"A": 1}}, "env_vars": {"B": 2}}`, "")
	if err != nil {
		t.Fatal(err)
	}
	o := build.Options{Cards: find(t, root), Root: root, Output: filepath.Join(root, "x/m.json"), Context: additional}
	before := fmt.Sprint(o)
	first, err1 := build.Manifest(context.Background(), o)
	second, err2 := build.Manifest(context.Background(), o)
	if err1 != nil || err2 != nil || !bytes.Equal(first.JSON, second.JSON) {
		t.Fatalf("%v, %v, equal: %v", err1, err2, bytes.Equal(first.JSON, second.JSON))
	}
	if after := fmt.Sprint(o); after != before {
		t.Errorf("changed from\n%s to\n%s", before, after)
	}
}

// Wherever the manifest lies, the program is where the manifest says.
func TestScriptsAreFoundFromTheManifest(t *testing.T) {
	base := t.TempDir()
	root := filepath.Join(base, "a", "models root")
	write(t, root+"/models.json", `[{"name": "a", "scripts": "sub/s.sh"}]`)
	write(t, root+"/sub/s.sh", "")
	write(t, root+"/conf.env", "")
	for _, output := range []string{"a/models root/m.json", "a/models root/out/m.json", "m.json", "a/m.json", "b/c/d/m.json"} {
		res, err := build.Manifest(context.Background(), build.Options{
			Cards: find(t, root), Root: root, Output: filepath.Join(base, output), Context: map[string]any{"env_file": "conf.env"},
		})
		if err != nil || len(res.Warnings) > 0 {
			t.Fatal(err, res.Warnings)
		}
		var m struct {
			ModelDir   string                              `json:"model_dir"`
			Models     map[string]struct{ Scripts string } `json:"built_models"`
			Deployment struct {
				EnvFile string `json:"env_file"`
			} `json:"deployment_config"`
		}
		if err := json.Unmarshal(res.JSON, &m); err != nil {
			t.Fatal(err)
		}
		dir := filepath.Dir(filepath.Join(base, output))
		for _, path := range []string{filepath.Join(dir, m.ModelDir, m.Models["a"].Scripts), filepath.Join(dir, m.Deployment.EnvFile)} {
			if _, err := os.Stat(path); err != nil {
				t.Errorf("manifest %s: %v", output, err)
			}
		}
	}
}

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "m.json")
	for _, text := range []string{"first", "second"} {
		if err := build.Write(path, []byte(text)); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil || string(got) != text {
			t.Fatalf("got %q, %v", got, err)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v; want 0600", info.Mode(), err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
	for name, bad := range map[string]string{"a directory": dir, "no parent": filepath.Join(dir, "x", "m.json"), "below a file": filepath.Join(path, "m.json")} {
		if err := build.Write(bad, nil); exitcode.Of(err) != exitcode.Invalid {
			t.Errorf("%s: got %v, want INVALID", name, err)
		}
	}
}

func TestParseContextRefusesWhatIsNoFile(t *testing.T) {
	_, err := build.ParseContext("", t.TempDir())
	if exitcode.Of(err) != exitcode.Invalid || !strings.Contains(err.Error(), "it is no regular file") {
		t.Errorf("got %v", err)
	}
	got, err := build.ParseContext("", "")
	if err != nil || len(got) != 0 {
		t.Errorf("nothing given: got %v, %v", got, err)
	}
}

func TestReadRevision(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("git is needed")
		}
		t.Skip("git is not installed")
	}
	ctx := context.Background()
	outside := t.TempDir()
	if r, problem := build.ReadRevision(ctx, outside); r != (build.Revision{}) || problem != "" {
		t.Errorf("outside a repository: %v, %q", r, problem)
	}
	repo := t.TempDir()
	git := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-C", repo, "-c", "user.name=n", "-c", "user.email=e@x", "-c", "commit.gpgsign=false"}, args...)...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	git("init", "-q")
	if r, problem := build.ReadRevision(ctx, repo); r != (build.Revision{}) || problem != "" {
		t.Errorf("without a commit: %v, %q", r, problem)
	}
	write(t, repo+"/sub/tracked", "1")
	git("add", "-A")
	git("commit", "-q", "-m", "first")
	head := git("rev-parse", "HEAD")
	write(t, repo+"/untracked", "")
	if r, problem := build.ReadRevision(ctx, repo+"/sub"); r != (build.Revision{Commit: head}) || problem != "" {
		t.Errorf("clean: %v, %q; want %s", r, problem, head)
	}
	t.Setenv("GIT_DIR", outside) // as in a hook of another repository
	write(t, repo+"/sub/tracked", "2")
	if r, problem := build.ReadRevision(ctx, repo); r != (build.Revision{Commit: head, Dirty: true}) || problem != "" {
		t.Errorf("changed: %v, %q", r, problem)
	}
	t.Setenv("PATH", outside)
	if r, problem := build.ReadRevision(ctx, repo); r != (build.Revision{}) || !strings.Contains(problem, "not installed") {
		t.Errorf("without git: %v, %q", r, problem)
	}
}

// A git that hangs is given up, and costs a warning.
func TestReadRevisionEnds(t *testing.T) {
	bin := t.TempDir()
	write(t, bin+"/git", "#!/bin/sh\nexec /bin/sleep 1000\n")
	if err := os.Chmod(bin+"/git", fs.FileMode(0o755)); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if r, problem := build.ReadRevision(ctx, bin); r != (build.Revision{}) || problem == "" {
		t.Errorf("got %v, %q", r, problem)
	}
}

func BenchmarkManifest(b *testing.B) {
	root := b.TempDir()
	var cards []string
	for i := range 1000 {
		cards = append(cards, fmt.Sprintf(`{"name": "m%d", "scripts": "s.sh", "n_gpus": "-1", "tags": ["a"], "env_vars": {"A": "b"}}`, i))
	}
	write(b, root+"/models.json", "["+strings.Join(cards, ",\n")+"]")
	write(b, root+"/s.sh", "")
	o := build.Options{Cards: find(b, root), Root: root, Output: filepath.Join(root, "m.json")}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := build.Manifest(context.Background(), o); err != nil {
			b.Fatal(err)
		}
	}
}
