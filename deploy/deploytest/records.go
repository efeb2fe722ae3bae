package deploytest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"assay/deploy"
	"assay/pkg/collect"
	"assay/pkg/evidence"
	"assay/pkg/plan"
	"assay/pkg/procfs"
	"assay/pkg/rundir"
	"assay/pkg/verdict"
)

// end reads the end marker of a rank; ok is false when there is none.
func end(t *testing.T, a plan.Attempt, rank int) (m evidence.End, ok bool) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(rundir.RankDir(a.Dir, rank), rundir.EndFile))
	if errors.Is(err, os.ErrNotExist) {
		return m, false
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &m); err != nil {
		t.Fatalf("end marker of rank %d: %v", rank, err)
	}
	return m, true
}

// mustEnd reads the end marker of a rank that has to have one.
func mustEnd(t *testing.T, a plan.Attempt, rank int) evidence.End {
	t.Helper()
	m, ok := end(t, a, rank)
	if !ok {
		log, _ := os.ReadFile(filepath.Join(rundir.RankDir(a.Dir, rank), rundir.WrapperLog))
		out, _ := os.ReadFile(filepath.Join(a.Dir, "job.out"))
		t.Fatalf("rank %d has no end marker; its wrapper said: %s%s", rank, log, out)
	}
	return m
}

// output reads a file of a rank.
func output(t *testing.T, a plan.Attempt, rank int, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(rundir.RankDir(a.Dir, rank), name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// judge does what a run does when the target has said its last word: it keeps the
// handle and the word, collects the evidence and judges it.
func judge(t *testing.T, a plan.Attempt, handle deploy.Handle, seen evidence.Observation, cancelled bool) verdict.Verdict {
	t.Helper()
	r := rundir.Run{Dir: filepath.Dir(filepath.Dir(filepath.Dir(a.Dir)))}
	launch := rundir.LaunchRecord{Launch: evidence.Launch{State: evidence.LaunchSubmitted}, Handle: &handle}
	if err := errors.Join(r.WriteLaunch(a.Dir, launch), r.AppendObservation(a.Dir, seen)); err != nil {
		t.Fatal(err)
	}
	return judged(t, a, cancelled)
}

// judgeRefused judges a job whose submission gave an error.
func judgeRefused(t *testing.T, a plan.Attempt, refusal error) verdict.Verdict {
	t.Helper()
	r := rundir.Run{Dir: filepath.Dir(filepath.Dir(filepath.Dir(a.Dir)))}
	launch := rundir.LaunchRecord{Launch: evidence.Launch{State: evidence.LaunchRefused, Code: verdict.CodeLaunchRefused, Detail: refusal.Error()}}
	if err := r.WriteLaunch(a.Dir, launch); err != nil {
		t.Fatal(err)
	}
	return judged(t, a, false)
}

func judged(t *testing.T, a plan.Attempt, cancelled bool) verdict.Verdict {
	t.Helper()
	var c *evidence.Cancel
	if cancelled {
		c = &evidence.Cancel{By: "test", At: time.Now(), Jobs: []string{a.Job.ID}}
	}
	e, err := collect.Evidence(a.Dir, a, c)
	if err != nil {
		t.Fatal(err)
	}
	return verdict.Judge(a.Job.Expect, e)
}

// wantVerdict compares a verdict with a word and the codes of the reasons and
// warnings that it has to have among others.
func wantVerdict(t *testing.T, got verdict.Verdict, word verdict.Word, codes ...string) {
	t.Helper()
	if got.Word != word {
		t.Errorf("the verdict is %s (%s), want %s: %v, warnings %v", got.Word, got.Rule, word, got.Reasons, got.Warnings)
	}
	for _, code := range codes {
		if !slices.ContainsFunc(slices.Concat(got.Reasons, got.Warnings), func(r verdict.Reason) bool { return r.Code == code }) {
			t.Errorf("the verdict %s does not give %s: %v, warnings %v", got.Word, code, got.Reasons, got.Warnings)
		}
	}
}

// wantNothingLeft waits until nothing of a job is left but the files of its
// attempt: no process on this machine, nothing in the target, no other file.
func (h Harness) wantNothingLeft(t *testing.T, a plan.Attempt, handle deploy.Handle) {
	t.Helper()
	h.eventually(t, func() string {
		left := processes(t, a.Dir)
		if h.Left != nil && handle.Target != "" {
			left = append(left, h.Left(t, handle)...)
		}
		return strings.Join(left, "; ")
	})
	run := filepath.Dir(filepath.Dir(filepath.Dir(a.Dir)))
	err := filepath.WalkDir(run, func(path string, _ fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case path == a.Dir:
			return fs.SkipDir
		}
		if !strings.HasPrefix(a.Dir, path+"/") {
			t.Errorf("%s is left outside of the attempt directory", path)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// processes lists what runs on this machine in the name of an attempt: its
// directory is among the arguments or in the environment.
func processes(t *testing.T, dir string) []string {
	t.Helper()
	all, err := procfs.All()
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, p := range all {
		if p.Ended() || p.PID == os.Getpid() {
			continue
		}
		args, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.PID)) // none when it has just ended
		env, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", p.PID))
		if bytes.Contains(args, []byte(dir)) || bytes.Contains(env, []byte(dir)) {
			found = append(found, fmt.Sprintf("process %d runs: %q", p.PID, args))
		}
	}
	return found
}
