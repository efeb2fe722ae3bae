package progress

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay/deploy"
	"assay/pkg/plan"
	"assay/pkg/report"
	"assay/pkg/run"
	"assay/pkg/rundir"
	"assay/pkg/verdict"
)

func events(dir string) (submitted, ended run.Event) {
	job := &plan.Job{ID: "triad", WorldSize: 2}
	result := &report.Job{ID: "triad", Verdict: verdict.Fail, ElapsedSeconds: 12.34, Reasons: []verdict.Reason{{Code: "RANK_EXIT", Message: "rank 1 (n) exited 3"}}}
	return run.Event{Kind: run.EventSubmitted, Job: job, Dir: dir, Handle: deploy.Handle{ID: "pid 7"}},
		run.Event{Kind: run.EventEnded, Job: job, Dir: dir, Result: result}
}

func TestPipeGetsPlainLines(t *testing.T) {
	var out bytes.Buffer
	p := New(Options{Out: &out})
	submitted, ended := events(t.TempDir())
	p.Event(submitted)
	p.Event(run.Event{Kind: run.EventNotice, Text: "something to know"})
	p.Event(ended)
	p.Close()
	want := "triad: running 2 ranks (pid 7)\nsomething to know\ntriad: FAIL after 12.3 s: rank 1 (n) exited 3\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

// What a workload or a target wrote cannot steer the terminal, draw a line of its
// own or turn the text around.
func TestForeignTextIsShownAsText(t *testing.T) {
	const hostile = "a\x1b[2Jb\u202ec\nd\xff\u009b"
	const shown = `a\x1b[2Jb\u202ec d\xff\u009b`
	var out bytes.Buffer
	p := New(Options{Out: &out})
	submitted, ended := events(t.TempDir())
	submitted.Job.ID, submitted.Handle.ID = hostile, hostile
	p.Event(submitted)
	p.Event(run.Event{Kind: run.EventNotice, Text: hostile})
	ended.Result.Reasons[0].Message = hostile
	p.Event(ended)
	ended.Result.Reasons, ended.Result.Warnings = nil, []verdict.Reason{{Message: hostile}}
	p.Event(ended)
	p.Close()
	want := strings.ReplaceAll("ID: running 2 ranks (ID)\nID\nID: FAIL after 12.3 s: ID\nID: FAIL after 12.3 s, with a warning: ID\n", "ID", shown)
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
	submitted.Job.ID = hostile
	if got := newJobLine(submitted).text(time.Now()); !strings.HasPrefix(got, shown+": starting") {
		t.Errorf("live line %q", got)
	}
}

func TestQuietPrintsNothing(t *testing.T) {
	var out bytes.Buffer
	p := New(Options{Out: &out, Quiet: true, Live: true})
	submitted, ended := events(t.TempDir())
	p.Event(submitted)
	p.Event(ended)
	p.Close()
	if out.Len() > 0 {
		t.Errorf("printed %q", out.String())
	}
}

// The live line counts markers and shows the newest reading; what it drew it
// takes away again.
func TestLiveLine(t *testing.T) {
	dir := t.TempDir()
	submitted, ended := events(dir)
	for _, f := range []struct {
		rank       int
		name, text string
	}{
		{0, rundir.BeginFile, "{}"},
		{1, rundir.BeginFile, "{}"},
		{1, rundir.EndFile, "{}"},
		{0, rundir.MetricsFile, `{"readings": [{"name": "a", "text": "1"}, {"name": "triad\u001b[31m", "text": "12.5"}]}`},
	} {
		d := rundir.RankDir(dir, f.rank)
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(d, f.name), []byte(f.text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	j := newJobLine(submitted)
	got := j.text(j.since.Add(75 * time.Second))
	want := "triad: running 1m15s, 2/2 ranks begun, 1 ended, triad\\x1b[31m 12.5"
	if got != want {
		t.Errorf("live line is %q, want %q", got, want)
	}

	var out bytes.Buffer
	p := New(Options{Out: &out, Live: true, Width: 30})
	p.Event(submitted)
	p.Event(ended)
	p.Close()
	text := out.String()
	if !strings.Contains(text, "\x1b[1A\x1b[J") || !strings.HasSuffix(text, "exited 3\n") {
		t.Errorf("the live line was not taken away: %q", text)
	}
	for _, line := range strings.Split(text, "\n") {
		if strings.Contains(line, "begun") && len([]rune(line)) >= 30 {
			t.Errorf("a live line is wider than the terminal: %q", line)
		}
	}
}

func TestTailPrintsWholeLines(t *testing.T) {
	dir := t.TempDir()
	var out bytes.Buffer
	p := New(Options{Out: &out, Tail: true, Quiet: true})
	submitted, ended := events(dir)
	p.Event(submitted)
	path := filepath.Join(rundir.RankDir(dir, 1), rundir.StdoutFile)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("one\ntwo \x1b[2J\r\nhalf"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.Event(ended)
	p.Close()
	want := "[triad 1] one\n[triad 1] two \\x1b[2J\n[triad 1] half\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

// A workload may put a pipe in the place of a file of its rank; nothing waits
// for it.
func TestPipesAreNotWaitedFor(t *testing.T) {
	dir := t.TempDir()
	var out bytes.Buffer
	p := New(Options{Out: &out, Tail: true, Quiet: true})
	submitted, ended := events(dir)
	for _, name := range []string{rundir.StdoutFile, rundir.MetricsFile} {
		path := filepath.Join(rundir.RankDir(dir, 0), name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), syscall.Mkfifo(path, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	p.Event(submitted)
	if got := newJobLine(submitted).lastMetric(); got != "" {
		t.Errorf("a pipe gave the reading %q", got)
	}
	p.Event(ended)
	p.Close()
	if out.Len() > 0 {
		t.Errorf("a pipe gave %q", &out)
	}
}

func TestPlainly(t *testing.T) {
	for word, want := range map[string]string{
		"": "", "PENDING": "pending", "Running": "running", "OUT_OF_MEMORY": "out_of_memory",
		"ErrImagePull": "ErrImagePull", "OOMKilled": "OOMKilled", "R": "r",
	} {
		if got := plainly(word); got != want {
			t.Errorf("plainly(%q) = %q, want %q", word, got, want)
		}
	}
}
