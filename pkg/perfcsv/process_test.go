package perfcsv

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const (
	writerEnv  = "PERFCSV_TEST_WRITER"
	writerRows = 1000
	// limitedWriter, with a number of bytes, is a writer whose files may not grow
	// beyond it, and that succeeds when its append fails.
	limitedWriter = "limited:"
)

// TestMain is also the writer that the tests start in processes of their own.
func TestMain(m *testing.M) {
	id := os.Getenv(writerEnv)
	if limit, ok := strings.CutPrefix(id, limitedWriter); ok {
		os.Exit(writeLimited(limit))
	}
	if id != "" {
		os.Exit(writer(id))
	}
	os.Exit(m.Run())
}

// writer appends its rows one by one to the file in its working directory.
func writer(id string) int {
	for i := range writerRows {
		if _, err := Append("perf.csv", []Row{sample(id, i)}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return 0
}

func writeLimited(limit string) int {
	n, err := strconv.ParseUint(limit, 10, 64)
	if err == nil {
		err = syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: n, Max: n})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if _, err := Append("perf.csv", samples("b", 50)); err == nil {
		fmt.Fprintln(os.Stderr, "the append succeeded")
		return 1
	}
	return 0
}

func startWriter(t *testing.T, id, path string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Dir = filepath.Dir(path)
	cmd.Env = append(os.Environ(), writerEnv+"="+id)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

// TestManyProcesses lets 32 processes append 1,000 rows each.
func TestManyProcesses(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	const processes = 32
	path := perfPath(t)
	writers := make([]*exec.Cmd, processes)
	for p := range writers {
		writers[p] = startWriter(t, strconv.Itoa(p), path)
	}
	for p, w := range writers {
		if err := w.Wait(); err != nil {
			t.Errorf("process %d: %v", p, err)
		}
	}
	next := make(map[string]int)
	for i, row := range mustRead(t, path) {
		if row != sample(row.RunID, next[row.RunID]) {
			t.Fatalf("row %d is %+v where row %d of process %s is expected", i, row, next[row.RunID], row.RunID)
		}
		next[row.RunID]++
	}
	for p := range processes {
		if got := next[strconv.Itoa(p)]; got != writerRows {
			t.Errorf("process %d: %d rows of %d", p, got, writerRows)
		}
	}
	if sum, err := Validate(path); err != nil || sum.Rows != processes*writerRows || len(sum.Problems) != 0 {
		t.Errorf("validate: %d rows, %v, %v", sum.Rows, sum.Problems, err)
	}
}

// TestKilledWriters kills writers in the middle of their work. What each had
// written before stays whole and in order.
func TestKilledWriters(t *testing.T) {
	path := perfPath(t)
	for k := range 10 {
		w := startWriter(t, strconv.Itoa(k), path)
		waitForSize(t, path, int64(1+k*40_000))
		if err := w.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = w.Wait() // it was killed
	}
	mustAppend(t, path, sample("last", 0))
	next := make(map[string]int)
	for i, row := range mustRead(t, path) {
		if row != sample(row.RunID, next[row.RunID]) {
			t.Fatalf("row %d is %+v", i, row)
		}
		next[row.RunID]++
	}
	if next["last"] != 1 || len(next) < 2 {
		t.Errorf("rows by writer: %v", next)
	}
}

// waitForSize returns when the file has grown to size.
func waitForSize(t *testing.T, path string, size int64) {
	t.Helper()
	for range 60_000 {
		if got, err := Size(path); err == nil && got >= size {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatalf("%s does not grow to %d bytes", path, size)
}

// TestPandasReadsWhatWasWritten compares every cell as pandas sees it.
func TestPandasReadsWhatWasWritten(t *testing.T) {
	const python = "/usr/bin/python3"
	if err := exec.Command(python, "-c", "import pandas").Run(); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("%s has no pandas: %v; install python3-pandas", python, err)
		}
		t.Skipf("%s has no pandas", python)
	}
	path := perfPath(t)
	rows := hostileRows()
	mustAppend(t, path, rows...)
	out, err := exec.Command(python, filepath.Join("testdata", "read.py"), path).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var got []map[string]string
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	want := make([]map[string]string, len(rows))
	for i, r := range rows {
		want[i] = map[string]string{
			"model": r.Model, "reason": r.Reason, "args": r.Args, "run_id": r.RunID,
			"performance": string(r.Performance), "finished_at": r.FinishedAt, "value": "0.12345678901234568",
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func hostileRows() []Row {
	texts := []string{
		"a,b", `say "hi"`, "two\nlines", "\n", `"`, `""`, `,`, `\`, `\"`, `\.`, " lead", "trail ", "\ttab", "'single'",
		"=1+1", "-1", "NA", "nan", "null", "#comment", "ünïcödé 漢字 🙂", "a\rb", "$(x) `y`", `","`, "x\n\"y\",\n,",
	}
	var rows []Row
	for i, text := range texts {
		r := sample(fmt.Sprintf("run,%d", i), i)
		r.Model, r.Reason, r.Args = text, text, text+text
		r.Performance = "0.12345678901234568"
		rows = append(rows, r)
	}
	return rows
}
