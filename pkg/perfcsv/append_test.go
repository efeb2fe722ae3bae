package perfcsv

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"assay/pkg/exitcode"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// sample is a valid row whose cells hold what a careless writer would break.
func sample(run string, i int) Row {
	return Row{
		Model: fmt.Sprintf("model \"%d\", big", i), NNodes: 1, Performance: "1.5", Metric: "GBs",
		Status: StatusSuccess, Verdict: "PASS", Reason: "line one\nline two,\"quoted\"\n", RunID: run, Attempt: 1, Scope: "job",
		StartedAt: "2025-01-02T03:04:05.000Z", FinishedAt: "2025-01-02T03:04:06.000Z",
	}
}

func samples(run string, n int) []Row {
	rows := make([]Row, n)
	for i := range rows {
		rows[i] = sample(run, i)
	}
	return rows
}

func mustAppend(t *testing.T, path string, rows ...Row) Appended {
	t.Helper()
	done, err := Append(path, rows)
	if err != nil {
		t.Fatal(err)
	}
	return done
}

func mustRead(t *testing.T, path string) []Row {
	t.Helper()
	rows, err := read(path)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func perfPath(t *testing.T) string { return filepath.Join(t.TempDir(), "perf.csv") }

func TestAppendCreatesAndAdds(t *testing.T) {
	path := perfPath(t)
	first := mustAppend(t, path, samples("a", 2)...)
	second := mustAppend(t, path, samples("b", 1)...)
	if first.Offset != int64(len(header())) || first.Rows != 2 || second.Offset <= first.Offset {
		t.Errorf("offsets %+v, %+v", first, second)
	}
	want := append(samples("a", 2), samples("b", 1)...)
	if diff := cmp.Diff(want, mustRead(t, path)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.HasPrefix(text, header()) {
		t.Errorf("the file begins with %.80q", text)
	}
	sum, err := Validate(path)
	if err != nil || sum.Rows != 3 || len(sum.Problems) > 0 {
		t.Errorf("validate: %+v, %v", sum, err)
	}
}

func TestAppendOfNothingLeavesAHeader(t *testing.T) {
	path := perfPath(t)
	mustAppend(t, path)
	if text, _ := os.ReadFile(path); string(text) != string(header()) {
		t.Errorf("the file holds %q", text)
	}
}

func TestAppendNeverRewrites(t *testing.T) {
	path := perfPath(t)
	mustAppend(t, path, samples("a", 3)...)
	before, _ := os.ReadFile(path)
	mustAppend(t, path, samples("b", 3)...)
	after, _ := os.ReadFile(path)
	if !bytes.HasPrefix(after, before) {
		t.Error("bytes that were there have changed")
	}
}

// TestCellsComeBackUnchanged writes arbitrary text and reads it three ways.
func TestCellsComeBackUnchanged(t *testing.T) {
	dir := t.TempDir()
	text := rapid.OneOf(rapid.String(), rapid.StringOfN(rapid.SampledFrom([]rune(",\"\n\r;' \t\\a=")), 0, 12, -1))
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		path := filepath.Join(dir, fmt.Sprint(n))
		row := sample("r", 1)
		row.Model, row.Reason, row.Nodes = text.Draw(rt, "model"), text.Draw(rt, "reason"), text.Draw(rt, "nodes")
		row = readable(row)
		mustAppend(t, path, row, row)
		if diff := cmp.Diff([]Row{row, row}, mustRead(t, path)); diff != "" {
			rt.Fatalf("(-want +got):\n%s", diff)
		}
		if err := os.Remove(path); err != nil {
			rt.Fatal(err)
		}
	})
}

func TestGoReadsWhatWasWritten(t *testing.T) {
	path := perfPath(t)
	mustAppend(t, path, samples("a", 2)...)
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	records, err := csv.NewReader(f).ReadAll()
	if err != nil || len(records) != 3 {
		t.Fatalf("%d records, %v", len(records), err)
	}
	if records[2][0] != sample("a", 1).Model || records[2][30] != sample("a", 1).Reason {
		t.Errorf("%q", records[2])
	}
}

func TestUnreadableTextIsReplaced(t *testing.T) {
	path := perfPath(t)
	row := sample("a", 0)
	row.Reason = "bad \xff and \x00"
	mustAppend(t, path, row)
	if got := mustRead(t, path)[0].Reason; got != "bad \uFFFD and \uFFFD" {
		t.Errorf("%q", got)
	}
}

func TestAppendRefuses(t *testing.T) {
	ours := strings.Join(Columns(), ",")
	madengine := strings.Join(Columns()[:madengineColumns], ",")
	for name, c := range map[string]struct{ text, want string }{
		"madengine":      {madengine + "\nx\n", "the header is that of a madengine perf.csv, 29 columns where assay writes 37"},
		"another column": {strings.Replace(ours, "nnodes", "nodes", 1) + "\n", `column 3 of the header is "nodes" where "nnodes" is expected`},
		"one too many":   {ours + ",extra\n", `column 38 of the header, "extra", is not known`},
		"one short":      {strings.TrimSuffix(ours, ",finished_at") + "\n", `the header ends after column 36; column 37, "finished_at", is missing`},
		"byte order":     {"\ufeff" + ours + "\n", "byte order mark"},
		"mark, quoted":   {"\ufeff\"" + strings.ReplaceAll(ours, ",", "\",\"") + "\"\n", "byte order mark"},
		"mark only":      {"\ufeff", "byte order mark"},
		"no header":      {"\n", `column 1 of the header is "" where "model" is expected`},
		"something else": {"{\"json\": true}", `column 1 of the header is`},
		"binary":         {strings.Repeat("\x00", 20000), "line 1 is no header of perf.csv"},
	} {
		t.Run(name, func(t *testing.T) {
			path := perfPath(t)
			if err := os.WriteFile(path, []byte(c.text), 0o644); err != nil {
				t.Fatal(err)
			}
			_, err := Append(path, samples("a", 1))
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "assay perf rebuild") {
				t.Errorf("got error %v, want %q in it", err, c.want)
			}
			if exitcode.Of(err) != exitcode.Invalid {
				t.Errorf("exit code %v", exitcode.Of(err))
			}
			if checked := Check(path); checked == nil || checked.Error() != err.Error() {
				t.Errorf("Check says %v", checked)
			}
			if text, _ := os.ReadFile(path); string(text) != c.text {
				t.Error("the file was changed")
			}
		})
	}
}

func TestAppendAcceptsTheHeaderOfOtherWriters(t *testing.T) {
	for name, text := range map[string]string{
		"crlf":   strings.Join(Columns(), ",") + "\r\n",
		"quoted": `"` + strings.Join(Columns(), `","`) + `"` + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			path := perfPath(t)
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			mustAppend(t, path, samples("a", 1)...)
			if rows := mustRead(t, path); len(rows) != 1 {
				t.Errorf("%d rows", len(rows))
			}
		})
	}
}

func TestAppendToWhatIsNoFile(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o644); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		dir:                               dir + " is a directory, not a file",
		fifo:                              "fifo is a FIFO, not a file",
		"/dev/null":                       "/dev/null is a device, not a file",
		filepath.Join(dir, "no/perf.csv"): "no such file",
	} {
		_, err := Append(path, samples("a", 1))
		if err == nil || !strings.Contains(err.Error(), want) || exitcode.Of(err) != exitcode.Invalid {
			t.Errorf("%s: got error %v (%v), want %q", path, err, exitcode.Of(err), want)
		}
		for name, err := range map[string]error{"Check": Check(path), "Validate": second(Validate(path))} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %s says %v, want %q", path, name, err, want)
			}
		}
	}
}

func second[T any](_ T, err error) error { return err }

func TestAppendFollowsLinks(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "link.csv")
	if err := os.Symlink("real.csv", link); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		mustAppend(t, link, samples("a", 1)...)
	}
	if rows := mustRead(t, filepath.Join(dir, "real.csv")); len(rows) != 3 {
		t.Errorf("%d rows", len(rows))
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is %v, %v", info.Mode(), err)
	}
}

func TestAFullDiskLeavesTheFileAsItWas(t *testing.T) {
	path := perfPath(t)
	mustAppend(t, path, samples("a", 1)...)
	before, _ := os.ReadFile(path)
	// The limit would hold for all that a process writes, so another one has it.
	limit := strconv.Itoa(len(before) + 100)
	cmd := startWriter(t, limitedWriter+limit, path)
	if err := cmd.Wait(); err != nil {
		t.Fatalf("the writer: %v", err)
	}
	if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
		t.Errorf("the file grew from %d to %d bytes", len(before), len(after))
	}
	mustAppend(t, path, samples("c", 1)...)
	if rows := mustRead(t, path); len(rows) != 2 {
		t.Errorf("%d rows", len(rows))
	}
}
