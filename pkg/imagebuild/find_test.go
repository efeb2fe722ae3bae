package imagebuild

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"assay/pkg/build"
	"assay/pkg/card"
	"assay/pkg/discover"
)

// write makes files with the texts below dir.
func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// request asks for the image of a card of that name and dockerfile.
func request(root, name, file string, context map[string]any) build.ImageRequest {
	raw := map[string]any{"name": name, "dockerfile": file}
	return build.ImageRequest{
		Root: root, Context: context,
		Card: discover.Found{Name: name, File: "models.json", Raw: raw, Card: card.Card{Name: name, Dockerfile: file}},
	}
}

func TestFindDockerfile(t *testing.T) {
	const amd, nvidia = "# CONTEXT {'gpu_vendor': 'AMD', 'guest_os': 'UBUNTU'}\nFROM rocm/x", "# CONTEXT {'gpu_vendor': 'NVIDIA'}\nFROM nvidia/x"
	both := map[string]any{"gpu_vendor": "AMD", "guest_os": "UBUNTU"}
	for name, test := range map[string]struct {
		files   map[string]string
		context map[string]any
		want    string // the file, or the part of the error after "error:"
	}{
		"system and vendor":          {map[string]string{"d/x.ubuntu.amd.Dockerfile": amd, "d/x.ubuntu.nvidia.Dockerfile": nvidia}, both, "d/x.ubuntu.amd.Dockerfile"},
		"the vendor alone":           {map[string]string{"d/x.amd.Dockerfile": amd, "d/x.nvidia.Dockerfile": nvidia}, both, "d/x.amd.Dockerfile"},
		"more of what was asked for": {map[string]string{"d/x.amd.Dockerfile": amd, "d/x.ubuntu.amd.Dockerfile": amd}, both, "d/x.ubuntu.amd.Dockerfile"},
		"another spelling":           {map[string]string{"d/x.UBUNTU.AMD.Dockerfile": amd}, map[string]any{"gpu_vendor": "amd"}, "d/x.UBUNTU.AMD.Dockerfile"},
		"by the comment":             {map[string]string{"d/x.one.Dockerfile": amd, "d/x.two.Dockerfile": nvidia}, map[string]any{"gpu_vendor": "NVIDIA"}, "d/x.two.Dockerfile"},
		"plain":                      {map[string]string{"d/x.Dockerfile": "FROM a", "d/x": "FROM b"}, both, "d/x.Dockerfile"},
		"exactly":                    {map[string]string{"d/x": "FROM b", "d/x.txt": "", "d/xy.Dockerfile": "FROM c"}, both, "d/x"},
		"plain before another":       {map[string]string{"d/x.Dockerfile": "FROM a", "d/x.ubuntu.nvidia.Dockerfile": nvidia}, both, "d/x.Dockerfile"},
		"without a context":          {map[string]string{"d/x.ubuntu.amd.Dockerfile": amd}, nil, "d/x.ubuntu.amd.Dockerfile"},
		"several without a context":  {map[string]string{"d/x.ubuntu.amd.Dockerfile": amd, "d/x.ubuntu.nvidia.Dockerfile": nvidia}, nil, "error: may be d/x.ubuntu.amd.Dockerfile or d/x.ubuntu.nvidia.Dockerfile: say which by gpu_vendor"},
		"none":                       {map[string]string{"d/y": ""}, both, "error: there is no file d/x.ubuntu.amd.Dockerfile or d/x.*.Dockerfile or d/x.Dockerfile or d/x below"},
		"no directory":               {nil, nil, "error: there is no file d/x.*.Dockerfile or d/x.Dockerfile or d/x below"},
		"only for others":            {map[string]string{"d/x.ubuntu.nvidia.Dockerfile": nvidia}, both, "error: of d/x.ubuntu.nvidia.Dockerfile none is for AMD UBUNTU"},
		"the comment rules out":      {map[string]string{"d/x.Dockerfile": nvidia}, both, "error: of d/x.Dockerfile none is for AMD UBUNTU"},
		"a directory is none":        {map[string]string{"d/x/Dockerfile": "FROM a"}, nil, "error: there is no file"},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			write(t, root, test.files)
			got, err := findDockerfile(request(root, "m", "d/x", test.context))
			if want, fails := strings.CutPrefix(test.want, "error: "); fails {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%v, want …%s…", err, want)
				}
				return
			}
			if err != nil || got.shown != test.want {
				t.Errorf("%s and %v, want %s", got.shown, err, test.want)
			}
		})
	}
}

func TestVendor(t *testing.T) {
	for _, test := range []struct {
		d          dockerfile
		base, want string
	}{
		{dockerfile{vendor: "AMD", parts: []string{"nvidia"}}, "nvidia/cuda", "AMD"},
		{dockerfile{parts: []string{"ubuntu", "nvidia"}}, "rocm/x", "NVIDIA"},
		{dockerfile{context: map[string]string{"gpu_vendor": "amd"}}, "x", "AMD"},
		{dockerfile{}, "rocm/pytorch:latest", "AMD"},
		{dockerfile{}, "registry/nvidia/cuda", "NVIDIA"},
		{dockerfile{}, "amd64/debian", ""},
	} {
		if got := test.d.vendorOf(test.base); got != test.want {
			t.Errorf("%+v on %s is for %q, want %q", test.d, test.base, got, test.want)
		}
	}
}

func TestContextDirectory(t *testing.T) {
	root, elsewhere := t.TempDir(), t.TempDir()
	write(t, root, map[string]string{"docker/a": "", "own/b": "", "images/c.Dockerfile": "FROM x"})
	bare := t.TempDir()
	write(t, bare, map[string]string{"images/c.Dockerfile": "FROM x"})
	for _, test := range []struct{ root, asked, flag, want string }{
		{root, "", "", root + "/docker"},
		{root, "own", "", root + "/own"},
		{root, "own", elsewhere, elsewhere},
		{root, elsewhere, "", elsewhere},
		{bare, "", "", bare + "/images"},
		{root, "none", "", "error: the build context none is no directory"},
	} {
		r := request(test.root, "m", "images/c", nil)
		r.Card.Card.DockerContext = test.asked
		file, err := findDockerfile(r)
		if err != nil {
			t.Fatal(err)
		}
		got, err := New(Options{BuildContext: test.flag}).contextDir(r, file)
		if err != nil {
			got = "error: " + err.Error()
		}
		if got != test.want {
			t.Errorf("%+v: %s", test, got)
		}
	}
}
