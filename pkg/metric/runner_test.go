package metric

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// runnerCase is one case of testdata/runner.json.
type runnerCase struct {
	Name     string   `json:"name"`
	Specs    []Spec   `json:"specs"`
	Declared []string `json:"declared"`
	Out      []string `json:"out"`
	Err      []string `json:"err"`
	Want     []string `json:"want"`
	Problems []string `json:"problems"` // parts of the messages, in order
	Skip     string   `json:"skip"`
	Said     string   `json:"said"`
}

// hears gives the lines of a stream to a Runner as a scanner does: those with a tag
// one by one, and others together.
func hears(r *Runner, lines []string, place string) {
	var plain strings.Builder
	flush := func() {
		if plain.Len() > 0 {
			r.Plain([]byte(plain.String()))
			plain.Reset()
		}
	}
	for i, line := range lines {
		tagged := false
		for _, tag := range r.Tags() {
			tagged = tagged || strings.Contains(line, tag)
		}
		if !tagged {
			plain.WriteString(line + "\n")
			continue
		}
		flush()
		r.Line([]byte(line+"\n"), fmt.Sprintf("%s:%d", place, i+1), false)
	}
	flush()
}

func TestRunner(t *testing.T) {
	var cases []runnerCase
	load(t, "testdata/runner.json", &cases)
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			declared := c.Declared
			for _, s := range c.Specs {
				declared = append(declared, s.Name)
			}
			col := NewAcceptanceCollector(c.Specs, declared)
			out, err := col.Stdout(), col.Stderr()
			hears(out, c.Out, "out")
			hears(err, c.Err, "err")
			readings, problems := col.Result()
			var got []string
			for _, r := range readings {
				if r.Label {
					got = append(got, fmt.Sprintf("%s %s=%q", r.Source, r.Name, r.Text))
				} else {
					got = append(got, describe([]Reading{r})...)
				}
			}
			if diff := cmp.Diff(c.Want, got); diff != "" {
				t.Errorf("readings (-want +got):\n%s", diff)
			}
			checkProblems(t, c.Problems, problems)
			skip, said := out.Skip(), out.Said()
			if skip == "" {
				skip = err.Skip()
			}
			if said == "" {
				said = err.Said()
			}
			if diff := cmp.Diff([]string{c.Skip, c.Said}, []string{skip, said}); diff != "" {
				t.Errorf("skip and said (-want +got):\n%s", diff)
			}
		})
	}
}

// A job that is not measured still hears its skip and its last words.
func TestMutedRunner(t *testing.T) {
	col := NewAcceptanceCollector(nil, nil)
	r := col.Stdout().Muted()
	hears(r, []string{"a=1", "X_SKIP: so", "bye", "performance: 1 x"}, "out")
	readings, problems := col.Result()
	if len(readings)+len(problems) > 0 || r.Skip() != "X_SKIP: so" || r.Said() != "bye" {
		t.Errorf("%v %v %q %q", readings, problems, r.Skip(), r.Said())
	}
}

// However long and odd a line is, what is kept of it is short and valid UTF-8.
func TestWordsAreClipped(t *testing.T) {
	for _, line := range []string{strings.Repeat("é", 400), "X_SKIP: " + strings.Repeat("é", 400), "k=" + strings.Repeat("é", 5000), "bad\xff\xfe\xff", "X_SKIP: \xff", "k=\xff"} {
		col := NewAcceptanceCollector(nil, nil)
		r := col.Stdout()
		hears(r, []string{line}, "out")
		readings, _ := col.Result()
		texts := []string{r.Skip(), r.Said()}
		for _, reading := range readings {
			texts = append(texts, reading.Text)
		}
		for _, text := range texts {
			if len(text) > maxSaid || !utf8.ValidString(text) {
				t.Errorf("%q keeps %d bytes: %q", line[:8], len(text), text)
			}
		}
	}
}

// A flood of keys that are no names is counted, and takes no place of a metric.
func TestManyOddKeys(t *testing.T) {
	col := NewAcceptanceCollector(nil, nil)
	r := col.Stdout()
	for i := range 5 * maxProblems {
		r.Line([]byte(fmt.Sprintf("BAD_%d=1", i)), "out", false)
		r.Line([]byte("BAD_0=2"), "out", false)
	}
	r.Line([]byte("good=1"), "out", false)
	readings, problems := col.Result()
	if len(readings) != 1 || len(problems) != maxProblems+1 || !strings.Contains(problems[maxProblems].Message, fmt.Sprintf("%d more lines", 4*maxProblems)) {
		t.Errorf("%v, %d problems, last %+v", readings, len(problems), problems[len(problems)-1])
	}
}

// Whatever a runner prints, the last line of a name is what stands, and names are
// names.
func TestRunnerProperties(t *testing.T) {
	line := rapid.SampledFrom([]string{
		"a=1", "a=2", "a=n/a", "a=NaN", "a=word", "A=1", "b_c=1", "prose", "x = y z", "X_SKIP", "-----BEGIN ASSAY ARTIFACT", "-----END ASSAY ARTIFACT-----", "performance: 3 a",
	})
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOf(line).Draw(t, "lines")
		col := NewAcceptanceCollector(nil, nil)
		hears(col.Stdout(), lines, "out")
		last, inside := "", false
		for _, l := range lines {
			switch {
			case strings.HasPrefix(l, "-----BEGIN"):
				inside = true
			case strings.HasPrefix(l, "-----END"):
				inside = false
			case !inside && strings.HasPrefix(l, "a="):
				last = strings.TrimPrefix(l, "a=")
			}
		}
		readings, problems := col.Result()
		got := ""
		for _, r := range readings {
			if err := ValidName(r.Name); err != nil {
				t.Fatal(err)
			}
			if r.Name == "a" && r.Source == SourceKeyValue {
				got = r.Text
			}
		}
		for _, p := range problems {
			if p.Code == CodeNotANumber {
				got = p.Text
			}
		}
		if got != last {
			t.Fatalf("%q: a is %q, want %q", lines, got, last)
		}
	})
}

func FuzzRunner(f *testing.F) {
	f.Add("a=1\nX_SKIP\n-----BEGIN ASSAY ARTIFACT\n")
	f.Fuzz(func(t *testing.T, text string) {
		col := NewAcceptanceCollector(nil, nil)
		r := col.Stdout()
		hears(r, strings.Split(text, "\n"), "out")
		readings, _ := col.Result()
		for _, reading := range readings {
			if reading.Source == SourceKeyValue && ValidName(reading.Name) != nil || !utf8.ValidString(reading.Text) {
				t.Fatalf("%+v", reading)
			}
		}
		if !utf8.ValidString(r.Said()) || !utf8.ValidString(r.Skip()) {
			t.Fatalf("%q %q", r.Said(), r.Skip())
		}
	})
}

func BenchmarkRunner(b *testing.B) {
	col := NewAcceptanceCollector(nil, nil)
	r := col.Stdout()
	line := []byte("triadGBs=123.456")
	for b.Loop() {
		r.Line(line, "stdout:1", false)
	}
}
