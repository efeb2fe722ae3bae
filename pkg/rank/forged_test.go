package rank_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"assay/pkg/evidence"
	"assay/pkg/metric"
	"assay/pkg/rundir"
)

// forge is what a workload does to look better than it is: an end marker with
// the right identity, and readings that were never measured.
const forge = `
forge() {
	sed -e 's/"pid": .*/"outcome": "exited", "exit_code": 0, "metrics": true,/' begin.json.kept > end.json
	echo '{"version": 1, "readings": [{"name": "x", "value": 99, "text": "99"}]}' > metrics.json
	echo forged > stdout
}
cd "$ASSAY_RESULTS_DIR/.."
`

// Whatever a workload does to the files of its rank, the wrapper's own stand at
// the end.
func TestForgedEvidence(t *testing.T) {
	for name, script := range map[string]string{
		"overwritten":      `cp begin.json begin.json.kept; rm stdout; forge`,
		"begin marker too": `cp begin.json begin.json.kept; rm stdout begin.json; forge; echo '{}' > begin.json`,
		"directories":      `rm stdout begin.json; mkdir -p end.json/x metrics.json/x stdout/x begin.json/x`,
		"links":            `rm stdout begin.json; ln -s "$MODEL_DIR/precious" end.json; ln -s end.json metrics.json; ln -s end.json stdout; ln -s end.json begin.json`,
		"pipes":            `rm stdout begin.json; for f in end.json metrics.json metrics.json.live stdout begin.json; do mkfifo $f; done; sleep 1.5`,
		"dangling results": `rm -rf results work`,
		"removed":          `d=$PWD; cd /; rm -rf "$d"`,
		"replaced":         `b=$(cat begin.json); d=$PWD; cd ..; mv "$d" moved; mkdir -p "$d/results"; cd "$d"; echo "$b" > begin.json.kept; echo "$b" > begin.json; forge; echo model,performance,metric > results/r.csv`,
		"replaced by link": `d=$PWD; cd ..; mv "$d" moved; ln -s moved "$d"`,
		"replaced by file": `d=$PWD; cd ..; rm -rf "$d"; echo > "$d"`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, forge+"echo 'performance: 1 x'\n"+script+"\necho last; exit 3")
			precious := f.file("precious", "keep", 0o600)
			f.attempt.Job.Env = map[string]string{"MODEL_DIR": f.model}
			f.attempt.Job.Expect.MultipleResults = "r.csv"
			exit, end := f.run()
			if exit != 3 || end.ExitCode != 3 || end.Outcome != evidence.OutcomeExited || end.Results == nil || end.Results.File != "" {
				t.Errorf("exit %d, end marker %+v", exit, end)
			}
			if m := f.metrics(); !end.Metrics || len(m.Readings) != 1 || m.Readings[0].Value != 1 {
				t.Errorf("metrics %v: %+v", end.Metrics, m)
			}
			if got := f.read(rundir.StdoutFile); got != "performance: 1 x\nlast\n" {
				t.Errorf("stdout is %q", got)
			}
			var begin evidence.Begin
			if err := json.Unmarshal([]byte(f.read(rundir.BeginFile)), &begin); err != nil || begin.Identity != end.Identity || begin.PID == 0 {
				t.Errorf("begin marker %+v, %v", begin, err)
			}
			for _, name := range []string{rundir.BeginFile, rundir.EndFile, rundir.MetricsFile, rundir.StdoutFile} {
				if info, err := os.Lstat(filepath.Join(f.dir(), name)); err != nil || !info.Mode().IsRegular() {
					t.Errorf("%s is no regular file: %v", name, err)
				}
			}
			if strings.HasPrefix(name, "re") && !strings.Contains(end.Message, "removed or replaced while it ran") {
				t.Errorf("message is %q", end.Message)
			}
			if data, _ := os.ReadFile(precious); string(data) != "keep" {
				t.Errorf("a file that a link names was changed: %q", data)
			}
		})
	}
}

// A metrics.json beside the markers is the wrapper's, even if it has nothing to
// say.
func TestForgedMetricsAreRemoved(t *testing.T) {
	f := newFixture(t, `echo '{"version": 1, "readings": []}' > "$ASSAY_RESULTS_DIR/../metrics.json"`)
	_, end := f.run()
	if _, err := os.Lstat(filepath.Join(f.dir(), rundir.MetricsFile)); end.Metrics || !os.IsNotExist(err) {
		t.Errorf("metrics %v, %v", end.Metrics, err)
	}
}

// A workload that takes all evidence away is answered with a code, not with
// silence.
func TestEvidenceCannotBeWritten(t *testing.T) {
	f := newFixture(t, `rm -rf "${ASSAY_RESULTS_DIR%/ranks/*}"`)
	code, stderr := f.refused()
	if code != 6 || !strings.Contains(stderr, "end marker cannot be written") || !strings.Contains(stderr, "cannot be seen from this node") {
		t.Errorf("exit %d, %q", code, stderr)
	}
}

func TestResultsDirectoryWasRemoved(t *testing.T) {
	f := newFixture(t, `rm -rf "$ASSAY_RESULTS_DIR"; printf %s "$CSV" > r.csv`)
	f.attempt.Job.Env = map[string]string{"CSV": goodCSV}
	f.attempt.Job.Expect.MultipleResults = "r.csv"
	if _, end := f.run(); end.Lost != "" || end.Results.File != "r.csv" || f.read("results/r.csv") != goodCSV {
		t.Errorf("lost %q, results %+v", end.Lost, end.Results)
	}
}

// A metrics.json that cannot be read is a problem of the measurement.
func TestUnreadableMetricsJSON(t *testing.T) {
	for script, want := range map[string]string{
		`mkfifo metrics.json`:               "work/metrics.json is not a regular file",
		`mkdir metrics.json`:                "work/metrics.json is not a regular file",
		`truncate -s 16777217 metrics.json`: "work/metrics.json is too large: it may have at most 16 MiB",
		`echo '{"a": 1}' > metrics.json; mkdir "$ASSAY_RESULTS_DIR/metrics.json"`: "results/metrics.json is not a regular file",
	} {
		f := newFixture(t, script)
		f.attempt.Job.Expect.Metrics = []metric.Spec{{Name: "a"}}
		f.run()
		m := f.metrics()
		if len(m.Problems) != 1 || m.Problems[0].Code != metric.CodeUnreadable || m.Problems[0].Message != want {
			t.Errorf("%s: problems %+v, want %q", script, m.Problems, want)
		}
		if strings.HasPrefix(script, "echo") != (len(m.Readings) == 1) {
			t.Errorf("%s: readings %+v", script, m.Readings)
		}
	}
}
