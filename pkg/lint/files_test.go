package lint_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay/pkg/document"
	"assay/pkg/lint"
	"assay/schemas"
)

// TestManifestsOfTheWild checks that valid files have the warnings that are
// expected, and nothing else.
func TestManifestsOfTheWild(t *testing.T) {
	want := map[string]string{
		"host.yaml":           "",
		"models.json":         "",
		"slurm-training.json": "",
		"k8s-training.json":   "",
		"k8s-toplevel.json": `k8s-toplevel.json:7:5: warning: IMAGE_WITHOUT_MODEL: the image "spare" has no model of the same key and is not used (/built_images/spare)
k8s-toplevel.json:19:3: warning: BLOCK_MOVED: k8s belongs under deployment_config and is read as if it stood there (/k8s)
    fix: move it under deployment_config; assay lint --fix does it
k8s-toplevel.json:19:3: warning: K8S_RUNNER_IMAGE: no runner_image is named: pods take from it the assay that records how a rank ends (/k8s)
    fix: name one, set ASSAY_RUNNER_IMAGE where assay runs, or set wrapper to none
k8s-toplevel.json:29:3: warning: BLOCK_IGNORED: distributed is ignored: /deployment_config/distributed wins (/distributed)
    fix: remove it
`,
	}
	const dir = "../../testdata/manifests"
	files, err := filepath.Glob(dir + "/*")
	if err != nil {
		t.Fatal(err)
	}
	var seen []string
	for _, path := range files {
		name := filepath.Base(path)
		expected, known := want[name]
		if !known {
			continue // another test's
		}
		seen = append(seen, name)
		r := lint.File(path, lint.Options{})
		if diff := cmp.Diff(expected, render(r, dir)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
		if r.HasErrors() || r.HasWarnings() != (expected != "") {
			t.Errorf("%s: errors %v, warnings %v", name, r.HasErrors(), r.HasWarnings())
		}
	}
	if len(seen) != len(want) {
		t.Errorf("looked at %v only", seen)
	}
}

func TestFilesThatAreNone(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"fifo.json", "fifo.csv"} {
		if err := syscall.Mkfifo(filepath.Join(dir, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"d.json", "d.csv"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{
		"missing.json": "cannot be read: no such file or directory",
		"missing.csv":  "cannot be read: no such file or directory",
		"fifo.json":    "is a FIFO, not a file",
		"fifo.csv":     "is a FIFO, not a file",
		"d.json":       "is a directory, not a file",
		"d.csv":        "is a directory, not a file",
	} {
		r := lint.File(filepath.Join(dir, name), lint.Options{})
		if got, want := render(r, dir), fmt.Sprintf("%s:1:1: error: READ_FAILED: %s ()\n", name, want); got != want {
			t.Errorf("got  %swant %s", got, want)
		}
		if r.Document != nil || !r.HasErrors() {
			t.Errorf("%s: document %v", name, r.Document)
		}
	}
}

func TestEnvFileThatIsNone(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"fifo":    "ENV_FILE_MISSING: the env_file fifo is a FIFO, not a file",
		".":       "ENV_FILE_MISSING: the env_file " + dir + " is a directory, not a file",
		"missing": "ENV_FILE_MISSING: the env_file missing cannot be read: no such file or directory",
	} {
		data := fmt.Sprintf(`{"built_images": {"a": {}}, "built_models": {"a": {"name": "a", "scripts": "a"}}, "context": {}, "deployment_config": {"env_file": %q}}`, name)
		manifest := filepath.Join(dir, "build_manifest.json")
		if got := render(lint.Bytes(manifest, []byte(data), lint.Options{}), dir); !strings.Contains(got, want) {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestKinds(t *testing.T) {
	for _, c := range []struct {
		name, data string
		want       lint.Kind
	}{
		{"x.json", `{"built_models": {}}`, lint.Manifest},
		{"build_manifest.json", `{}`, lint.Manifest},
		{"x.json", `{"built_model": {}}`, lint.Manifest},
		{"x.json", `{"context": {}, "deployment_config": {}}`, lint.Manifest},
		{"x.yaml", "tests: [a]\n", lint.Suite},
		{"x.yaml", "hardware: sku\ntests: [a]\n", lint.Suite},
		{"x.yaml", "hardware: {}\n", lint.Thresholds},
		{"thresholds.yaml", "hardwear: {}\n", lint.Thresholds},
		{"models.json", "[]", lint.Card},
		{"x.yml", "name: a\n", lint.Card},
		{"x", "model,n_gpus,rest\n", lint.PerfCSV},
		{"x", "\ufeffmodel,n_gpus,rest\n", lint.PerfCSV},
		{"x.csv", "anything", lint.PerfCSV},
		{"x.json", `{"slurm": {}}`, lint.UnknownKind},
		{"x.json", `7`, lint.UnknownKind},
	} {
		if got := lint.Bytes(c.name, []byte(c.data), lint.Options{}).Kind; got != c.want {
			t.Errorf("%s %s is %v, want %v", c.name, c.data, got, c.want)
		}
	}
	if got := lint.Bytes("x.json", []byte(`{"slurm": {}}`), lint.Options{Kind: lint.Manifest}); got.Kind != lint.Manifest || !got.HasErrors() {
		t.Errorf("a kind that is given is not used: %v", got.Kind)
	}
}

// TestCodes checks that the table explains every code once, and that no finding
// of the cases has a code that is missing there.
func TestCodes(t *testing.T) {
	var codes []string
	for _, r := range lint.Codes() {
		if r.Text == "" || r.Severity == lint.Unknown || slices.Contains(codes, r.Code) {
			t.Errorf("%+v", r)
		}
		codes = append(codes, r.Code)
	}
	archives, err := filepath.Glob("../../testdata/lint/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range archives {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		_, want, _ := strings.Cut(string(text), "\n-- want --\n")
		for line := range strings.Lines(want) {
			parts := strings.SplitN(line, ": ", 4)
			if len(parts) == 4 && !slices.Contains(codes, parts[2]) {
				t.Errorf("%s: %s is not in the table", path, parts[2])
			}
		}
	}
}

func TestDetailsOfPerfCSV(t *testing.T) {
	header := perfHeader(t)
	for name, c := range map[string]struct{ data, want string }{
		"empty":       {"", "1:1 EMPTY"},
		"header only": {header + "\n", ""},
		"CRLF":        {header + "\r\n", ""},
		"BOM":         {"\ufeff" + header + "\n", "1:1 BOM"},
		"extra":       {header + ",more\n", fmt.Sprintf("1:%d PERF_HEADER", len(header)+2)},
		"torn":        {header + "\nm,1", "2:1 PERF_TORN"},
		"NUL":         {header + "\nm\x00\x00\n", "2:2 PERF_NUL"},
		"blank line":  {header + "\n\n", "2:1 PERF_WIDTH"},
		"old header":  {strings.Join(strings.Split(header, ",")[:29], ",") + "\n", fmt.Sprintf("1:%d PERF_HEADER", len(strings.Join(strings.Split(header, ",")[:29], ","))+1)},
	} {
		r := lint.Bytes("perf.csv", []byte(c.data), lint.Options{})
		var got []string
		for _, f := range r.Findings {
			got = append(got, fmt.Sprintf("%d:%d %s", f.Line, f.Column, f.Code))
		}
		if strings.Join(got, "; ") != c.want {
			t.Errorf("%s: %s, want %s", name, strings.Join(got, "; "), c.want)
		}
	}
	many := lint.Bytes("perf.csv", []byte(header+"\n"+strings.Repeat("x\n", 5000)), lint.Options{})
	if n := len(many.Findings); n != 1001 {
		t.Errorf("%d findings", n)
	}
	endless := lint.Bytes("perf.csv", append([]byte(header+"\n"), bytes.Repeat([]byte(`"`+"\n"), 17<<20)...), lint.Options{})
	if len(endless.Findings) == 0 {
		t.Error("no finding in rows without end")
	}
}

func perfHeader(t *testing.T) string {
	t.Helper()
	text, err := schemas.Read("perf_csv")
	if err != nil {
		t.Fatal(err)
	}
	doc, problems := document.Parse("perf.json", text)
	if doc == nil {
		t.Fatal(problems)
	}
	var columns []string
	for c := range doc.Root().Get("x-columns").Children() {
		columns = append(columns, c.Text())
	}
	return strings.Join(columns, ",")
}

func FuzzBytes(f *testing.F) {
	for _, dir := range []string{"../../testdata/lint/*.txtar", "../../testdata/manifests/*"} {
		files, err := filepath.Glob(dir)
		if err != nil {
			f.Fatal(err)
		}
		for _, path := range files {
			data, err := os.ReadFile(path)
			if err != nil {
				f.Fatal(err)
			}
			if _, body, ok := strings.Cut(string(data), " --\n"); ok {
				body, _, _ = strings.Cut(body, "\n-- ")
				data = []byte(body)
			}
			f.Add("x.json", data)
			f.Add("x.yaml", data)
			f.Add("x.csv", data)
		}
	}
	linter := lint.New()
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		for _, kind := range []lint.Kind{lint.UnknownKind, lint.Manifest, lint.Card, lint.Suite, lint.Thresholds, lint.PerfCSV} {
			r := linter.Bytes(name, data, lint.Options{Kind: kind})
			last := 0
			for _, finding := range r.Findings {
				if finding.Line < max(last, 1) || finding.Column < 1 {
					t.Fatalf("%d:%d after line %d", finding.Line, finding.Column, last)
				}
				last = max(last, finding.Line)
				if finding.Message == "" || finding.Code == "" || finding.Severity == lint.Unknown {
					t.Fatalf("%+v", finding)
				}
			}
			for _, format := range lint.Formats() {
				if err := lint.Write(&bytes.Buffer{}, format, []*lint.Result{r}, lint.WriteOptions{Source: true}); err != nil {
					t.Fatal(err)
				}
			}
		}
		if fixed, err := lint.Fixed(name, data); err == nil {
			if again, err := lint.Fixed(name, fixed); err != nil || !bytes.Equal(again, fixed) {
				t.Fatalf("fixed twice: %v\n%q\n%q", err, fixed, again)
			}
		}
	})
}
