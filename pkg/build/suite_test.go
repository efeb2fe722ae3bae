package build_test

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay/pkg/build"
	"assay/pkg/discover"
	"assay/pkg/exitcode"
	"assay/pkg/manifest"
	"assay/pkg/plan"
	"assay/pkg/suite"
)

// twoArchitectures makes an image for each of two architectures, except for the card
// that fails.
type twoArchitectures struct {
	mu    sync.Mutex
	built []string
}

func (*twoArchitectures) Needs(c discover.Found) bool    { return build.HasDockerfile(c) }
func (*twoArchitectures) Check(build.ImageRequest) error { return nil }

func (b *twoArchitectures) Build(_ context.Context, r build.ImageRequest) ([]build.Image, error) {
	b.mu.Lock()
	b.built = append(b.built, r.Card.Name)
	b.mu.Unlock()
	if r.Card.Name == "fails" {
		return nil, errors.New("no space left")
	}
	var out []build.Image
	for _, arch := range []string{"gfx90a", "gfx942"} {
		out = append(out, build.Image{
			Key: r.Card.Name + "_" + arch, Architecture: arch, Entry: map[string]any{"docker_image": "ci-" + arch},
		})
	}
	return out, nil
}

func freezeSuite(t *testing.T, images build.ImageBuilder, additional map[string]any) (doc map[string]any, err error) {
	t.Helper()
	root := t.TempDir()
	write(t, root+"/models.json", `[{"name": "a", "scripts": "a.sh", "dockerfile": "a.Dockerfile"}, {"name": "b", "scripts": "b.sh"}, {"name": "fails", "scripts": "b.sh", "dockerfile": "f"}]`)
	write(t, root+"/s.yaml", `
deployment_config: {target: slurm, slurm: {partition: p, nodes: 2}, env_vars: {A: suite}}
tests: [b, {card: a, name: x}, {card: a, name: y, variants: {n: [1, 2]}}, fails]
`)
	s, err := suite.Read(root + "/s.yaml")
	if err != nil {
		t.Fatal(err)
	}
	catalog, err := discover.Load(t.Context(), discover.Options{Root: root})
	if err != nil {
		t.Fatal(err)
	}
	frozen, problems := s.Resolve(catalog)
	if err := suite.Errors("s.yaml", problems); err != nil {
		t.Fatal(err)
	}
	res, err := build.Manifest(t.Context(), build.Options{
		Cards: frozen.Cards, Suite: &frozen, Deployment: s.Deployment(), Context: additional,
		Root: root, Output: filepath.Join(root, "m.json"), Images: images, NoImages: images == nil,
	})
	if jerr := json.Unmarshal(res.JSON, &doc); jerr != nil {
		t.Fatal(jerr, err)
	}
	return doc, err
}

// keysOf are the keys of the tests of a suite; those without an entry are in parentheses.
func keysOf(t *testing.T, doc map[string]any) []string {
	t.Helper()
	var keys []string
	missing := 0
	models, images := doc["built_models"].(map[string]any), doc["built_images"].(map[string]any)
	for _, v := range doc["suite"].(map[string]any)["tests"].([]any) {
		key := v.(map[string]any)["key"].(string)
		switch {
		case models[key] == nil && images[key] == nil:
			key = "(" + key + ")"
			missing++
		case models[key] == nil || images[key] == nil:
			t.Errorf("%s has no entry, or no image", key)
		}
		keys = append(keys, key)
	}
	if len(models)+missing != len(keys) {
		t.Errorf("%d models of %d tests", len(models), len(keys))
	}
	return keys
}

// Each test has an entry for each image of its card, in the order of the suite; the
// image itself is made once. A test whose image failed stays, without an entry.
func TestSuiteWithImages(t *testing.T) {
	images := &twoArchitectures{}
	doc, err := freezeSuite(t, images, nil)
	if exitcode.Of(err) != exitcode.BuildFailure || !strings.Contains(err.Error(), "no space left") {
		t.Errorf("the error is %v", err)
	}
	want := []string{"b", "x_gfx90a", "x_gfx942", "y/n=1_gfx90a", "y/n=1_gfx942", "y/n=2_gfx90a", "y/n=2_gfx942", "(fails)"}
	if diff := cmp.Diff(want, keysOf(t, doc)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	slices.Sort(images.built)
	if diff := cmp.Diff([]string{"a", "fails"}, images.built); diff != "" {
		t.Errorf("images that were made (-want +got)\n%s", diff)
	}
}

// oneArchitecture makes the image for the first architecture, and fails for the others.
type oneArchitecture struct{ twoArchitectures }

func (b *oneArchitecture) Build(ctx context.Context, r build.ImageRequest) ([]build.Image, error) {
	images, err := b.twoArchitectures.Build(ctx, r)
	for i := range images {
		if i > 0 {
			images[i].Entry, images[i].Err = nil, errors.New("no base image")
		}
	}
	return images, err
}

// A run is refused when the image of any test failed, for whatever architecture.
func TestSuiteWhoseImageFailed(t *testing.T) {
	doc, err := freezeSuite(t, &oneArchitecture{}, nil)
	if exitcode.Of(err) != exitcode.BuildFailure {
		t.Errorf("the error is %v", err)
	}
	want := []string{"b", "x_gfx90a", "(x_gfx942)", "y/n=1_gfx90a", "(y/n=1_gfx942)", "y/n=2_gfx90a", "(y/n=2_gfx942)", "(fails)"}
	if diff := cmp.Diff(want, keysOf(t, doc)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	data, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	m, err := manifest.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = plan.Jobs(m, plan.Options{ManifestDir: "/m", Bare: true})
	for _, text := range []string{
		"test fails: its image was not built (failed_builds says why: a, fails); build again",
		"test x_gfx942: its image was not built",
	} {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("a run says %v, want %q", err, text)
		}
	}
}

func TestSuiteOnTheHost(t *testing.T) {
	doc, err := freezeSuite(t, nil, map[string]any{"slurm": map[string]any{"partition": "context"}, "env_vars": map[string]any{"B": "context"}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"b", "x", "y/n=1", "y/n=2", "fails"}, keysOf(t, doc)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	want := map[string]any{
		"target": "slurm", "slurm": map[string]any{"partition": "context", "nodes": 2.0},
		"env_vars": map[string]any{"A": "suite", "B": "context"},
	}
	if diff := cmp.Diff(want, doc["deployment_config"]); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
