// Package rundir knows the run directory: where each file lies, and how the
// ledger of a run is written and read.
//
//	runs/<run-id>/
//	  run.json            the ledger: identity, target, and every job that must arrive
//	  manifest.json       the exact bytes that were run
//	  jobs/<job>/<attempt>/
//	    job.json, job.sh  what was submitted
//	    launch.json       how far the submission got; the handle
//	    ranks/<rank>/     begin.json, end.json, stdout, stderr, metrics.json, results/, work/
//	    scheduler.jsonl   every observation of the scheduler that said something new
//	    verdict.json
//	  verdict.json  junit.xml  report.html
package rundir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Names of the files in a run directory.
const (
	LedgerFile    = "run.json"
	ManifestFile  = "manifest.json"
	LockFile      = "lock"
	CancelFile    = "cancel.json"
	PerfFile      = "perf.json"
	LaunchFile    = "launch.json"
	DriverLog     = "driver.log" // of a process that drives a run in the background
	VerdictFile   = "verdict.json"
	JUnitFile     = "junit.xml"
	ReportFile    = "report.html"
	JobFile       = "job.json"
	SchedulerFile = "scheduler.jsonl"
	BeginFile     = "begin.json"
	EndFile       = "end.json"
	MetricsFile   = "metrics.json"
	StdoutFile    = "stdout"
	StderrFile    = "stderr"
	WrapperLog    = "assay.log" // what the rank wrapper itself had to say
	ResultsDir    = "results"
	WorkDir       = "work"
)

// AttemptDir is the directory of one attempt of a job.
func AttemptDir(run, job string, attempt int) string {
	return filepath.Join(run, "jobs", job, strconv.Itoa(attempt))
}

// Of is the run directory that an attempt directory is in, "" when it is in none.
func Of(attemptDir string) string {
	i := strings.LastIndex(attemptDir, "/jobs/")
	if i < 0 {
		return ""
	}
	return attemptDir[:i]
}

// RankDir is the directory of one rank; only that rank writes there.
func RankDir(attemptDir string, rank int) string {
	return filepath.Join(attemptDir, "ranks", strconv.Itoa(rank))
}

// Attempts are the numbers of the attempts of a job that have a directory, in their
// order. A number may be missing: a scheduler may start a job again twice before
// anybody looks.
func (r *Run) Attempts(job string) ([]int, error) {
	entries, err := os.ReadDir(filepath.Join(r.Dir, "jobs", job))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var numbers []int
	for _, e := range entries {
		if n, err := strconv.Atoi(e.Name()); err == nil && e.IsDir() {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	return numbers, nil
}

// LastAttempt is the number of the newest attempt of a job, 0 when there is none.
func (r *Run) LastAttempt(job string) (int, error) {
	numbers, err := r.Attempts(job)
	if err != nil || len(numbers) == 0 {
		return 0, err
	}
	return numbers[len(numbers)-1], nil
}
