package container_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"assay/pkg/container"
	"assay/pkg/exitcode"
)

// fake is a docker that answers from files: NAME.id and NAME.digest of an image it
// has, NAME.pull of one it may pull; it appends its arguments to calls.
const fake = `#!/bin/sh
cd "${0%/*}"
printf '%s\n' "$*" >>calls
for name; do :; done
file=$(printf %s "$name" | tr / _)
case $1 in
version) echo 1.0 ;;
image)
	[ -e "$file.id" ] || { echo "Error: No such image: $name" >&2; exit 1; }
	printf '[{"Id":"%s","RepoDigests":["%s"]}]\n' "$(cat "$file.id")" "$name@$(cat "$file.digest" 2>/dev/null)" ;;
pull)
	[ -e "$file.pull" ] || { echo "denied: $name" >&2; exit 1; }
	cp "$file.pull" "$file.id" ;;
esac
`

func engine(t *testing.T, files map[string]string) (container.CLI, string) {
	t.Helper()
	dir := t.TempDir()
	files["docker"] = fake
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cli, err := container.Find(t.Context(), []string{"PATH=" + dir + ":" + os.Getenv("PATH")}, "docker")
	if err != nil {
		t.Fatal(err)
	}
	return cli, dir
}

// TestEnsure finds an image by its names, pulls what is missing or another, and says
// what is wrong.
func TestEnsure(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		image container.Image
		id    string
		pulls int
		wrong []string
	}{
		"by its name":               {map[string]string{"a.id": "sha256:1"}, container.Image{Name: "a", Pull: "r/a"}, "sha256:1", 0, nil},
		"by its id":                 {map[string]string{"a.id": "sha256:1"}, container.Image{Name: "a", SHA: "sha256:1"}, "sha256:1", 0, nil},
		"an id without algorithm":   {map[string]string{"a.id": "1"}, container.Image{Name: "a", SHA: "sha256:1"}, "1", 0, nil},
		"by its digest":             {map[string]string{"a.id": "sha256:1", "a.digest": "sha256:9"}, container.Image{Name: "a", SHA: "sha256:9"}, "sha256:1", 0, nil},
		"by the id of the build":    {map[string]string{"a.id": "sha256:1"}, container.Image{Name: "a", SHA: "sha256:9", ID: "sha256:1"}, "sha256:1", 0, nil},
		"by its other name":         {map[string]string{"a.id": "sha256:2", "r_a.id": "sha256:1"}, container.Image{Name: "a", Pull: "r/a", SHA: "sha256:1"}, "sha256:1", 0, nil},
		"pulled":                    {map[string]string{"r_a.pull": "sha256:1"}, container.Image{Name: "a", Pull: "r/a", SHA: "sha256:1"}, "sha256:1", 1, nil},
		"pulled over another":       {map[string]string{"a.id": "sha256:2", "a.pull": "sha256:1"}, container.Image{Name: "a", SHA: "sha256:1"}, "sha256:1", 1, nil},
		"missing":                   {nil, container.Image{Name: "a"}, "", 1, []string{"image a is not here", "denied: a", "push it"}},
		"pulled and still another":  {map[string]string{"a.pull": "sha256:2"}, container.Image{Name: "a", SHA: "sha256:1"}, "", 1, []string{"sha256:2", "sha256:1 was recorded"}},
		"another and not pullable":  {map[string]string{"a.id": "sha256:2"}, container.Image{Name: "a", Pull: "r/a", SHA: "sha256:1"}, "", 1, []string{"sha256:2", "sha256:1 was recorded", "denied: r/a"}},
		"no digest is recorded":     {map[string]string{"a.id": "sha256:2"}, container.Image{Name: "a"}, "sha256:2", 0, nil},
		"an empty digest is no one": {map[string]string{"a.id": "sha256:2"}, container.Image{Name: "a", SHA: "sha256:"}, "", 1, []string{"was recorded"}},
	} {
		t.Run(name, func(t *testing.T) {
			if c.files == nil {
				c.files = map[string]string{}
			}
			cli, dir := engine(t, c.files)
			id, err := cli.Ensure(t.Context(), c.image, container.Locks{Dir: filepath.Join(t.TempDir(), "locks")}, nil)
			if id != c.id || (err == nil) != (c.wrong == nil) {
				t.Fatalf("id %q, error %v", id, err)
			}
			for _, word := range c.wrong {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("%v does not name %q", err, word)
				}
			}
			calls, _ := os.ReadFile(filepath.Join(dir, "calls"))
			if n := strings.Count(string(calls), "pull "); n != c.pulls {
				t.Errorf("%d pulls, want %d: %s", n, c.pulls, calls)
			}
		})
	}
}

// TestEnsureOnce pulls an image once, however many ranks ask for it.
func TestEnsureOnce(t *testing.T) {
	cli, dir := engine(t, map[string]string{"a.pull": "sha256:1"})
	locks := container.Locks{Dir: filepath.Join(t.TempDir(), "locks")}
	done := make(chan error)
	for range 8 {
		go func() {
			_, err := cli.Ensure(context.Background(), container.Image{Name: "a"}, locks, nil)
			done <- err
		}()
	}
	for range 8 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	calls, err := os.ReadFile(filepath.Join(dir, "calls"))
	if n := strings.Count(string(calls), "pull "); err != nil || n != 1 {
		t.Errorf("%d pulls (%v)", n, err)
	}
}

// TestLocksEnd stops waiting when the context ends.
func TestLocksEnd(t *testing.T) {
	locks := container.Locks{Dir: filepath.Join(t.TempDir(), "locks")}
	begun, release := make(chan bool), make(chan bool)
	cli, _ := engine(t, map[string]string{})
	held := make(chan error, 1)
	go func() {
		_, err := cli.Ensure(context.Background(), container.Image{Name: "a"}, locks, func(string) { close(begun); <-release })
		held <- err
	}()
	<-begun
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := cli.Ensure(ctx, container.Image{Name: "a"}, locks, nil)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("waiting for the turn: %v", err)
	}
	close(release)
	<-held
}

// TestFindRunner falls back to apptainer, and says all that was tried.
func TestFindRunner(t *testing.T) {
	dir := t.TempDir()
	env := []string{"PATH=" + dir}
	_, err := container.FindRunner(t.Context(), env, "auto")
	if exitcode.Of(err) != exitcode.Error || !strings.Contains(err.Error(), "docker") || !strings.Contains(err.Error(), "apptainer") {
		t.Errorf("nothing is there: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "singularity"), []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"auto", "apptainer"} {
		cli, err := container.FindRunner(t.Context(), env, want)
		if err != nil || cli.Name != container.Apptainer || cli.Path != filepath.Join(dir, "singularity") {
			t.Errorf("%s: %+v, %v", want, cli, err)
		}
	}
	if _, err := container.FindRunner(t.Context(), env, "docker"); err == nil {
		t.Error("docker was found")
	}
}
