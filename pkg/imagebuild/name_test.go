package imagebuild

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"assay/pkg/exitcode"
)

// repositoryName is what engines take for the name of an image.
var repositoryName = regexp.MustCompile(`^[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*$`)

func TestImageNamesAreWhatEnginesTake(t *testing.T) {
	for _, test := range [][3]string{
		{"dummy", "dummy.ubuntu.amd", "ci-dummy_dummy.ubuntu.amd"},
		{"scripts/Llama-3.1 70B", "vllm", "ci-scripts_llama-3.1-70b_vllm"},
		{"a__b", "c-_d", "ci-a__b_c-d"},
	} {
		if got := imageName(test[0], test[1]); got != test[2] {
			t.Errorf("%q, want %q", got, test[2])
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		name := imageName(rapid.String().Draw(t, "card"), rapid.String().Draw(t, "file"))
		if !repositoryName.MatchString(name) || len(name) > longestName+9 {
			t.Fatalf("%q", name)
		}
		if again := repository(name); len(name) <= longestName && again != name {
			t.Fatalf("%q becomes %q", name, again)
		}
	})
	long := strings.Repeat("x", 300)
	if imageName(long+"a", "f") == imageName(long+"b", "f") {
		t.Error("long names of different cards are the same")
	}
}

func TestRegistries(t *testing.T) {
	for in, want := range map[string]string{
		"localhost:5000": "localhost:5000", "https://Registry.example/team/": "Registry.example/team", "dockerhub": "docker.io",
		"docker.io/me": "docker.io/me", "10.0.0.1:5000/a/b-c": "10.0.0.1:5000/a/b-c",
		"": "", "-x": "", "a b": "", "host/Team": "", "host:port": "", "host//x": "", "user:pw@host": "", "--tls-verify=false": "",
	} {
		got, err := ParseRegistry(in)
		if got != want || (want == "") != (exitcode.Of(err) == exitcode.Invalid) {
			t.Errorf("%q: %q and %v, want %q", in, got, err, want)
		}
	}
}

func TestArchitectures(t *testing.T) {
	got, err := ParseArchs([]string{"gfx90a, gfx942", "GFX90A", ""})
	if diff := cmp.Diff([]string{"gfx90a", "gfx942"}, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if _, err := ParseArchs([]string{"gfx90a", "-x"}); exitcode.Of(err) != exitcode.Invalid {
		t.Error(err)
	}
}

func TestNamesOfArchitecturesInImages(t *testing.T) {
	for in, want := range map[string]string{"gfx90a": "_gfx90a", "gfx90a:xnack+": "_gfx90a-xnack-on", "GFX90A:sramecc-:xnack-": "_gfx90a-sramecc-off-xnack-off", "sm_90": "_sm_90"} {
		if got := archSuffix(in); got != want || !repositoryName.MatchString("x"+got) {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

func TestBatch(t *testing.T) {
	file := filepath.Join(t.TempDir(), "batch.json")
	for text, want := range map[string]string{
		`[{"model_name": "a", "build_new": true, "registry": "dockerhub"}, {"model_name": "b", "registry_image": "r/x:1", "more": 1}]`: "a b",
		`[]`:                    "lists no model",
		`{}`:                    "is no list of",
		`[{"build_new": true}]`: "/0: model_name is missing",
		`[{"model_name": 5}]`:   "is no list of",
		`[{"model_name": "a"}, {"model_name": "a"}]`:                        "/1: a is in the list already",
		`[{"model_name": "a", "registry_image": "-x"}]`:                     `/0/registry_image: "-x" is no name`,
		`[{"model_name": "a", "registry": "b c"}]`:                          `/0/registry: "b c" is no registry`,
		`[{"model_name": "a", "build_new": true, "registry_image": null}]x`: "is no list of",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		batch, names, err := ReadBatch(file)
		if err != nil {
			if !strings.Contains(err.Error(), want) || exitcode.Of(err) != exitcode.Invalid {
				t.Errorf("%s: %v", text, err)
			}
			continue
		}
		if strings.Join(names, " ") != want || !batch.Builds("a") || batch.Builds("b") || !batch.Builds("other") || batch["a"].Registry != "docker.io" {
			t.Errorf("%s: %v %v", text, names, batch)
		}
	}
}

func TestMaskerShowsNoPrivateValue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		secret := "s3cr" + rapid.StringMatching(`[a-z0-9]{1,9}`).Draw(t, "secret")
		text := strings.Join(rapid.SliceOf(rapid.SampledFrom([]string{"a", "\n", "\r", secret, "s3c", " "})).Draw(t, "text"), "")
		var out bytes.Buffer
		m := newMasker(&out, []string{secret, "x", ""})
		rest := []byte(text)
		for len(rest) > 0 {
			n := rapid.IntRange(1, len(rest)).Draw(t, "chunk")
			if _, err := m.Write(rest[:n]); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if err := m.flush(); err != nil {
			t.Fatal(err)
		}
		if want := strings.ReplaceAll(text, secret, "***"); out.String() != want {
			t.Fatalf("%q, want %q", out.String(), want)
		}
	})
}

func TestArgumentsThatSteerTheCommandAreNotInItsEnvironment(t *testing.T) {
	options, env := passArgs(map[string]string{"TOKEN": "a b", "PATH": "/x", "DOCKER_HOST": "tcp://x", "EMPTY": ""})
	want := []string{"--build-arg", "DOCKER_HOST=tcp://x", "--build-arg", "EMPTY", "--build-arg", "PATH=/x", "--build-arg", "TOKEN"}
	if diff := cmp.Diff(want, options); diff != "" {
		t.Error(diff)
	}
	if !slices.Equal(env, []string{"EMPTY=", "TOKEN=a b"}) {
		t.Error(env)
	}
}
