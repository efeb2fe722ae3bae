package metric

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// lineCase is one case of testdata/lines.json.
type lineCase struct {
	Name     string   `json:"name"`
	Declared []string `json:"declared"`
	Lines    []string `json:"lines"`
	// Want lists "source name=value unit" in order; the unit may be absent.
	Want     []string `json:"want"`
	Problems []string `json:"problems"` // parts of the messages, in order
}

func TestLines(t *testing.T) {
	var cases []lineCase
	load(t, "testdata/lines.json", &cases)
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			col := NewCollector(c.Declared)
			for _, l := range c.Lines {
				col.Line([]byte(l), "stdout")
			}
			readings, problems := col.Result()
			if diff := cmp.Diff(c.Want, describe(readings)); diff != "" {
				t.Errorf("readings (-want +got):\n%s", diff)
			}
			checkProblems(t, c.Problems, problems)
		})
	}
}

func load(t *testing.T, path string, into any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

func describe(readings []Reading) []string {
	var out []string
	for _, r := range readings {
		name := r.Name
		if r.Model != "" {
			name = r.Model + "/" + name
		}
		value := formatNumber(r.Value)
		if r.NotApplicable {
			value = "n/a"
		}
		out = append(out, strings.TrimSpace(string(r.Source)+" "+name+"="+value+" "+r.Unit))
	}
	return out
}

func checkProblems(t *testing.T, want []string, got []Problem) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("got %d problems, want %d: %+v", len(got), len(want), got)
	}
	for i, w := range want {
		if text := got[i].Code + " " + got[i].Message; !strings.Contains(text, w) {
			t.Errorf("problem %d is %q, want it to contain %q", i, text, w)
		}
	}
}

// What a line was cut of is kept, however many lines before it were no readings.
func TestLineCutBeforeItsMetric(t *testing.T) {
	for _, line := range []string{"performance:", "performance: ", "performance: 0.5", "performance: 1e", "performance: 1e+ t", "performance: -"} {
		col := NewCollector(nil)
		for range maxProblems + 1 {
			col.Line([]byte("performance: 5"), "out")
		}
		col.Unended([]byte(line), "out")
		_, problems := col.Result()
		var rows []Row
		for _, p := range problems {
			rows = append(rows, p.Rows...)
		}
		if diff := cmp.Diff([]Row{{Place: "out", Cut: true}}, rows); diff != "" {
			t.Errorf("%q (-want +got):\n%s", line, diff)
		}
	}
	col := NewCollector([]string{"k"})
	col.Unended([]byte("k="), "out")
	if _, problems := col.Result(); len(problems) != 1 || len(problems[0].Rows) != 1 || problems[0].Rows[0] != (Row{Name: "k", Place: "out"}) {
		t.Errorf("%+v", problems)
	}
}

// What may be cut stands beside what whole lines said, and says so.
func TestLineWithoutAnEnd(t *testing.T) {
	col := NewCollector([]string{"k"})
	col.Line([]byte("performance: 5 tps"), "out")
	col.Line([]byte("k=7"), "out")
	col.Unended([]byte("10%\rk=8\rperformance: 6 tps"), "out")
	col.Unended([]byte("k=9"), "err")
	readings, problems := col.Result()
	if diff := cmp.Diff([]string{"performance tps=5", "key_value k=8", "performance tps=6", "key_value k=9"}, describe(readings)); diff != "" || len(problems) > 0 {
		t.Fatal(diff, problems)
	}
	for i, want := range []bool{false, false, true, true} {
		if readings[i].Unended != want {
			t.Errorf("%+v", readings[i])
		}
	}
}

// Lines of one metric that go on differently never overwrite each other unsaid.
func TestOverwrittenIsSaid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		col := NewCollector(nil)
		trails := map[string]map[string]bool{}
		for range rapid.IntRange(0, 12).Draw(t, "lines") {
			value := rapid.SampledFrom([]string{"1", "2", "nan", "n/a"}).Draw(t, "value")
			name := rapid.SampledFrom([]string{"tps", "GB/s", "x"}).Draw(t, "name")
			trail := rapid.SampledFrom([]string{"", "on a", "on b"}).Draw(t, "trail")
			col.Line([]byte("performance: "+value+" "+name+" "+trail), "")
			if trails[name] == nil {
				trails[name] = map[string]bool{}
			}
			trails[name][trail] = true
		}
		_, problems := col.Result()
		said := map[string]bool{}
		for _, p := range problems {
			if p.Code == CodeDisagrees {
				said[p.Name] = true
			}
		}
		for name, different := range trails {
			if said[name] != (len(different) > 1) {
				t.Fatalf("%s: %v, %+v", name, different, problems)
			}
		}
	})
}

// A value that is printed is read back exactly.
func TestPrintedValueIsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.Float64().Filter(func(f float64) bool { return f-f == 0 }).Draw(t, "value")
		unit := rapid.SampledFrom([]string{"", "/s", "GB/s", "%", "us", "eV"}).Draw(t, "unit")
		comma := rapid.SampledFrom([]string{"", ","}).Draw(t, "comma")
		name := rapid.StringMatching(`[a-z][A-Za-z0-9_/]{0,20}`).Draw(t, "name")
		col := NewCollector([]string{name})
		col.Line([]byte("performance: "+formatNumber(v)+unit+comma+" "+name), "")
		col.Line([]byte(name+" = "+formatNumber(v)+unit), "")
		readings, problems := col.Result()
		if len(readings) != 2 || len(problems) != 0 {
			t.Fatalf("readings %+v, problems %+v", readings, problems)
		}
		for _, r := range readings {
			if r.Value != v || r.Name != name || r.Unit != unit {
				t.Fatalf("%+v, want %v %s %s", r, v, unit, name)
			}
		}
	})
}

// The last line of a name stands, whatever came before.
func TestLastOfEachNameStands(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		col := NewCollector(nil)
		last := map[string]float64{}
		for range rapid.IntRange(0, 30).Draw(t, "lines") {
			name := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name")
			if rapid.Bool().Draw(t, "bad") {
				col.Line([]byte("performance: nan "+name), "")
				delete(last, name)
				continue
			}
			v := float64(rapid.IntRange(-1000, 1000).Draw(t, "value"))
			col.Line([]byte("performance: "+formatNumber(v)+" "+name), "")
			last[name] = v
		}
		readings, _ := col.Result()
		got := map[string]float64{}
		for _, r := range readings {
			got[r.Name] = r.Value
		}
		if diff := cmp.Diff(last, got); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestManyNamesAreBounded(t *testing.T) {
	col := NewCollector(nil)
	for i := range maxNames + 7 {
		col.Line([]byte("performance: 1 m"+formatNumber(float64(i))), "")
	}
	for range maxProblems + 5 {
		col.Line([]byte("performance: 12"), "")
	}
	readings, problems := col.Result()
	if len(readings) != maxNames || len(problems) != maxProblems+2 {
		t.Fatalf("%d readings, %d problems", len(readings), len(problems))
	}
	if got := problems[len(problems)-1].Message; !strings.Contains(got, "7 readings were ignored") {
		t.Errorf("last problem: %s", got)
	}
}

// However many others there are, what is declared counts; and one reading is one.
func TestDeclaredNamesCountBeyondEveryCap(t *testing.T) {
	col := NewAcceptanceCollector([]Spec{{Name: "late"}}, []string{"late", "gatedGBs"})
	r := col.Stdout()
	for i := range maxNames + 1 {
		r.Line([]byte("key"+formatNumber(float64(i))+"=1"), "out", false)
	}
	for _, line := range []string{"late=1", "gatedGBs=n", "gated_g_bs=5", "late=2", "gatedGBs=7", "performance: 3 late"} {
		r.Line([]byte(line), "out", false)
	}
	readings, problems := col.Result()
	if diff := cmp.Diff([]string{"key_value late=2", "key_value gatedGBs=7 GB/s", "performance late=3"}, describe(withUnit(readings[maxNames:]))); diff != "" {
		t.Error(diff)
	}
	checkProblems(t, []string{"METRIC_DISAGREES gatedGBs was reported as 5 (gated_g_bs) and as 7", "METRIC_NOT_A_NUMBER 1 reading was ignored: more than 10000 different"}, problems)
	if got := problems[1].Source; got != SourceKeyValue {
		t.Errorf("the ignored reading is said to be of %q", got)
	}
}

// withUnit gives readings the unit of their names.
func withUnit(readings []Reading) []Reading {
	for i := range readings {
		readings[i].Unit, _ = UnitOf(readings[i].Name)
	}
	return readings
}

func TestLongLineOfAProgressBar(t *testing.T) {
	col := NewCollector([]string{"tokens"})
	col.Line([]byte(strings.Repeat("50%|#####\r", 10_000)+"performance: 5 x\rtokens=7\r\n"), "stderr")
	readings, _ := col.Result()
	if diff := cmp.Diff([]string{"performance x=5", "key_value tokens=7"}, describe(readings)); diff != "" {
		t.Fatal(diff)
	}
	if col.Changed() != 2 {
		t.Errorf("changed %d times", col.Changed())
	}
}

func FuzzLine(f *testing.F) {
	for _, s := range []string{
		"performance: 14164 samples_per_second", "performance: 1,234 x", "a=1", "\x1b[32ma=1.5 GB/s\x1b[0m",
		"[rank0]:performance: n/a y", "performance: 0x10 z", "performance: -.5e-3/s, q\r\n", "performance: 1 GB/s read", "performance:", "a==2", "\x1b]0;t\a a=3",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		col := NewCollector([]string{"a"})
		before := bytes.Clone(line)
		col.Line(line, "stdout")
		col.Unended(line, "stdout")
		if !bytes.Equal(before, line) {
			t.Fatal("the line was changed")
		}
		readings, problems := col.Result()
		checkReadings(t, readings)
		if len(readings)+len(problems) > 0 && col.Changed() == 0 {
			t.Fatal("a result without a change")
		}
	})
}

// checkReadings holds for whatever was read.
func checkReadings(t *testing.T, readings []Reading) {
	t.Helper()
	for _, r := range readings {
		if r.Value-r.Value != 0 || r.Name == "" || r.Source == "" {
			t.Fatalf("not a reading: %+v", r)
		}
		if !r.NotApplicable && !strings.EqualFold(r.Text, "n/a") {
			if q, err := parseValue(r.Text); err != nil || q.value != r.Value {
				t.Fatalf("text %q does not give %v", r.Text, r.Value)
			}
		}
	}
}

func BenchmarkCollectorOrdinaryLines(b *testing.B) {
	line := []byte("2024-05-01 12:00:00,123 INFO step 1200/5000 loss=2.3451 lr=0.0001 tokens per second 12345.6\n")
	c := NewCollector([]string{"busbwGbps", "triadGBs"})
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		c.Line(line, "stdout")
	}
	if c.Changed() != 0 {
		b.Fatal("the line is no reading")
	}
}

func BenchmarkCollectorReadings(b *testing.B) {
	line := []byte("performance: 14164.5/s, samples_per_second\n")
	c := NewCollector(nil)
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		c.Line(line, "stdout")
	}
}

func TestTrailingNumbersMakeNoDifference(t *testing.T) {
	for _, c := range []struct {
		lines []string
		want  int
	}{
		{[]string{"performance: 1 tps step 1", "performance: 2 tps step 10"}, 0},
		{[]string{"performance: 1 tps (0.5 s)", "performance: 2 tps (12.25 s)"}, 0},
		{[]string{"performance: 1 tps on a", "performance: 2 tps on b"}, 1},
	} {
		col := NewCollector(nil)
		for _, l := range c.lines {
			col.Line([]byte(l), "")
		}
		if _, problems := col.Result(); len(problems) != c.want {
			t.Errorf("%q: %v, want %d problems", c.lines, problems, c.want)
		}
	}
}
