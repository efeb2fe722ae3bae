package rank_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay/pkg/evidence"
	"assay/pkg/metric"
	"assay/pkg/threshold"
	"assay/pkg/verdict"
)

// newRunner is a fixture whose card has the acceptance contract.
func newRunner(t testing.TB, script string) *fixture {
	t.Helper()
	f := newFixture(t, script)
	f.attempt.Job.Expect.Contract = verdict.ContractAcceptance
	f.attempt.Job.Expect.WorldSize = 1
	return f
}

// readings spells what was picked up, in its order.
func (f *fixture) readings() []string {
	var out []string
	for _, r := range f.metrics().Readings {
		text := r.Name + "=" + r.Text
		switch {
		case r.Label:
			text = fmt.Sprintf("%s=%q", r.Name, r.Text)
		case r.NotApplicable:
			text = r.Name + " n/a"
		}
		if r.Unended {
			text += " (no end)"
		}
		out = append(out, text)
	}
	return out
}

func TestRunnerOutput(t *testing.T) {
	for _, tt := range []struct {
		name, script string
		code         int
		want         []string // readings
		problems     []string // codes with names
		skip, said   string
	}{
		{"metrics without a declaration", `echo triadGBs=12.5; echo noise; echo " eccErrors = 0 "`, 0, []string{"triadGBs=12.5", "eccErrors=0"}, nil, "", "noise"},
		{"progress", `for i in 1 2 3; do echo copyGBs=$i; echo stage=s$i; done`, 0, []string{"copyGBs=3", `stage="s3"`}, nil, "", ""},
		{"n/a and words", `echo powerW=N/A; echo throttle=thermal; echo driver=535.104.05`, 0, []string{"powerW n/a", `throttle="thermal"`, `driver="535.104.05"`}, nil, "", ""},
		{"n/a is taken back", `echo powerW=n/a; echo powerW=300`, 0, []string{"powerW=300"}, nil, "", ""},
		{"NaN", `echo a=5; echo a=NaN`, 0, []string{}, []string{"METRIC_NOT_A_NUMBER a"}, "", ""},
		{"keys that are no names", `echo FOO=1; echo my-key=2`, 0, []string{}, []string{"METRIC_NAME FOO", "METRIC_NAME my-key"}, "", ""},
		{"stderr is no place for metrics", `echo a=1 >&2; echo b=2`, 0, []string{"b=2"}, nil, "", "a=1"},
		{"the code is kept, and the last words", `echo "3 miscompares"; echo miscompares=3; exit 1`, 1, []string{"miscompares=3"}, nil, "", "3 miscompares"},
		{"skip", `echo "NCCL_SKIP: only one GPU"; exit 2`, 2, nil, nil, "NCCL_SKIP: only one GPU", "NCCL_SKIP: only one GPU"},
		{"skip on stderr", `echo bye; echo "RDMA_SKIP: no device" >&2; exit 2`, 2, nil, nil, "RDMA_SKIP: no device", "bye"},
		{"no skip", `echo "NCCL_SKIPPED"; echo " A_SKIP"; exit 2`, 2, nil, nil, "", "A_SKIP"},
		{"an artifact", `echo a=1; echo "-----BEGIN BURNIN ARTIFACT d.json application/json-----"; echo a=2; echo X_SKIP; echo "-----END BURNIN ARTIFACT-----"; echo b=3`, 0, []string{"a=1", "b=3"}, nil, "", ""},
		{"an artifact without an end", `echo a=1; echo "-----BEGIN ASSAY ARTIFACT no type here-----"; seq 100000; echo a=2`, 0, []string{"a=1"}, nil, "", ""},
		{"without a line end", `echo said; printf a=1`, 0, []string{"a=1 (no end)"}, nil, "", "said"},
		{"last words after much", `seq 1 300000; echo a=1; printf 'the end'`, 0, []string{"a=1"}, nil, "", "the end"},
		{"nothing", `:`, 0, nil, nil, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := newRunner(t, tt.script)
			code, end := f.run()
			if code != tt.code || end.Outcome != evidence.OutcomeExited {
				t.Errorf("exit %d, %v", code, end.Outcome)
			}
			if diff := cmp.Diff([]string{tt.skip, tt.said}, []string{end.Skip, end.Said}); diff != "" {
				t.Errorf("skip and said (-want +got):\n%s", diff)
			}
			if tt.want == nil {
				if end.Metrics {
					t.Errorf("metrics: %+v", f.metrics())
				}
				return
			}
			var problems []string
			for _, p := range f.metrics().Problems {
				problems = append(problems, p.Code+" "+p.Name)
			}
			got := append([]string{}, f.readings()...)
			if diff := cmp.Diff(tt.want, got) + cmp.Diff(tt.problems, problems); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A job that is not measured still says that it does not apply.
func TestSkipWithoutMeasuring(t *testing.T) {
	f := newRunner(t, `echo a=1; echo "X_SKIP: so"; exit 2`)
	f.attempt.Job.SkipMetrics = true
	if _, end := f.run(); end.Skip != "X_SKIP: so" || end.Metrics {
		t.Errorf("%+v", end)
	}
}

// Under the benchmark contract nothing is a skip, and nothing is quoted.
func TestBenchmarkHasNoSkip(t *testing.T) {
	f := newFixture(t, `echo "X_SKIP: so"; echo a=1; exit 2`)
	if _, end := f.run(); end.Skip != "" || end.Said != "" || end.Metrics {
		t.Errorf("%+v", end)
	}
}

// A program written in Go that panics exits 2, as a skip does: nothing in its output
// declares one.
func TestPanicIsNoSkip(t *testing.T) {
	dir := t.TempDir()
	source := filepath.Join(dir, "main.go")
	if err := os.WriteFile(source, []byte("package main\n\nimport \"fmt\"\n\nfunc main() {\n\tfmt.Println(\"stage=probe\")\n\tvar m map[string]int\n\tm[\"x\"] = 1\n}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", "build", "-o", filepath.Join(dir, "crash"), source)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	f := newRunner(t, "exec "+filepath.Join(dir, "crash"))
	bound := 1.0
	f.attempt.Job.Expect.Thresholds = []threshold.Threshold{{Metric: "triadGBs", Min: &bound}}
	code, end := f.run()
	if code != 2 || end.Skip != "" || end.Said == "" {
		t.Fatalf("exit %d, end %+v", code, end)
	}
	m := f.metrics()
	v := verdict.Judge(f.attempt.Job.Expect, evidence.Evidence{
		Job: "job", Attempt: 1, WorldSize: 1, Launch: evidence.Launch{State: evidence.LaunchSubmitted},
		Scheduler: &evidence.Observation{Source: "local", Phase: evidence.PhaseEnded, Word: "ENDED"},
		Ranks: []evidence.Rank{{
			State: evidence.RankEnded, Outcome: end.Outcome, ExitCode: end.ExitCode, Skip: end.Skip, Said: end.Said, Readings: m.Readings, Problems: m.Problems,
		}},
	})
	if v.Word != verdict.Error || len(v.Reasons) != 1 || v.Reasons[0].Code != verdict.CodeSkipUndeclared || !strings.Contains(v.Reasons[0].Message, "may exit 2 too") {
		t.Errorf("%+v", v)
	}
}

// Much output costs neither memory nor its last words.
func TestMuchOutputOfARunner(t *testing.T) {
	f := newRunner(t, `yes 'loss=0.25' | head -c 52428800; yes 'step 7 of 1000' | head -c 52428800; echo; echo 'busGBs=5'; echo done`)
	f.attempt.Job.Expect.Metrics = []metric.Spec{{Name: "busGBs"}}
	_, end := f.run()
	if end.Said != "done" {
		t.Errorf("said %q", end.Said)
	}
	if diff := cmp.Diff([]string{"loss=0.25", "busGBs=5"}, f.readings()); diff != "" {
		t.Error(diff)
	}
	_ = os.Remove(filepath.Join(f.dir(), "stdout"))
}
