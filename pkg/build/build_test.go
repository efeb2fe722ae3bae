package build_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"assay/pkg/build"
	"assay/pkg/discover"
	"assay/pkg/exitcode"
	"assay/pkg/manifest"
)

// Each case is an archive: the comment says what build is told, the files are the
// models root, and the file "want" is what comes out. UPDATE=1 rewrites it.
func TestCases(t *testing.T) {
	cases, err := filepath.Glob("../../testdata/cards/build/*.txtar")
	if err != nil || len(cases) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range cases {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			root := filepath.Join(t.TempDir(), "root")
			want := unpack(t, root, archive)
			got := strings.ReplaceAll(show(t, root, string(archive.Comment)), root, "$ROOT")
			if os.Getenv("UPDATE") != "" {
				update(t, file, archive, got)
				return
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func show(t *testing.T, root, comment string) string {
	res, err := run(t, root, comment)
	var b strings.Builder
	if err != nil {
		fmt.Fprintf(&b, "exit %d\n%s\n", exitcode.Of(err), err)
	}
	for _, w := range res.Warnings {
		fmt.Fprintf(&b, "warning: %s\n", w)
	}
	b.Write(res.JSON)
	return b.String()
}

// run does what the command line does.
func run(t *testing.T, root, comment string) (build.Result, error) {
	find := discover.Options{Root: root}
	o := build.Options{Root: root, Output: filepath.Join(root, "build_manifest.json"), Validate: accept}
	var inline, file string
	if _, err := os.Stat(root + "/context.json"); err == nil {
		file = root + "/context.json"
	}
	for line := range strings.Lines(comment) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch key {
		case "tags":
			find.Tags = append(find.Tags, value)
		case "inline":
			inline = value
		case "file":
			file = filepath.Join(root, value)
		case "output":
			o.Output = filepath.Join(root, value)
		case "stamp":
			o.Stamp = value
		case "git":
			commit, dirty, _ := strings.Cut(value, " ")
			o.Git = build.Revision{Commit: commit, Dirty: dirty != ""}
		case "images":
			o.Images = scripted{}
		case "no-images":
			o.NoImages = true
		case "no-builder":
			o.NoBuilder = errors.New("there is no docker")
		case "refuse":
			o.Validate = func([]byte) error { return errors.New("/context: refused by the schema") }
		}
	}
	found, err := discover.Find(context.Background(), find)
	if err != nil {
		t.Fatal(err)
	}
	o.Cards = found.Cards
	if o.Context, err = build.ParseContext(inline, file); err != nil {
		return build.Result{}, err
	}
	return build.Manifest(context.Background(), o)
}

// accept refuses what the reader of manifests refuses.
func accept(data []byte) error {
	_, err := manifest.Decode(data)
	return err
}

// scripted is an image builder that does what the name of the card says.
type scripted struct{}

func (scripted) Needs(c discover.Found) bool { return build.HasDockerfile(c) }

func (scripted) Check(r build.ImageRequest) error {
	if r.Card.Name == "unfit" {
		return errors.New("there is no Dockerfile")
	}
	return nil
}

func (scripted) Build(_ context.Context, r build.ImageRequest) ([]build.Image, error) {
	image := func(suffix string) build.Image {
		key := "ci-" + r.Card.Name + suffix
		return build.Image{Key: key, Entry: map[string]any{"model": r.Card.Name, "docker_image": key, "dockerfile": r.Card.Card.Dockerfile, "build_duration": 1.5}}
	}
	switch r.Card.Name {
	case "fails":
		return nil, errors.New("docker build: no space left on device")
	case "half":
		failed := build.Image{Architecture: "gfx942", Err: errors.New("docker build: gfx942 is not known")}
		return []build.Image{image("_gfx90a"), failed}, nil
	case "pushed", "unpushed":
		i := image("")
		i.Pushed = "registry.example/" + i.Key
		if r.Card.Name == "unpushed" {
			i.PushErr = errors.New("docker push: denied")
		}
		return []build.Image{i}, nil
	case "empty":
		return nil, nil
	case "multi":
		return []build.Image{image("_gfx90a"), image("_gfx942")}, nil
	case "clash":
		return []build.Image{{Key: "same", Entry: map[string]any{"docker_image": "x"}}}, nil
	}
	return []build.Image{image("")}, nil
}

func unpack(t *testing.T, root string, a *txtar.Archive) (want string) {
	t.Helper()
	for _, f := range a.Files {
		if f.Name == "want" {
			want = string(f.Data)
			continue
		}
		path := filepath.Join(root, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, f.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return want
}

func update(t *testing.T, file string, a *txtar.Archive, got string) {
	t.Helper()
	keep := a.Files[:0]
	for _, f := range a.Files {
		if f.Name != "want" {
			keep = append(keep, f)
		}
	}
	a.Files = append(keep, txtar.File{Name: "want", Data: []byte(got)})
	if err := os.WriteFile(file, txtar.Format(a), 0o644); err != nil {
		t.Fatal(err)
	}
}

// counted is an image builder that counts what it is asked to build.
type counted struct {
	scripted
	builds *int
}

func (c counted) Build(ctx context.Context, r build.ImageRequest) ([]build.Image, error) {
	*c.builds++
	return c.scripted.Build(ctx, r)
}

func TestNothingIsBuiltForAManifestThatIsRefused(t *testing.T) {
	root, builds := t.TempDir(), 0
	if err := os.WriteFile(root+"/models.json", []byte(`[{"name": "one", "scripts": "x", "dockerfile": "docker/one"}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	found, err := discover.Find(t.Context(), discover.Options{Root: root})
	if err != nil {
		t.Fatal(err)
	}
	_, err = build.Manifest(t.Context(), build.Options{
		Cards: found.Cards, Root: root, Output: root + "/m.json", Images: counted{builds: &builds},
		Validate: func([]byte) error { return errors.New("refused") },
	})
	if exitcode.Of(err) != exitcode.Invalid || builds != 0 {
		t.Errorf("%v after %d builds", err, builds)
	}
}
