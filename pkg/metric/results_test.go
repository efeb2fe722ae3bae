package metric

import (
	"encoding/csv"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestResults(t *testing.T) {
	var cases []struct {
		Name     string   `json:"name"`
		Text     []string `json:"text"` // joined without separators
		Want     []string `json:"want"`
		Places   []string `json:"places"`
		Columns  []string `json:"columns"`
		Problems []string `json:"problems"`
		Rows     []Row    `json:"rows"` // rows without a usable value
	}
	load(t, "testdata/results.json", &cases)
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			rows, columns, problems := ParseResults(strings.NewReader(strings.Join(c.Text, "")), "r.csv")
			if diff := cmp.Diff(c.Want, describe(rows)); diff != "" {
				t.Errorf("rows (-want +got):\n%s", diff)
			}
			if c.Columns != nil {
				if diff := cmp.Diff(c.Columns, columns); diff != "" {
					t.Errorf("columns (-want +got):\n%s", diff)
				}
			}
			if c.Places != nil {
				var places []string
				for _, r := range rows {
					places = append(places, r.Place)
				}
				if diff := cmp.Diff(c.Places, places); diff != "" {
					t.Errorf("places (-want +got):\n%s", diff)
				}
			}
			checkProblems(t, c.Problems, problems)
			var lost []Row
			for _, p := range problems {
				lost = append(lost, p.Rows...)
			}
			if diff := cmp.Diff(c.Rows, lost); diff != "" {
				t.Errorf("rows without a value (-want +got):\n%s", diff)
			}
		})
	}
}

// What a CSV writer prints is read back, whatever the values hold.
func TestPrintedResultsAreReadBack(t *testing.T) {
	text := rapid.StringMatching(`[a-zA-Z0-9 ,"/\n;_.-]{0,12}`).Filter(func(s string) bool {
		return strings.TrimSpace(s) == s
	})
	rapid.Check(t, func(t *rapid.T) {
		var b strings.Builder
		w := csv.NewWriter(&b)
		w.UseCRLF = rapid.Bool().Draw(t, "crlf")
		order := rapid.Permutation([]string{"Model", "performance", " METRIC", "note"}).Draw(t, "order")
		_ = w.Write(order)
		var want []string
		for range rapid.IntRange(1, 8).Draw(t, "rows") {
			v := rapid.Float64().Filter(func(f float64) bool { return f-f == 0 }).Draw(t, "value")
			model, note := text.Draw(t, "model"), text.Draw(t, "note")
			name := rapid.StringMatching(`[a-z][a-z,"/]{0,8}`).Draw(t, "metric")
			value := map[string]string{"Model": model, "performance": formatNumber(v), " METRIC": name, "note": note}
			var row []string
			for _, c := range order {
				row = append(row, value[c])
			}
			_ = w.Write(row)
			want = append(want, describe([]Reading{{Source: SourceResults, Name: name, Model: model, Value: v}})...)
		}
		w.Flush()
		rows, _, problems := ParseResults(strings.NewReader(b.String()), "r.csv")
		if len(problems) > 0 {
			t.Fatalf("%q: %+v", b.String(), problems)
		}
		if diff := cmp.Diff(want, describe(rows)); diff != "" {
			t.Fatalf("%q\n%s", b.String(), diff)
		}
	})
}

// Cutting a file anywhere gives its first rows and never a row it does not hold,
// but for a last field that was cut short, and then the row says that it may be.
func TestCutFileGivesItsFirstRows(t *testing.T) {
	for _, whole := range []string{
		"performance,model,metric\n100,m1,tps\n200,m2,tps\n300,m3,tps\n",
		"model,metric,performance\nm1,tps,100\nm2,tps,200\nm3,tps,300\n",
		"model,metric,performance,seconds\r\nm1,tps,100,1\r\nm2,tps,200,2\r\n",
	} {
		cutAnywhere(t, whole)
	}
}

func cutAnywhere(t *testing.T, whole string) {
	all, _, _ := ParseResults(strings.NewReader(whole), "r.csv")
	for n := range len(whole) {
		rows, _, problems := ParseResults(strings.NewReader(whole[:n]), "r.csv")
		for i, r := range rows {
			if same := r.Value == all[i].Value && r.Model == all[i].Model && r.Name == all[i].Name; !same && !r.Unended {
				t.Errorf("cut at %d: row %d is %+v", n, i, r)
			}
			if r.Unended && (i < len(rows)-1 || strings.HasSuffix(whole[:n], "\n")) {
				t.Errorf("cut at %d: row %d is whole, and is said not to be: %+v", n, i, r)
			}
		}
		if len(rows) == 0 && len(problems) == 0 {
			t.Errorf("cut at %d: nothing and no reason", n)
		}
	}
}

type failingReader struct{ r io.Reader }

func (f failingReader) Read(p []byte) (int, error) {
	n, err := f.r.Read(p)
	if errors.Is(err, io.EOF) {
		err = errors.New("stale file handle")
	}
	return n, err
}

func TestResultsReadError(t *testing.T) {
	rows, _, problems := ParseResults(failingReader{strings.NewReader("performance,metric\n1,a\n")}, "r.csv")
	if len(rows) != 1 {
		t.Errorf("rows: %+v", rows)
	}
	checkProblems(t, []string{"RESULTS_UNREADABLE r.csv cannot be read any further: stale file handle"}, problems)
	_, _, problems = ParseResults(failingReader{strings.NewReader("")}, "r.csv")
	checkProblems(t, []string{"RESULTS_UNREADABLE r.csv cannot be read: stale"}, problems)
}

func TestResultsLimits(t *testing.T) {
	long := strings.Repeat("x", maxRecord+1)
	_, _, problems := ParseResults(strings.NewReader("performance,metric\n1,"+long), "r.csv")
	checkProblems(t, []string{"longer than"}, problems)
	_, _, problems = ParseResults(strings.NewReader("performance,metric\n1,\""+strings.Repeat("x\n", maxRecord)), "r.csv")
	checkProblems(t, []string{"is a closing quote missing?"}, problems)
	_, _, problems = ParseResults(strings.NewReader("performance,metric\n"+strings.Repeat("1\n", maxProblems+3)), "r.csv")
	if len(problems) != maxProblems+1 || !strings.Contains(problems[maxProblems].Message, "3 more rows") {
		t.Errorf("problems: %+v", problems)
	}
}

// However many rows have no value, none of them is left out of what is gated.
func TestManyRowsWithoutAValue(t *testing.T) {
	var b strings.Builder
	b.WriteString("model,performance,metric\n")
	for i := range 3 * maxProblems {
		b.WriteString("m" + strconv.Itoa(i) + ",,x\nm0,,x\n")
	}
	_, _, problems := ParseResults(strings.NewReader(b.String()), "r.csv")
	checkProblems(t, []string{"every performance is empty"}, problems)
	rows := problems[0].Rows
	if len(rows) != maxProblems+1 || rows[1] != (Row{Name: "x", Model: "m1", Place: "r.csv:4"}) || rows[maxProblems] != (Row{Place: "r.csv", Cut: true}) {
		t.Errorf("%+v", rows)
	}
}

func FuzzResults(f *testing.F) {
	for _, s := range []string{
		"model,performance,metric\nm,1,x\n", "\ufeffPERFORMANCE\r\n1\r\n", "performance,performance\n1,2\n", "performance,metric\n\"1\",\"a\"\"b\n", "performance\n\x00\n", "a;performance\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		rows, columns, problems := ParseResults(strings.NewReader(string(data)), "r.csv")
		checkReadings(t, rows)
		if len(rows) == 0 && len(problems) == 0 {
			t.Fatalf("nothing and no reason, columns %q", columns)
		}
	})
}

func BenchmarkResultsMillionRows(b *testing.B) {
	var s strings.Builder
	s.WriteString("model,performance,metric\n")
	for i := range 1_000_000 {
		s.WriteString("llama,")
		s.WriteString(strconv.Itoa(i))
		s.WriteString(".5,tokens_per_second\n")
	}
	b.SetBytes(int64(s.Len()))
	b.ReportAllocs()
	for b.Loop() {
		rows, _, problems := ParseResults(strings.NewReader(s.String()), "r.csv")
		if len(rows) != 1_000_000 || len(problems) != 0 {
			b.Fatal(len(rows), problems)
		}
	}
}
