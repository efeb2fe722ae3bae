package lint_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay/pkg/document"
	"assay/pkg/lint"
)

// twoFindings has a misspelt key behind a tab and an error without a position.
func twoFindings() []*lint.Result {
	data := "{\n\t\"built_images\": {},\n\t\"built_models\": {\"ü\": {\"name\": \"ü\", \"scripts\": \"x\", \"tag\": 1}},\n\t\"context\": {}\n}\n"
	return []*lint.Result{
		lint.Bytes("a dir/build_manifest.json", []byte(data), lint.Options{}),
		lint.File("no such:file,%.json", lint.Options{}),
	}
}

func write(t *testing.T, format string, results []*lint.Result, opt lint.WriteOptions) string {
	t.Helper()
	var b strings.Builder
	if err := lint.Write(&b, format, results, opt); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestText(t *testing.T) {
	const plain = `a dir/build_manifest.json:3:19: error: MODEL_WITHOUT_IMAGE: the model "ü" has no image of the same key in built_images (/built_models/ü)
a dir/build_manifest.json:3:54: warning: NEAR_MISS_KEY: the key "tag" is not known and has no effect; did you mean "tags"? (/built_models/ü/tag)
no such:file,%.json:1:1: error: READ_FAILED: cannot be read: no such file or directory
`
	if diff := cmp.Diff(plain, write(t, "text", twoFindings(), lint.WriteOptions{})); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	const source = `a dir/build_manifest.json:3:54: warning: NEAR_MISS_KEY: the key "tag" is not known and has no effect; did you mean "tags"? (/built_models/ü/tag)
    3 |  "built_models": {"ü": {"name": "ü", "scripts": "x", "tag": 1}},
      |                                                      ^
      = fix: rename it to "tags"
`
	if got := write(t, "text", twoFindings(), lint.WriteOptions{Source: true}); !strings.Contains(got, source) {
		t.Errorf("no source line:\n%s", got)
	}
	if got := write(t, "text", twoFindings(), lint.WriteOptions{Source: true, Color: true}); !strings.Contains(got, "\x1b[31merror:\x1b[0m") {
		t.Errorf("no colour: %q", got)
	}
}

// TestNothingDrivesTheTerminal: JSON and SARIF have escapes of their own, the
// formats for people and for logs get ours.
func TestNothingDrivesTheTerminal(t *testing.T) {
	data := "{\"built_images\": {}, \"built_models\": {\"\x1b]0;x\a\": 1}, \"context\": {\"\u202e\x7f\": 0}}"
	for _, format := range []string{"text", "github"} {
		got := write(t, format, []*lint.Result{lint.Bytes("build_manifest.json\x1b[2J", []byte(data), lint.Options{})}, lint.WriteOptions{Source: true})
		if strings.ContainsAny(got, "\x1b\x7f\a\u202e") {
			t.Errorf("%s: control characters got through: %q", format, got)
		}
	}
}

func TestLongLinesAreCut(t *testing.T) {
	data := `{"built_images": {}, "context": {}, "built_models": {"a": {"name": "` + strings.Repeat("é", 200_000) + `", "tag": 1}}}`
	got := write(t, "text", []*lint.Result{lint.Bytes("build_manifest.json", []byte(data), lint.Options{})}, lint.WriteOptions{Source: true})
	for line := range strings.Lines(got) {
		if len([]rune(line)) > 250 {
			t.Errorf("a line of %d characters", len([]rune(line)))
		}
	}
	if !strings.Contains(got, `"tag": 1}}}`) {
		t.Errorf("the place itself is not shown:\n%s", got)
	}
}

func TestJSONHasExactlyTheDocumentedKeys(t *testing.T) {
	var all []map[string]any
	if err := json.Unmarshal([]byte(write(t, "json", twoFindings(), lint.WriteOptions{})), &all); err != nil {
		t.Fatal(err)
	}
	want := []map[string]any{
		{
			"file": "a dir/build_manifest.json", "line": 3.0, "column": 19.0, "severity": "error", "code": "MODEL_WITHOUT_IMAGE", "pointer": "/built_models/ü",
			"message": `the model "ü" has no image of the same key in built_images`,
			"fix":     "add an entry of the same key to built_images; with docker_image null it runs on the host",
		},
		{
			"file": "a dir/build_manifest.json", "line": 3.0, "column": 54.0, "severity": "warning", "code": "NEAR_MISS_KEY", "pointer": "/built_models/ü/tag",
			"message": `the key "tag" is not known and has no effect; did you mean "tags"?`, "fix": `rename it to "tags"`,
		},
		{
			"file": "no such:file,%.json", "line": 1.0, "column": 1.0, "severity": "error", "code": "READ_FAILED", "pointer": "",
			"message": "cannot be read: no such file or directory", "fix": "",
		},
	}
	if diff := cmp.Diff(want, all); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if got := write(t, "json", nil, lint.WriteOptions{}); got != "[]\n" {
		t.Errorf("nothing found is %q, not an empty array", got)
	}
}

func TestGitHub(t *testing.T) {
	const want = `::error file=a dir/build_manifest.json,line=3,col=19,title=MODEL_WITHOUT_IMAGE::the model "ü" has no image of the same key in built_images (/built_models/ü)%0Aadd an entry of the same key to built_images; with docker_image null it runs on the host
::warning file=a dir/build_manifest.json,line=3,col=54,title=NEAR_MISS_KEY::the key "tag" is not known and has no effect; did you mean "tags"? (/built_models/ü/tag)%0Arename it to "tags"
::error file=no such%3Afile%2C%25.json,line=1,col=1,title=READ_FAILED::cannot be read: no such file or directory
`
	if diff := cmp.Diff(want, write(t, "github", twoFindings(), lint.WriteOptions{})); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestSARIFFollowsItsSchema(t *testing.T) {
	text, err := os.ReadFile("testdata/sarif-2.1.0-subset.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	schema, err := document.Compile(text)
	if err != nil {
		t.Fatal(err)
	}
	for name, results := range map[string][]*lint.Result{"two": twoFindings(), "none": nil} {
		out := write(t, "sarif", results, lint.WriteOptions{Version: "1.2.3"})
		doc, problems := document.Parse("out.json", []byte(out))
		if doc == nil || len(problems) > 0 {
			t.Fatalf("%s: %v", name, problems)
		}
		violations, _ := schema.Validate(doc.Root())
		for _, p := range violations {
			t.Errorf("%s: %s: %s", name, p.Pointer, p.Message)
		}
		rules := doc.Find("/runs/0/tool/driver/rules")
		for r := range doc.Find("/runs/0/results").Children() {
			i, _ := r.Get("ruleIndex").Int()
			if got := doc.Find(rules.Pointer() + "/" + r.Get("ruleIndex").Raw() + "/id").Text(); got != r.Get("ruleId").Text() {
				t.Errorf("rule %d is %q, and the result says %q", i, got, r.Get("ruleId").Text())
			}
		}
	}
	out := write(t, "sarif", twoFindings(), lint.WriteOptions{})
	for _, want := range []string{`"uri": "a%20dir/build_manifest.json"`, `"uri": "./no%20such:file,%25.json"`, `"startLine": 3`, `"level": "warning"`} {
		if !strings.Contains(out, want) {
			t.Errorf("no %s in\n%s", want, out)
		}
	}
}

func TestUnknownFormat(t *testing.T) {
	var b strings.Builder
	if err := lint.Write(&b, "xml", nil, lint.WriteOptions{}); err == nil || !strings.Contains(err.Error(), "text, json, github, sarif") {
		t.Errorf("xml: %v", err)
	}
}

// What a line holds that is no text is shown as an escape, and the caret still
// stands under its place.
func TestCaretStandsBehindEscapes(t *testing.T) {
	data := "{\"built_images\": {\"\u202e\": {\"docker_image\": 7}}, \"built_models\": {}, \"context\": {}}"
	got := write(t, "text", []*lint.Result{lint.Bytes("build_manifest.json", []byte(data), lint.Options{})}, lint.WriteOptions{Source: true})
	lines := strings.Split(got, "\n")
	for i, line := range lines[1:] {
		if strings.Contains(lines[i], "docker_image") && strings.Contains(lines[i], "error:") {
			if !strings.Contains(line, " 7}") || !strings.Contains(line, `\u202e`) || strings.Index(lines[i+2], "^") != strings.Index(line, "7}") {
				t.Errorf("the caret does not stand under 7:\n%s\n%s", line, lines[i+2])
			}
			return
		}
	}
	t.Errorf("no finding:\n%s", got)
}
