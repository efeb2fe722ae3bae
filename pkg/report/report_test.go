package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"assay/pkg/evidence"
	"assay/pkg/exitcode"
	"assay/pkg/metric"
	"assay/pkg/verdict"
	"assay/schemas"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"
)

func TestEncode(t *testing.T) {
	run := sampleRun()
	text, err := Encode(run)
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := Encode(sampleRun()); !bytes.Equal(text, again) {
		t.Error("the same run gives other bytes")
	}
	if !bytes.HasSuffix(text, []byte("}\n")) || !bytes.Contains(text, []byte(`"started_at": "2025-03-04T05:06:00Z"`)) {
		t.Errorf("%.300s", text)
	}
	back, err := Decode(text)
	if err != nil {
		t.Fatal(err)
	}
	second, err := Encode(back)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(text), string(second)); diff != "" {
		t.Errorf("decoded and encoded again (-want +got):\n%s", diff)
	}
}

// TestEncodedRunsFollowTheSchema holds the Go structs to schemas/verdict.schema.json.
func TestEncodedRunsFollowTheSchema(t *testing.T) {
	for _, run := range []Run{sampleRun(), New(Header{}, nil)} {
		followsSchema(t, run)
	}
}

func followsSchema(t *testing.T, run Run) {
	t.Helper()
	text, err := schemas.Read("verdict")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("verdict.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("verdict.json")
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := Encode(run)
	if err != nil {
		t.Fatal(err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(encoded))
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(value); err != nil {
		t.Errorf("run %s: %v", run.RunID, err)
	}
}

// TestListsAreNeverNull: programs that read the JSON may index every list.
func TestListsAreNeverNull(t *testing.T) {
	job := NewJob(JobHeader{}, evidence.Evidence{}, verdict.Verdict{})
	text, err := Encode(New(Header{}, []Job{job}))
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range []string{"nodes", "reasons", "warnings", "ranks", "measurements"} {
		if !bytes.Contains(text, []byte(`"`+list+`": []`)) {
			t.Errorf("%s is not an empty list in %s", list, text)
		}
	}
	if job.Scope != "job" || !bytes.Contains(text, []byte(`"finished_at": null`)) {
		t.Errorf("%s", text)
	}
}

func TestNewRollsUp(t *testing.T) {
	run := sampleRun()
	if run.Verdict != verdict.Fail || run.ExitCode != exitcode.Fail {
		t.Errorf("%v, %v", run.Verdict, run.ExitCode)
	}
}

func TestNewJob(t *testing.T) {
	e := pairEvidence()
	j := NewJob(JobHeader{Name: "train"}, e, verdict.Verdict{Measurements: []metric.Measurement{{Name: "x", Value: math.NaN()}}})
	if diff := cmp.Diff([]string{"node-a", "node-b"}, j.Nodes); diff != "" {
		t.Errorf("nodes (-want +got):\n%s", diff)
	}
	if j.ElapsedSeconds != 7 || j.StartedAt.Second() != 0 || j.FinishedAt.Second() != 7 {
		t.Errorf("elapsed %v, from %v to %v", j.ElapsedSeconds, j.StartedAt, j.FinishedAt)
	}
	if j.Ranks[2].ExitCode != nil || *j.Ranks[1].ExitCode != 137 || j.Ranks[1].Signal != "SIGKILL" {
		t.Errorf("ranks %+v", j.Ranks)
	}
	if j.Measurements[0].Value != nil {
		t.Error("NaN was taken for a value")
	}
	e.Ranks[0].State = evidence.RankRunning
	if j := NewJob(JobHeader{}, e, verdict.Verdict{}); !j.FinishedAt.IsZero() {
		t.Errorf("a job that runs ended at %v", j.FinishedAt)
	}
}

func TestText(t *testing.T) {
	for name, opt := range map[string]Options{
		"plain.txt":   {},
		"color.txt":   {Color: true},
		"narrow.txt":  {Width: 60},
		"verbose.txt": {Verbose: true},
	} {
		run := sampleRun()
		if opt.Verbose {
			run.Jobs[1].Reasons = run.Jobs[1].Reasons[:7]
		}
		got := render(t, func(b *bytes.Buffer) error { return Text(b, run, opt) })
		golden(t, name, got)
		if !opt.Color && bytes.ContainsRune(got, 0x1b) {
			t.Errorf("%s holds an escape sequence", name)
		}
	}
}

func TestTextOfNothing(t *testing.T) {
	got := render(t, func(b *bytes.Buffer) error { return Text(b, New(Header{}, nil), Options{}) })
	if string(got) != "ERROR  0 jobs\n" {
		t.Errorf("%q", got)
	}
}

func TestJUnit(t *testing.T) {
	got := render(t, func(b *bytes.Buffer) error { return JUnit(b, sampleRun()) })
	var doc junitSuites
	if err := xml.Unmarshal(got, &doc); err != nil {
		t.Fatalf("%v\n%s", err, got)
	}
	if doc.Tests != 5 || doc.Failures != 1 || doc.Errors != 2 || doc.Skipped != 1 {
		t.Errorf("counts %+v", doc)
	}
	short := sampleRun()
	short.Jobs[1].Reasons = short.Jobs[1].Reasons[:3]
	golden(t, "junit.xml", render(t, func(b *bytes.Buffer) error { return JUnit(b, short) }))
}

// TestJUnitIsXMLWhateverItHolds reads back what arbitrary text became.
func TestJUnitIsXMLWhateverItHolds(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		text := string(rapid.SliceOf(rapid.Byte()).Draw(rt, "text"))
		run := New(Header{RunID: text}, []Job{{Name: text, Verdict: verdict.Error, Reasons: []verdict.Reason{{Message: text}}, Measurements: []Measurement{{Name: text}}}})
		var buf bytes.Buffer
		if err := JUnit(&buf, run); err != nil {
			rt.Fatal(err)
		}
		d := xml.NewDecoder(&buf)
		for {
			_, err := d.Token()
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				rt.Fatalf("%v in %q", err, buf.Bytes())
			}
		}
	})
}

func TestMarkdown(t *testing.T) {
	got := render(t, func(b *bytes.Buffer) error { return Markdown(b, sampleRun()) })
	golden(t, "summary.md", got)
	for line := range strings.Lines(string(got)) {
		if bars := strings.Count(strings.ReplaceAll(line, `\|`, ""), "|"); strings.HasPrefix(line, "|") && bars != 7 {
			t.Errorf("%d bars in %q", bars, line)
		}
	}
}

func TestMarkdownStaysSmall(t *testing.T) {
	jobs := make([]Job, 5000)
	for i := range jobs {
		jobs[i] = Job{Name: strings.Repeat("é", 5000), Verdict: verdict.Fail, Reasons: []verdict.Reason{{Message: strings.Repeat("x", 5000)}}}
	}
	got := render(t, func(b *bytes.Buffer) error { return Markdown(b, New(Header{}, jobs)) })
	if len(got) > 1<<20 || !bytes.Contains(got, []byte("…and 4500 more jobs.")) || !utf8.Valid(got) {
		t.Errorf("%d bytes", len(got))
	}
}

func TestHTML(t *testing.T) {
	run := sampleRun()
	run.Jobs[1].Reasons = run.Jobs[1].Reasons[:3]
	logs := []LogTail{{Job: "train", Rank: 1, Stream: "stderr", Text: "<script>alert(1)</script>\x1b[2J\n", Cut: true}}
	got := string(render(t, func(b *bytes.Buffer) error { return HTML(b, run, logs) }))
	golden(t, "report.html", []byte(got))
	if m := regexp.MustCompile(`(?i)<script|<b>|src=|https?://[^<]*"|url\(|@import|\x1b|\x00`).FindString(got); m != "" {
		t.Errorf("the page holds %q", m)
	}
	if !strings.Contains(got, "&lt;script&gt;alert(1)") || !utf8.ValidString(got) {
		t.Error("the log is missing or not escaped")
	}
}

func TestExplain(t *testing.T) {
	run := sampleRun()
	job := run.Jobs[1]
	job.Reasons = job.Reasons[:2]
	e := pairEvidence()
	e.Ranks[0].Problems = []metric.Problem{{Code: "METRIC_NOT_A_NUMBER", Message: "performance: 1,000 tokens has a thousands separator"}}
	e.Ranks[0].Results = &evidence.Results{Declared: "r.csv", Tried: []string{"/w/r.csv", "/r/r.csv"}}
	tail := &LogTail{Rank: 1, Stream: "stderr", Cut: true, Text: "10%\r50%\r100%\r\n\x1b]0;title\x07boom \xfe\n" + strings.Repeat("y", 500) + "\n\n"}
	golden(t, "explain.txt", render(t, func(b *bytes.Buffer) error { return Explain(b, run, job, e, tail, Options{}) }))
}

func TestExplainShowsFailingRanksOfMany(t *testing.T) {
	e := evidence.Evidence{}
	for i := range 5000 {
		e.Ranks = append(e.Ranks, ended(i, "n", 0, 5))
	}
	e.Ranks[4321].ExitCode = 3
	got := string(render(t, func(b *bytes.Buffer) error { return Explain(b, Run{}, Job{}, e, nil, Options{}) }))
	if !strings.Contains(got, "rank 4321 (n): ended, exited, exit code 3, after 5.00 s") || !strings.Contains(got, "…and 4984 more ranks") {
		t.Errorf("%s", got)
	}
}

func TestEveryRuleHasAMeaning(t *testing.T) {
	for _, j := range sampleRun().Jobs {
		if j.Rule != "" && ruleMeaning(j.Rule) == "" {
			t.Errorf("rule %q", j.Rule)
		}
	}
}

func TestExitCodeIsANumber(t *testing.T) {
	text, err := Encode(sampleRun())
	if err != nil {
		t.Fatal(err)
	}
	var v struct {
		ExitCode int `json:"exit_code"`
	}
	if err := json.Unmarshal(text, &v); err != nil || v.ExitCode != 3 {
		t.Errorf("%v, %v", v, err)
	}
}

func TestPending(t *testing.T) {
	run := Run{Jobs: []Job{{Verdict: verdict.Pass}, {Verdict: verdict.Pending}, {Verdict: verdict.Pending}, {Verdict: verdict.Unknown}}}
	if got := run.Pending(); got != 2 {
		t.Errorf("%d jobs are pending", got)
	}
}
