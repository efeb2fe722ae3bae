package report

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"assay/pkg/evidence"
	"assay/pkg/metric"
	"assay/pkg/verdict"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files again")

// golden compares got with a file in testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got), `go test ./pkg/report -update` writes it again:\n%s", name, diff)
	}
}

func at(second int) time.Time { return time.Date(2025, 3, 4, 5, 6, second, 0, time.UTC) }

func ended(rank int, node string, code int, seconds float64) evidence.Rank {
	return evidence.Rank{
		Rank: rank, Host: node, Node: node, State: evidence.RankEnded, Outcome: evidence.OutcomeExited,
		ExitCode: code, ElapsedSeconds: seconds, StartedAt: at(0), FinishedAt: at(int(seconds)),
	}
}

func pairEvidence() evidence.Evidence {
	killed := ended(1, "node-b", 137, 3)
	killed.Outcome, killed.Signal = evidence.OutcomeSignaled, "SIGKILL"
	return evidence.Evidence{
		Job: "train", Attempt: 1, WorldSize: 4,
		Launch:    evidence.Launch{State: evidence.LaunchSubmitted},
		Scheduler: &evidence.Observation{Source: "local", Phase: evidence.PhaseEnded},
		Ranks: []evidence.Rank{
			ended(0, "node-a", 1, 7), killed,
			{Rank: 2, Host: "node-b", Node: "node-b", State: evidence.RankLost, StartedAt: at(1)},
			{Rank: 3, State: evidence.RankNotStarted},
		},
	}
}

// sampleRun has a job of every verdict, and text that would break each format.
func sampleRun() Run {
	reason := func(code, message string) verdict.Reason { return verdict.Reason{Code: code, Message: message} }
	pass := verdict.Verdict{
		Word: verdict.Pass, Rule: verdict.RuleMeasured,
		Warnings: []verdict.Reason{reason("RANK_EXIT", "rank 1 (node-b) exited 3")},
		Measurements: []metric.Measurement{
			{Name: "triadGBs", Value: 41.25, Text: "41.25", Unit: "GBs", Source: metric.SourceKeyValue},
			{Name: "latency", Value: 3, Unit: "ms", Model: "small", Source: metric.SourceResults},
			{Name: "powerW", NotApplicable: true, Unit: "W", Source: metric.SourceKeyValue},
		},
	}
	var many []verdict.Reason
	for i := range 1000 {
		many = append(many, reason("RANK_LOST", fmt.Sprintf("rank %d (node-c) reported no end (killed or lost)", i+2)))
	}
	failed := verdict.Verdict{Word: verdict.Fail, Rule: verdict.RuleRankFailed, Reasons: append([]verdict.Reason{
		{Code: "RANK_SIGNAL", Subject: "rank 1 (node-b)", Message: "rank 1 (node-b) was ended by SIGKILL"},
	}, many...)}
	hostile := "<b>x</b> | `rm` \x1b[31mred\x1b[0m \xff\x00 @team [a](http://b) \u202e & *y* ]]>\nsecond line"
	jobs := []Job{
		NewJob(JobHeader{Name: "memory", Key: "memory", ID: "memory", Attempts: 1, Directory: "jobs/memory/1"},
			evidence.Evidence{Ranks: []evidence.Rank{ended(0, "node-a", 0, 12.5), ended(1, "node-b", 3, 2)}}, pass),
		NewJob(JobHeader{Name: "train", Key: "train", ID: "train", Scope: "pair", Attempts: 2}, pairEvidence(), failed),
		NewJob(JobHeader{Name: hostile, Key: "hostile", ID: "hostile", Attempts: 1},
			evidence.Evidence{Ranks: []evidence.Rank{ended(0, "node-a", 0, 3723)}},
			verdict.Verdict{Word: verdict.NoMetric, Rule: verdict.RuleNotMeasured, Reasons: []verdict.Reason{reason("NOTHING_MEASURED", hostile)}}),
		NewJob(JobHeader{Name: "twin", Key: "twin_gfx90a", ID: "twin_gfx90a"}, evidence.Evidence{},
			verdict.Verdict{Word: verdict.Error, Rule: verdict.RuleNotLaunched, Reasons: []verdict.Reason{reason("LAUNCH_REFUSED", "the target refused the job: no such partition")}}),
		NewJob(JobHeader{Name: "twin", Key: "twin_gfx942", ID: "twin_gfx942"}, evidence.Evidence{}, verdict.Verdict{Word: verdict.Skip}),
	}
	return New(Header{RunID: "r1", Dir: "/runs/r1", Target: "local", StartedAt: at(0).In(time.FixedZone("x", 3600)), FinishedAt: at(30)}, jobs)
}

func render(t *testing.T, f func(*bytes.Buffer) error) []byte {
	t.Helper()
	var buf bytes.Buffer
	if err := f(&buf); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}
