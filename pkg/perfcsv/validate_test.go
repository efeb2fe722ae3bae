package perfcsv

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestValidate(t *testing.T) {
	good := plainLine(t)
	edit := func(column, text string) string {
		cells := strings.Split(strings.TrimSuffix(good, "\n"), ",")
		for i, name := range Columns() {
			if name == column {
				cells[i] = text
			}
		}
		return strings.Join(cells, ",") + "\n"
	}
	for name, c := range map[string]struct {
		text string
		rows int
		want []string
	}{
		"good":           {good + good, 2, nil},
		"no rows":        {"", 0, nil},
		"status":         {good + edit("status", "OK"), 2, []string{`line 3: status: "OK" is not SUCCESS, FAILURE or SKIPPED`}},
		"verdict":        {edit("verdict", "PENDING"), 1, []string{`line 2: verdict: "PENDING" is not a verdict`}},
		"number":         {edit("performance", "NaN"), 1, []string{`line 2: performance: "NaN" is not a plain decimal number`}},
		"no number":      {edit("performance", ""), 1, []string{"line 2: status: SUCCESS without a number in performance"}},
		"hexadecimal":    {edit("performance", "0x1p3"), 1, []string{`line 2: performance: "0x1p3" is not a plain decimal number`}},
		"fraction":       {edit("attempt", "1.0"), 1, []string{`line 2: attempt: "1.0" is not an integer`}},
		"negative":       {edit("nnodes", "-1"), 1, []string{`line 2: nnodes: "-1" is less than 0`}},
		"negative time":  {edit("test_duration", "-1"), 1, []string{`line 2: test_duration: "-1" is not a plain decimal number of at least 0`}},
		"NUL":            {edit("reason", "a\x00b"), 1, []string{"line 2: the row has NUL bytes: several writers without a lock, or a file system that lost a write"}},
		"attempt":        {edit("attempt", "x"), 1, []string{`line 2: attempt: "x" is not an integer`}},
		"time":           {edit("started_at", "yesterday"), 1, []string{`line 2: started_at: "yesterday" is not an RFC 3339 time`}},
		"no run":         {edit("run_id", ""), 1, []string{`line 2: run_id: "" is empty`}},
		"width":          {"a,b\n" + good, 2, []string{"line 2: 2 cells where the header has 37"}},
		"empty line":     {"\n" + good, 2, []string{"line 2: 1 cells where the header has 37"}},
		"bare quote":     {edit("reason", `a"b`), 1, []string{"line 2: a bare quote stands inside a field"}},
		"quotes after":   {edit("reason", `"a"b"c"`) + good, 2, []string{"line 2: text follows a closing quote"}},
		"after quote":    {edit("reason", `"a"b`), 1, []string{"line 2: text follows a closing quote"}},
		"utf-8":          {edit("reason", "\xff"), 1, []string{`line 2: reason: "\xff" is not valid UTF-8`}},
		"torn":           {good + "half,", 1, []string{"line 3: the file ends without a line end: the row may be torn"}},
		"torn in quotes": {good + "half,\"a\n\n", 1, []string{"line 3: the file ends inside a quoted cell: a quote is not closed, or the row is torn"}},
		"after a break":  {strings.Replace(edit("attempt", "x"), "m,", "\"m\nn\",", 1), 1, []string{`line 3: attempt: "x" is not an integer`}},
		"lines in cells": {edit("reason", "\"a\n\nb\"") + edit("status", "x"), 2, []string{`line 5: status: "x" is not SUCCESS, FAILURE or SKIPPED`}},
	} {
		t.Run(name, func(t *testing.T) {
			path := perfPath(t)
			if err := os.WriteFile(path, append(header(), c.text...), 0o644); err != nil {
				t.Fatal(err)
			}
			sum, err := Validate(path)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, p := range sum.Problems {
				got = append(got, p.String())
			}
			if diff := cmp.Diff(c.want, got); diff != "" || sum.Rows != c.rows {
				t.Errorf("%d rows, want %d (-want +got):\n%s", sum.Rows, c.rows, diff)
			}
		})
	}
}

func TestValidateBoundsItsProblems(t *testing.T) {
	sum, err := ValidateReader(strings.NewReader(string(header()) + strings.Repeat("x\n", problemLimit+7)))
	if err != nil || len(sum.Problems) != problemLimit || sum.More != 7 {
		t.Errorf("%d problems and %d more, %v", len(sum.Problems), sum.More, err)
	}
}

func TestValidateEmptyFileAndHeader(t *testing.T) {
	for text, want := range map[string]string{"": "line 1: the file is empty", "a,b\n": `line 1: column 1 of the header is "a"`} {
		sum, err := ValidateReader(strings.NewReader(text))
		if err != nil || len(sum.Problems) != 1 || !strings.HasPrefix(sum.Problems[0].String(), want) {
			t.Errorf("%q: %v, %v", text, sum.Problems, err)
		}
	}
}

// TestValidatePlaces checks codes, rows and characters.
func TestValidatePlaces(t *testing.T) {
	ours, good := string(header()), plainLine(t)
	line := strings.TrimSuffix(ours, "\n")
	for name, c := range map[string]struct{ text, want string }{
		"empty":         {"", "EMPTY 1:1 row 0"},
		"mark":          {"\ufeff" + ours + "x\n", "BOM 1:1 row 0; PERF_WIDTH 2:1 row 1"},
		"mark, quoted":  {"\ufeff\"" + strings.ReplaceAll(line, ",", "\",\"") + "\"\n", "BOM 1:1 row 0"},
		"CRLF":          {line + "\r\n", ""},
		"header cell":   {"model,gpus\n", "PERF_HEADER 1:7 row 0"},
		"header short":  {strings.TrimSuffix(line, ",finished_at") + "\r\n", fmt.Sprintf("PERF_HEADER 1:%d row 0", len(line)-len(",finished_at")+1)},
		"header long":   {line + ",more\n", fmt.Sprintf("PERF_HEADER 1:%d row 0", len(line)+2)},
		"header torn":   {line, "PERF_TORN 1:1 row 0"},
		"bare quote":    {ours + good + "é\"x\n" + good, "PERF_QUOTE 3:2 row 2"},
		"after a quote": {ours + "\"é\"x\n", "PERF_QUOTE 2:4 row 1"},
		"NUL":           {ours + "é\x00\n", "PERF_NUL 2:2 row 1"},
		"open quote":    {ours + good + "a,\"b\n" + good, "PERF_QUOTE 3:3 row 2"},
		"torn":          {ours + good + "a,", "PERF_TORN 3:1 row 2"},
		"cell":          {ours + strings.Replace(good, "m,", "é,x", 1), "PERF_VALUE 2:3 row 1"},
		"behind breaks": {ours + strings.Replace(good, "m,", "\"m\n\né\",x", 1), "PERF_VALUE 4:4 row 1"},
	} {
		sum, err := ValidateReader(strings.NewReader(c.text))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range sum.Problems {
			got = append(got, fmt.Sprintf("%s %d:%d row %d", p.Code, p.Line, p.At, p.Row))
		}
		if strings.Join(got, "; ") != c.want {
			t.Errorf("%s: %s, want %s", name, strings.Join(got, "; "), c.want)
		}
	}
}

// endlessText never ends.
type endlessText struct{ read int }

func (e *endlessText) Read(b []byte) (int, error) {
	e.read += len(b)
	for i := range b {
		b[i] = "x\n"[i%2]
	}
	return len(b), nil
}

// TestValidateBoundsARecord reads a quote that is never closed: what follows it
// is not held, and not read, beyond the limit.
func TestValidateBoundsARecord(t *testing.T) {
	rest := &endlessText{}
	sum, err := ValidateReader(io.MultiReader(strings.NewReader(string(header())+plainLine(t)+"m,\""), rest))
	if err != nil || len(sum.Problems) != 1 {
		t.Fatalf("%v, %v", sum.Problems, err)
	}
	if p := sum.Problems[0]; p.Code != CodeQuote || p.String() != "line 3: the record is longer than 16 MiB: a quote is not closed" {
		t.Errorf("%s %s", p.Code, p)
	}
	if rest.read > 2*recordLimit {
		t.Errorf("read %d bytes", rest.read)
	}
}

// TestAClosingQuoteMayEndAPiece has a quoted cell whose line end is cut in two by
// the buffer.
func TestAClosingQuoteMayEndAPiece(t *testing.T) {
	in := newScanner(nil, 0)
	long := "\"" + strings.Repeat("a", 13) + "\"\r\n"
	in.in = bufio.NewReaderSize(strings.NewReader(long), 16)
	record, err := in.scan()
	if err != nil || in.fault != "" || record[0] != strings.Repeat("a", 13) {
		t.Errorf("%q, %v, %s", record, err, in.fault)
	}
}

func batches(list ...[]Row) func(func([]Row, error) bool) {
	return func(yield func([]Row, error) bool) {
		for _, rows := range list {
			if !yield(rows, nil) {
				return
			}
		}
	}
}

func TestRebuild(t *testing.T) {
	path := perfPath(t)
	done, err := Rebuild(path, batches(samples("a", 2), nil, samples("b", 1)))
	if err != nil || done.Rows != 3 || done.Kept != "" {
		t.Fatalf("%+v, %v", done, err)
	}
	if diff := cmp.Diff(append(samples("a", 2), samples("b", 1)...), mustRead(t, path)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	again, err := Rebuild(path, batches(samples("a", 2), samples("b", 1)))
	if err != nil || again.Kept != "" {
		t.Errorf("the same again: %+v, %v", again, err)
	}
	other, err := Rebuild(path, batches(samples("c", 1)))
	if err != nil || other.Kept == "" {
		t.Fatalf("another: %+v, %v", other, err)
	}
	if rows := mustRead(t, other.Kept); len(rows) != 3 {
		t.Errorf("the old file has %d rows", len(rows))
	}
	mustAppend(t, path, sample("d", 0))
	if rows := mustRead(t, path); len(rows) != 2 {
		t.Errorf("%d rows", len(rows))
	}
}

func TestRebuildThatFailsChangesNothing(t *testing.T) {
	path := perfPath(t)
	mustAppend(t, path, samples("a", 2)...)
	broken := errors.New("unreadable run")
	_, err := Rebuild(path, func(yield func([]Row, error) bool) {
		_ = yield(samples("b", 1), nil) && yield(nil, broken)
	})
	if !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
	if rows := mustRead(t, path); len(rows) != 2 {
		t.Errorf("%d rows", len(rows))
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(path), ".perf.csv.[0-9]*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left over: %v, %v", left, err)
	}
}

// big writes a perf.csv of n rows.
func big(b *testing.B, n int) string {
	b.Helper()
	path := filepath.Join(b.TempDir(), "perf.csv")
	_, err := Rebuild(path, func(yield func([]Row, error) bool) {
		const step = 10_000
		for done := 0; done < n; done += step {
			if !yield(samples("20250102-030405-abcdef", step), nil) {
				return
			}
		}
	})
	if err != nil {
		b.Fatal(err)
	}
	return path
}

func BenchmarkAppend(b *testing.B) {
	for _, n := range []int{0, 1_000_000} {
		b.Run(fmt.Sprintf("to %d rows", n), func(b *testing.B) {
			path := big(b, n)
			rows := samples("r", 1)
			b.ResetTimer()
			for b.Loop() {
				if _, err := Append(path, rows); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkValidate(b *testing.B) {
	const rows = 1_000_000
	path := big(b, rows)
	size, err := Size(path)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(size)
	b.ReportAllocs()
	b.ResetTimer()
	for b.Loop() {
		if sum, err := Validate(path); err != nil || sum.Rows != rows {
			b.Fatal(sum, err)
		}
	}
}
