package imagebuild

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay/pkg/build"
	"assay/pkg/card"
)

func TestBuildSaysWhatItBuilt(t *testing.T) {
	f := newFake(t)
	root := models(t, map[string]string{"m": "ARG BASE=rocm/x\nFROM $BASE\n"})
	b := New(Options{CLI: f.cli, LogDir: filepath.Join(root, "logs"), LogBase: root, Registry: "registry.example:5000/team", Clean: true})
	images, err := all(t.Context(), b, root, map[string]any{"docker_build_arg": map[string]any{"BASE": "rocm/y:1"}}, "m")
	if err != nil {
		t.Fatal(err)
	}
	i := images["m"]
	if i.Err != nil || i.PushErr != nil {
		t.Fatal(i.Err, i.PushErr)
	}
	id, sha, seconds := i.Entry["image_id"], i.Entry["docker_sha"], i.Entry["build_duration"]
	if id == "" || sha == "" || id == sha {
		t.Errorf("id %v, digest %v", id, sha)
	}
	if s, ok := seconds.(float64); !ok || s <= 0 {
		t.Errorf("it took %v", seconds)
	}
	want := map[string]any{
		"model": "m", "docker_image": "ci-m_m", "dockerfile": "docker/m.Dockerfile", "base_docker": "rocm/y:1", "gpu_vendor": "AMD",
		"image_id": id, "docker_sha": sha, "build_duration": seconds, "architecture": "amd64", "local_image": false,
		"registry": "registry.example:5000/team", "registry_image": "registry.example:5000/team/ci-m_m", "log_file": "logs/ci-m_m.log",
	}
	if diff := cmp.Diff(want, i.Entry); diff != "" {
		t.Error(diff)
	}
	argv := strings.Split(strings.TrimSpace(f.recorded("build", "argv")[0]), "\n")
	iid := argv[slices.Index(argv, "--iidfile")+1]
	wantArgv := []string{
		"build", "--network", "host", "--force-rm", "--tag", "ci-m_m", "--file", root + "/docker/m.Dockerfile", "--iidfile", iid,
		"--no-cache", "--pull", "--build-arg", "BASE", root + "/docker",
	}
	if diff := cmp.Diff(wantArgv, argv); diff != "" {
		t.Error(diff)
	}
	if _, err := os.Stat(iid); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is left: %v", iid, err)
	}
	if got := f.recorded("push", "argv"); len(got) != 1 || got[0] != "push\nregistry.example:5000/team/ci-m_m\n" {
		t.Errorf("pushed %q", got)
	}
}

func TestOneFailureDoesNotStopTheOthers(t *testing.T) {
	f := newFake(t)
	root := models(t, map[string]string{"a": "FROM x", "b": "FROM x\n# fail", "c": "FROM y"})
	var told []string
	b := New(Options{CLI: f.cli, LogDir: filepath.Join(root, "logs"), Jobs: 1, OnEvent: func(e Event) {
		if e.Kind == BuildFailed {
			told = append(told, e.Image+": "+e.Detail)
		}
	}})
	images, err := all(t.Context(), b, root, nil, "a", "b", "c")
	if err != nil || images["a"].Err != nil || images["c"].Err != nil {
		t.Fatal(err, images)
	}
	want := "docker build ended with exit code 3: "
	if failed := images["b"].Err; failed == nil || !strings.HasPrefix(failed.Error(), want) ||
		!strings.Contains(failed.Error(), "it went wrong with") || !strings.HasSuffix(failed.Error(), "its log is "+root+"/logs/ci-b_b.log") {
		t.Errorf("%v", failed)
	}
	if len(told) != 1 || !strings.HasPrefix(told[0], "ci-b_b: "+want) {
		t.Errorf("told %q", told)
	}
}

func TestImagesAreBuiltAtTheSameTime(t *testing.T) {
	f := newFake(t)
	root := models(t, map[string]string{"a": "FROM x\n# meet", "b": "FROM x\n# meet"})
	b := New(Options{CLI: f.cli, LogDir: filepath.Join(root, "logs"), Jobs: 2})
	images, err := all(t.Context(), b, root, nil, "a", "b")
	if err != nil || images["a"].Err != nil || images["b"].Err != nil {
		t.Error(err, images)
	}
}

func TestTheSameBuildIsRunOnce(t *testing.T) {
	f := newFake(t)
	root := models(t, map[string]string{"a": "FROM x"})
	b := New(Options{CLI: f.cli, LogDir: filepath.Join(root, "logs"), Jobs: 4})
	var wait sync.WaitGroup
	images := make([]build.Image, 4)
	for i := range images {
		if err := b.Check(request(root, fmt.Sprint("m", i), "docker/a", nil)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range images {
		wait.Go(func() {
			if made, err := b.Build(t.Context(), request(root, fmt.Sprint("m", i), "docker/a", nil)); err == nil {
				images[i] = made[0]
			}
		})
	}
	wait.Wait()
	if n := len(f.recorded("build", "argv")); n != 1 {
		t.Errorf("%d builds", n)
	}
	if n := len(f.recorded("tag", "argv")); n != 3 {
		t.Errorf("%d tags", n)
	}
	for i, image := range images {
		if image.Entry["docker_image"] != fmt.Sprintf("ci-m%d_a", i) || image.Entry["image_id"] != images[0].Entry["image_id"] {
			t.Errorf("%v", image.Entry)
		}
		if took := image.Entry["build_duration"]; (took != 0.0) != (i == 0) {
			t.Errorf("card %d took %v s", i, took)
		}
	}
}

func TestArchitecturesGetAnImageEach(t *testing.T) {
	f := newFake(t)
	root := models(t, map[string]string{"m": "FROM x"})
	b := New(Options{
		CLI: f.cli, LogDir: filepath.Join(root, "logs"), Archs: []string{"gfx90a", "gfx942"}, Registry: "r.example",
		Batch: Batch{"m": {BuildNew: true, RegistryImage: "other.example/m:1", Registry: "other.example"}},
	})
	images, err := all(t.Context(), b, root, nil, "m")
	if err != nil || len(images) != 2 {
		t.Fatal(err, images)
	}
	one, other := images["m_gfx90a"], images["m_gfx942"]
	if one.Entry["docker_image"] != "ci-m_m_gfx90a" || one.Entry["gpu_architecture"] != "gfx90a" || one.Entry["image_id"] == other.Entry["image_id"] {
		t.Errorf("%v\n%v", one.Entry, other.Entry)
	}
	if one.Pushed != "other.example/m:1_gfx90a" || one.Entry["registry"] != "other.example" {
		t.Errorf("pushed as %s to %v", one.Pushed, one.Entry["registry"])
	}
	err = b.Check(request(root, "m", "docker/m", map[string]any{"docker_build_arg": map[string]any{archArg: "gfx908"}}))
	if err == nil || !strings.Contains(err.Error(), "--target-archs sets it too") {
		t.Error(err)
	}
}

func TestCardsWhoseImagesWouldHaveTheSameName(t *testing.T) {
	root := models(t, map[string]string{"m": "FROM x"})
	b := New(Options{})
	if err := b.Check(request(root, "a/b", "docker/m", nil)); err != nil {
		t.Fatal(err)
	}
	if err := b.Check(request(root, "A_b", "docker/m", nil)); err == nil || !strings.Contains(err.Error(), "ci-a_b_m, which is the image of a/b") {
		t.Error(err)
	}
}

func TestAnImageThatIsNotPushedIsKept(t *testing.T) {
	f := newFake(t)
	write(t, f.dir, map[string]string{"unpushable": ""})
	root := models(t, map[string]string{"m": "FROM x"})
	b := New(Options{CLI: f.cli, LogDir: filepath.Join(root, "logs"), Registry: "r.example"})
	images, err := all(t.Context(), b, root, nil, "m")
	if err != nil {
		t.Fatal(err)
	}
	i := images["m"]
	if i.Err != nil || i.PushErr == nil || !strings.Contains(i.PushErr.Error(), "not pushed as r.example/ci-m_m: docker push: denied: no access") {
		t.Errorf("%v, %v", i.Err, i.PushErr)
	}
	if i.Entry["registry_image"] != nil || i.Entry["local_image"] != true || i.Entry["docker_sha"] != i.Entry["image_id"] {
		t.Errorf("%v", i.Entry)
	}
}

func TestABatchNamesImagesThatAreThere(t *testing.T) {
	f := newFake(t)
	root := models(t, map[string]string{"a": "FROM x", "b": "FROM x", "c": "FROM x"})
	b := New(Options{CLI: f.cli, Batch: Batch{"a": {RegistryImage: "r.example/a@sha256:1"}, "b": {Registry: "r.example"}, "c": {}}})
	images, err := all(t.Context(), b, root, nil, "a", "b", "c")
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{"a": "r.example/a@sha256:1", "b": "r.example/ci-b_b", "c": "ci-c_c"} {
		if got := images[key].Entry["docker_image"]; got != want || images[key].Pushed != "" {
			t.Errorf("%s: %v, want %s", key, got, want)
		}
	}
	if n := len(f.recorded("*", "argv")); n != 0 {
		t.Errorf("docker was called %d times", n)
	}
}

func TestAnInterruptEndsBuilds(t *testing.T) {
	f := newFake(t)
	root := models(t, map[string]string{"a": "FROM x\n# hang", "b": "FROM x"})
	ctx, cancel := context.WithCancel(t.Context())
	b := New(Options{CLI: f.cli, LogDir: filepath.Join(root, "logs"), Jobs: 1, OnEvent: func(e Event) {
		if e.Kind == Building && e.Card == "a" {
			go func() {
				for _, err := os.Stat(f.dir + "/hangs"); err != nil && t.Context().Err() == nil; _, err = os.Stat(f.dir + "/hangs") {
				}
				cancel()
			}()
		}
	}})
	images, err := all(ctx, b, root, nil, "a", "b")
	if !errors.Is(err, context.Canceled) || !errors.Is(images["a"].Err, context.Canceled) {
		t.Errorf("%v, %v", err, images["a"].Err)
	}
}

func TestUseImage(t *testing.T) {
	root := models(t, map[string]string{"m": "ARG BASE=rocm/x\nFROM $BASE", "s": "FROM scratch", "v": "FROM $UNKNOWN"})
	for _, test := range []struct{ image, card, want string }{
		{"my.example/i@sha256:abc", "m", "my.example/i@sha256:abc"},
		{"auto", "m", "rocm/x"},
		{"auto", "s", `error: docker/s.Dockerfile is built on "scratch", which is no image to use instead`},
		{"auto", "v", `error: docker/v.Dockerfile is built on "$UNKNOWN"`},
		{"auto", "none", "error: dockerfile docker/none: there is no file"},
		{"--help", "m", `error: "--help" is no name of an image`},
	} {
		got := func() string {
			e, err := UseImage(test.image)
			if err != nil {
				return "error: " + err.Error()
			}
			r := request(root, test.card, "docker/"+test.card, nil)
			if err := e.Check(r); err != nil {
				return "error: " + err.Error()
			}
			images, err := e.Build(t.Context(), r)
			if err != nil {
				return "error: " + err.Error()
			}
			return fmt.Sprint(images[0].Entry["docker_image"])
		}()
		if !strings.HasPrefix(got, test.want) {
			t.Errorf("%s for %s: %s, want %s", test.image, test.card, got, test.want)
		}
	}
	e, err := UseImage("auto")
	if err != nil {
		t.Fatal(err)
	}
	r := request(root, "m", "", nil)
	if e.Needs(r.Card) {
		t.Error("a card that names no image needs one")
	}
	r.Card.Card.EnvVars = map[string]card.Scalar{"DOCKER_IMAGE_NAME": "own/image"}
	if images, err := e.Build(t.Context(), r); !e.Needs(r.Card) || err != nil || images[0].Entry["docker_image"] != "own/image" {
		t.Error(images, err)
	}
}
