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

// A line that is too long takes the place of what was said before, as what is no number.
func TestLongLines(t *testing.T) {
	long := strings.Repeat("x", maxLine)
	blank := strings.Repeat(" ", maxLine)
	for _, tt := range []struct {
		name           string
		line, head     string // by Line, or by Long
		want, problems []string
		said, skip     string
	}{
		{name: "by its beginning", head: "a=5 and more", problems: []string{`METRIC_NOT_A_NUMBER out:2: "a=5 and more" is no reading: its line is longer than 64 KiB`}},
		{name: "a number at first", line: "a=5" + blank + "9", problems: []string{`is no reading: its line is longer than 8 KiB`}},
		{name: "a word", line: "a=" + long, problems: []string{"longer than 8 KiB"}},
		{name: "no key", head: "some prose, a=5", want: []string{"key_value a=1"}, said: "some prose, a=5"},
		{name: "no name", head: "A=5", want: []string{"key_value a=1"}, problems: []string{"METRIC_NAME"}},
		{name: "what was drawn over stands", head: "a=7\rb=2", want: []string{"key_value a=7"}, problems: []string{"b=2"}},
		{name: "a skip", head: "X_SKIP: why a=5", want: []string{"key_value a=1"}, said: "X_SKIP: why a=5", skip: "X_SKIP: why a=5"},
		{name: "a performance line", head: "performance: 5 a", want: []string{"key_value a=1"}, problems: []string{`"performance: 5 a" is no reading: its line is longer than 64 KiB`}},
		{name: "a performance line that goes on", line: "performance: 5 a " + long, want: []string{"key_value a=1", "performance a=5"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			col := NewAcceptanceCollector(nil, nil)
			r := col.Stdout()
			r.Line([]byte("a=1\n"), "out:1", false)
			if tt.head != "" {
				r.Long([]byte(tt.head), "out:2", "64 KiB")
			} else {
				r.Line([]byte(tt.line), "out:2", false)
			}
			readings, problems := col.Result()
			if diff := cmp.Diff(tt.want, describe(readings)); diff != "" {
				t.Error(diff)
			}
			checkProblems(t, tt.problems, problems)
			if r.Said() != tt.said || r.Skip() != tt.skip {
				t.Errorf("said %q, skip %q", r.Said(), r.Skip())
			}
			r.Line([]byte("a=3\n"), "out:3", false)
			if readings, _ := col.Result(); !strings.Contains(strings.Join(describe(readings), " "), "key_value a=3") {
				t.Errorf("a later line does not count: %v", describe(readings))
			}
		})
	}
	col := NewAcceptanceCollector(nil, nil)
	for _, r := range []*Runner{col.Stdout().Muted(), col.Stderr()} {
		r.Long([]byte("a=5"), "out", "64 KiB")
	}
	r := col.Stdout()
	r.Line([]byte("-----BEGIN ASSAY ARTIFACT a text/plain-----"), "out", false)
	r.Long([]byte("a=5"), "out", "64 KiB")
	if readings, problems := col.Result(); len(readings)+len(problems) > 0 {
		t.Errorf("%v %v", readings, problems)
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
