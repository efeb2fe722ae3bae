package perfcsv

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"assay/pkg/exitcode"

	"github.com/google/go-cmp/cmp"
)

// tear makes a file with one append of two rows and another, of batch rows, that
// reached only n bytes. It returns what lies between the whole rows and the cut.
func tear(t *testing.T, path string, batch []Row, n int64, keepNote bool) (wholeRows int, piece string) {
	t.Helper()
	mustAppend(t, path, samples("before", 2)...)
	done := mustAppend(t, path, batch...)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, done.Offset+n); err != nil {
		t.Fatal(err)
	}
	if !keepNote {
		if err := os.Remove(notePath(path)); err != nil {
			t.Fatal(err)
		}
	}
	rest := text[done.Offset : done.Offset+n]
	for _, r := range batch {
		line, err := encode([]Row{r})
		if err != nil {
			t.Fatal(err)
		}
		if len(rest) < len(line)-1 { // a row that lacks only its line end is whole
			break
		}
		rest = rest[min(len(line), len(rest)):]
		wholeRows++
	}
	return wholeRows, string(rest)
}

// TestTornAppendIsRepaired cuts an append at every byte. The next one keeps the
// whole rows, sets the rest aside and adds its own.
func TestTornAppendIsRepaired(t *testing.T) {
	batch := samples("torn", 2)
	line, err := encode(batch)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for n := int64(0); n <= int64(len(line)); n++ {
		path := filepath.Join(dir, "perf.csv")
		whole, piece := tear(t, path, batch, n, true)
		done := mustAppend(t, path, sample("after", 0))
		want := append(samples("before", 2), batch[:whole]...)
		want = append(want, sample("after", 0))
		if diff := cmp.Diff(want, mustRead(t, path)); diff != "" {
			t.Fatalf("cut after %d bytes (-want +got):\n%s", n, diff)
		}
		kept := ""
		if done.Torn != "" {
			text, err := os.ReadFile(done.Torn)
			if err != nil {
				t.Fatal(err)
			}
			kept = string(text)
		}
		if kept != piece {
			t.Fatalf("cut after %d bytes: set aside %q, want %q", n, kept, piece)
		}
		for _, f := range []string{path, notePath(path), done.Torn} {
			if err := os.Remove(f); err != nil && f != "" {
				t.Fatal(err)
			}
		}
	}
}

// TestTornEndWithoutANote does the same for a file that came without its note:
// repaired or refused, but never a lost row and never a wrong one.
func TestTornEndWithoutANote(t *testing.T) {
	batch := samples("torn", 2)
	line, err := encode(batch)
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	dir := t.TempDir()
	for n := int64(0); n <= int64(len(line)); n++ {
		path := filepath.Join(dir, "perf.csv")
		whole, _ := tear(t, path, batch, n, false)
		before, _ := os.ReadFile(path)
		done, err := Append(path, []Row{sample("after", 0)})
		if err != nil {
			refused++
			if after, _ := os.ReadFile(path); exitcode.Of(err) != exitcode.Invalid || string(after) != string(before) {
				t.Fatalf("cut after %d bytes: %v; file changed: %v", n, err, string(after) != string(before))
			}
		} else {
			want := append(samples("before", 2), batch[:whole]...)
			want = append(want, sample("after", 0))
			if diff := cmp.Diff(want, mustRead(t, path)); diff != "" {
				t.Fatalf("cut after %d bytes (-want +got):\n%s", n, diff)
			}
		}
		for _, f := range []string{path, notePath(path), done.Torn} {
			if err := os.Remove(f); err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
		}
	}
	if refused != len(batch) { // where only the last cell is missing
		t.Errorf("refused %d times", refused)
	}
}

func TestTornHeaderIsWrittenAgain(t *testing.T) {
	for _, n := range []int{0, 1, 40, len(header()) - 1, len(header())} {
		path := perfPath(t)
		if err := os.WriteFile(path, header()[:n], 0o644); err != nil {
			t.Fatal(err)
		}
		mustAppend(t, path, sample("a", 0))
		if diff := cmp.Diff(samples("a", 1), mustRead(t, path)); diff != "" {
			t.Errorf("header cut after %d bytes (-want +got):\n%s", n, diff)
		}
	}
}

func TestEndsThatOthersLeft(t *testing.T) {
	whole, err := encode(samples("other", 1))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		end      string
		rows     int    // that are there after one more append
		set      string // what was set aside
		refusing string
	}{
		"a whole row":                       {string(whole), 3, "", ""},
		"a row without its line end":        {strings.TrimSuffix(string(whole), "\n"), 3, "", ""},
		"half a row":                        {"half,a row", 2, "half,a row", ""},
		"a quote that hides rows":           {"\"open\n" + plainLine(t) + plainLine(t) + "x", 0, "", "never ends"},
		"a quote that hides a lot":          {"\"open" + strings.Repeat("x", tornLimit), 0, "", "never ends"},
		"a row whose last cell may be torn": {strings.Repeat(",", len(Columns())-1), 0, "", "has no line end and may be cut off"},
	} {
		for _, note := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				path := perfPath(t)
				mustAppend(t, path, sample("a", 0))
				f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := f.WriteString(c.end); err != nil {
					t.Fatal(err)
				}
				if err := f.Close(); err != nil {
					t.Fatal(err)
				}
				if !note {
					_ = os.Remove(notePath(path))
				}
				done, err := Append(path, samples("b", 1))
				if c.refusing != "" {
					if err == nil || !strings.Contains(err.Error(), c.refusing) {
						t.Errorf("got error %v, want %q", err, c.refusing)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				if rows := mustRead(t, path); len(rows) != c.rows {
					t.Errorf("%d rows, want %d", len(rows), c.rows)
				}
				set, _ := os.ReadFile(done.Torn)
				if string(set) != c.set {
					t.Errorf("set aside %q, want %q", set, c.set)
				}
			})
		}
	}
}

// plainLine is a row that is one line of text.
func plainLine(t *testing.T) string {
	t.Helper()
	r := sample("hidden", 0)
	r.Model, r.Reason = "m", ""
	line, err := encode([]Row{r})
	if err != nil {
		t.Fatal(err)
	}
	return string(line)
}

// TestANoteOfAnotherFileIsNotBelieved replaces the file under its note.
func TestANoteOfAnotherFileIsNotBelieved(t *testing.T) {
	path := perfPath(t)
	mustAppend(t, path, samples("a", 20)...)
	mustAppend(t, path, samples("a", 20)...)
	other := perfPath(t)
	mustAppend(t, other, samples("a longer run id", 60)...)
	if err := os.Rename(other, path); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, path, sample("b", 0))
	if rows := mustRead(t, path); len(rows) != 61 {
		t.Errorf("%d rows, want 61", len(rows))
	}
}

func TestANoteThatCannotBeWrittenIsNoReasonToFail(t *testing.T) {
	path := perfPath(t)
	mustAppend(t, path, sample("a", 0))
	if err := os.Remove(notePath(path)); err != nil {
		t.Fatal(err)
	}
	// A directory in its place keeps root from writing it too.
	if err := os.Mkdir(notePath(path), 0o755); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, path, sample("b", 0))
	mustAppend(t, path, sample("c", 0))
	if rows := mustRead(t, path); len(rows) != 3 {
		t.Errorf("%d rows", len(rows))
	}
}

// TestAnEndlessRecordIsRefused has a quote that is never closed before more than
// a record may hold.
func TestAnEndlessRecordIsRefused(t *testing.T) {
	path := perfPath(t)
	text := string(header()) + plainLine(t) + "m,\"" + strings.Repeat(strings.Repeat("x", 1<<10)+"\n", recordLimit>>10)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("the record that begins at byte %d never ends", len(header())+len(plainLine(t)))
	for name, try := range map[string]func() (Appended, error){
		"Append":        func() (Appended, error) { return Append(path, samples("a", 1)) },
		"AppendMissing": func() (Appended, error) { return AppendMissing(path, samples("a", 1), 0) },
	} {
		if _, err := try(); err == nil || !strings.Contains(err.Error(), want) || exitcode.Of(err) != exitcode.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	err = eachAfter(f, 0, func(Row) bool { return true })
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("eachAfter: %v", err)
	}
}
