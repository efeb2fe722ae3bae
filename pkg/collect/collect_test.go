package collect

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay/pkg/evidence"
	"assay/pkg/metric"
	"assay/pkg/plan"
	"assay/pkg/rundir"
)

// fixture is an attempt directory with one rank that ended and measured.
type fixture struct {
	dir     string
	attempt plan.Attempt
	end     evidence.End
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{dir: t.TempDir(), attempt: plan.Attempt{
		RunID: "run", Nonce: "nonce", ManifestDigest: "sha256:1", Number: 1, Job: plan.Job{ID: "job", WorldSize: 1},
	}}
	f.end = evidence.End{
		Version: 1, Identity: f.attempt.Identity(0), Host: "h", Node: "n", StartedAt: time.Unix(100, 0).UTC(), FinishedAt: time.Unix(101, 0).UTC(),
		ElapsedSeconds: 1, Outcome: evidence.OutcomeExited, Metrics: true,
	}
	if err := os.MkdirAll(filepath.Join(f.rank(0), rundir.ResultsDir), 0o700); err != nil {
		t.Fatal(err)
	}
	f.write(t, rundir.BeginFile, evidence.Begin{Version: 1, Identity: f.end.Identity, Host: "h", Node: "n", StartedAt: f.end.StartedAt})
	f.write(t, rundir.EndFile, f.end)
	f.write(t, rundir.MetricsFile, evidence.Metrics{Version: 1, Readings: []metric.Reading{{Name: "triad", Value: 5, Text: "5", Source: metric.SourcePerformance}}})
	return f
}

func (f *fixture) rank(n int) string { return rundir.RankDir(f.dir, n) }

func (f *fixture) write(t *testing.T, name string, v any) {
	t.Helper()
	data, ok := v.(string)
	if !ok {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		data = string(b)
	}
	if err := os.WriteFile(filepath.Join(f.rank(0), name), []byte(data), 0o600); err != nil {
		t.Fatal(err)
	}
}

// observe lets the target say that the job has ended.
func (f *fixture) observe(t *testing.T) {
	t.Helper()
	r := rundir.Run{Dir: f.dir}
	if err := r.AppendObservation(f.dir, evidence.Observation{Source: "test", Phase: evidence.PhaseEnded, Word: "ENDED"}); err != nil {
		t.Fatal(err)
	}
}

func (f *fixture) collect(t *testing.T) evidence.Rank {
	t.Helper()
	e, err := Evidence(f.dir, f.attempt, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(e.Ranks) != 1 {
		t.Fatalf("%d ranks, want 1", len(e.Ranks))
	}
	return e.Ranks[0]
}

func TestEndedRank(t *testing.T) {
	r := newFixture(t).collect(t)
	if r.State != evidence.RankEnded || len(r.Readings) != 1 || r.Readings[0].Value != 5 || r.Node != "n" {
		t.Errorf("rank is %+v", r)
	}
}

// A marker counts only if every part of its identity is the expected one.
func TestForeignMarkerDoesNotCount(t *testing.T) {
	for name, change := range map[string]func(*evidence.Identity){
		"run":             func(i *evidence.Identity) { i.RunID = "other" },
		"nonce":           func(i *evidence.Identity) { i.Nonce = "other" },
		"manifest digest": func(i *evidence.Identity) { i.ManifestDigest = "other" },
		"job":             func(i *evidence.Identity) { i.Job = "other" },
		"attempt":         func(i *evidence.Identity) { i.Attempt = 2 },
		"rank":            func(i *evidence.Identity) { i.Rank = 1 },
		"world size":      func(i *evidence.Identity) { i.WorldSize = 2 },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.observe(t)
			change(&f.end.Identity)
			f.write(t, rundir.EndFile, f.end)
			r := f.collect(t)
			if r.State != evidence.RankLost || len(r.Readings) != 0 {
				t.Errorf("state %s with %d readings, want lost with none", r.State, len(r.Readings))
			}
			if !strings.Contains(r.Stale, "is of "+name+" ") {
				t.Errorf("stale is %q, want it to name the %s", r.Stale, name)
			}
		})
	}
}

// An empty or unparsable marker is "not yet", never an exit code.
func TestUnreadableMarkerIsNotYet(t *testing.T) {
	for _, content := range []string{"", "{", "null garbage", "\x00\x00"} {
		f := newFixture(t)
		f.write(t, rundir.EndFile, content)
		r := f.collect(t)
		if r.State != evidence.RankRunning {
			t.Errorf("%q: state %s, want running", content, r.State)
		}
		if (r.Unreadable == "") != (content == "") {
			t.Errorf("%q: unreadable is %q", content, r.Unreadable)
		}
	}
}

// The rest of a marker of another version may mean anything.
func TestMarkerOfAnotherVersion(t *testing.T) {
	f := newFixture(t)
	f.write(t, rundir.EndFile, `{"version": 2, "outcome": "a new word"}`)
	want := "end.json: it has format version 2, this assay knows 1"
	if r := f.collect(t); r.State != evidence.RankRunning || r.Unreadable != want {
		t.Errorf("state %s, unreadable is %q, want %q", r.State, r.Unreadable, want)
	}
	f = newFixture(t)
	f.write(t, rundir.MetricsFile, evidence.Metrics{Readings: []metric.Reading{{Name: "x", Value: 1, Text: "1"}}})
	if r := f.collect(t); len(r.Readings) != 0 || !strings.Contains(r.Unreadable, "metrics.json: it has format version 0") {
		t.Errorf("%d readings, unreadable is %q", len(r.Readings), r.Unreadable)
	}
}

// A pipe in the place of a marker must not be waited for.
func TestMarkerThatIsNoFile(t *testing.T) {
	f := newFixture(t)
	for _, name := range []string{rundir.EndFile, rundir.BeginFile} {
		path := filepath.Join(f.rank(0), name)
		if err := errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if r := f.collect(t); r.State != evidence.RankNotStarted || !strings.Contains(r.Unreadable, "not a file") {
		t.Errorf("rank is %+v", r)
	}
}

func TestRankWithoutEnd(t *testing.T) {
	f := newFixture(t)
	if err := os.Remove(filepath.Join(f.rank(0), rundir.EndFile)); err != nil {
		t.Fatal(err)
	}
	if r := f.collect(t); r.State != evidence.RankRunning || len(r.Readings) != 0 {
		t.Errorf("before the target saw the end: %+v", r)
	}
	f.observe(t)
	if r := f.collect(t); r.State != evidence.RankLost || len(r.Readings) != 0 {
		t.Errorf("after the target saw the end: %+v", r)
	}
	if err := os.Remove(filepath.Join(f.rank(0), rundir.BeginFile)); err != nil {
		t.Fatal(err)
	}
	if r := f.collect(t); r.State != evidence.RankNotStarted {
		t.Errorf("without any marker: %+v", r)
	}
}

func TestResultsAreRead(t *testing.T) {
	f := newFixture(t)
	f.end.Metrics = false
	f.end.Results = &evidence.Results{Declared: "out/results.csv", File: "results.csv"}
	f.write(t, rundir.EndFile, f.end)
	f.write(t, filepath.Join(rundir.ResultsDir, "results.csv"), "Model, METRIC ,performance\nm1,tps,12.5\nm2,tps,\n")
	r := f.collect(t)
	want := []string{"m1/tps=12.5"}
	var got []string
	for _, x := range r.Readings {
		got = append(got, x.Model+"/"+x.Name+"="+x.Text)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	f.attempt.Job.SkipMetrics = true
	if r := f.collect(t); len(r.Readings) != 0 {
		t.Errorf("metrics were read though the manifest says not to: %v", r.Readings)
	}
}

// The order in which ranks are read never shows.
func TestManyRanksKeepTheirPlaces(t *testing.T) {
	f := newFixture(t)
	f.attempt.Job.WorldSize = 300
	for rank := range 300 {
		dir := f.rank(rank)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		data, err := json.Marshal(evidence.End{Version: 1, Identity: f.attempt.Identity(rank), Node: strconv.Itoa(rank), Outcome: evidence.OutcomeExited, ExitCode: rank % 7})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, rundir.EndFile), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	e, err := Evidence(f.dir, f.attempt, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range e.Ranks {
		if r.Rank != i || r.Node != strconv.Itoa(i) || r.ExitCode != i%7 {
			t.Fatalf("place %d holds %+v", i, r)
		}
	}
}

// A file that the end marker promises is evidence; without it nothing is known.
func TestPromisedFileThatIsGone(t *testing.T) {
	f := newFixture(t)
	if err := os.Remove(filepath.Join(f.rank(0), rundir.MetricsFile)); err != nil {
		t.Fatal(err)
	}
	if r := f.collect(t); !strings.Contains(r.Unreadable, "metrics.json") {
		t.Errorf("unreadable is %q", r.Unreadable)
	}
	f = newFixture(t)
	f.end.Results = &evidence.Results{Declared: "r.csv", File: "r.csv"}
	f.write(t, rundir.EndFile, f.end)
	if r := f.collect(t); !strings.Contains(r.Unreadable, "r.csv") {
		t.Errorf("unreadable is %q", r.Unreadable)
	}
}

// What the target knows of a rank without an end counts as evidence that could
// not be kept.
func TestTargetsNoteOnARank(t *testing.T) {
	f := newFixture(t)
	r := rundir.Run{Dir: f.dir}
	if err := r.AppendObservation(f.dir, evidence.Observation{Source: "test", Phase: evidence.PhaseEnded, Word: "ENDED", Ranks: map[int]string{0: "its disk was full"}}); err != nil {
		t.Fatal(err)
	}
	if r := f.collect(t); r.Unreadable != "" {
		t.Errorf("a rank that ended is %q", r.Unreadable)
	}
	if err := os.Remove(filepath.Join(f.rank(0), rundir.EndFile)); err != nil {
		t.Fatal(err)
	}
	if r := f.collect(t); r.Unreadable != "its disk was full" {
		t.Errorf("unreadable is %q", r.Unreadable)
	}
}
