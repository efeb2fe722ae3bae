package slurm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"assay/deploy"
	"assay/pkg/batch"
	"assay/pkg/evidence"
)

// However many jobs there are, the queue is asked once, and the accounting once for
// each thousand.
func TestOneCallForAllJobs(t *testing.T) {
	for n, calls := range map[int]int{1: 1, 1000: 1, 1001: 2} {
		tools := commands(t, map[string]string{"squeue": "exit 0", "sacct": "exit 0"})
		s := schedulerOf(tools)
		refs := make([]batch.Ref, n)
		for i := range refs {
			refs[i] = batch.Ref{ID: fmt.Sprint(5000 + i), Name: "n", User: fmt.Sprint(1001 + i%2)}
		}
		queue, err := s.Queue(t.Context(), refs)
		if err != nil || len(queue) != n {
			t.Fatalf("%d answers, %v", len(queue), err)
		}
		history, err := s.History(t.Context(), refs)
		if err != nil || len(history) != n {
			t.Fatalf("%d answers, %v", len(history), err)
		}
		var got []string
		for _, call := range called(t, tools) {
			name, _, _ := strings.Cut(call, " ")
			got = append(got, name)
		}
		want := append([]string{"squeue"}, strings.Fields(strings.Repeat("sacct ", calls))...)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%d jobs:\n%s", n, diff)
		}
		if n > 1 && !strings.Contains(called(t, tools)[0], "1001") {
			t.Errorf("the users are not asked for: %s", called(t, tools)[0])
		}
	}
}

// A queue that cannot be asked is an error and no answer.
func TestQueueThatFails(t *testing.T) {
	for name, squeue := range map[string]string{
		"controller": saying("slurm_load_jobs error: Unable to contact slurm controller (connect failure)", "1"),
		"silent":     "exit 1",
		"no_user":    saying("squeue: error: Invalid user: 1001", "0"),
		"killed":     "echo half; kill -KILL $$",
		"hangs":      "exec /bin/sleep 60",
	} {
		t.Run(name, func(t *testing.T) {
			tools := commands(t, map[string]string{"squeue": squeue})
			if name == "hangs" {
				tools.limit = 100 * time.Millisecond
			}
			if _, err := schedulerOf(tools).Queue(t.Context(), []batch.Ref{testRef()}); !errors.Is(err, deploy.ErrUnavailable) {
				t.Errorf("error %v", err)
			}
		})
	}
}

// An accounting that fails is asked again later each time, and tells how often it
// failed.
func TestAccountingThatFails(t *testing.T) {
	tools := commands(t, map[string]string{"sacct": saying("sacct: error: slurm_persist_conn_open: failed to open persistent connection to host:localhost:6819: Connection refused", "1")})
	s := schedulerOf(tools)
	for range 3 {
		_, err := s.History(t.Context(), []batch.Ref{testRef()})
		if !errors.Is(err, deploy.ErrUnavailable) || errors.Is(err, batch.ErrNoHistory) || !strings.Contains(err.Error(), "failed to open persistent connection") {
			t.Errorf("error %v", err)
		}
	}
	if calls := called(t, tools); len(calls) != 1 {
		t.Errorf("%d calls within a moment, want 1", len(calls))
	}
	if s.pause.failures != 1 {
		t.Errorf("%d failures are counted, want 1", s.pause.failures)
	}
}

// A site without accounting is none that fails.
func TestNoAccounting(t *testing.T) {
	tools := commands(t, map[string]string{"sacct": saying("Slurm accounting storage is disabled", "1")})
	s := schedulerOf(tools)
	for range 2 {
		if _, err := s.History(t.Context(), []batch.Ref{testRef()}); !errors.Is(err, batch.ErrNoHistory) {
			t.Errorf("error %v", err)
		}
	}
	if s.pause.failures != 0 {
		t.Errorf("%d failures are counted", s.pause.failures)
	}
}

// A question that was cut short is no failure of the accounting.
func TestQuestionCutShort(t *testing.T) {
	s := schedulerOf(commands(t, map[string]string{"sacct": "exec /bin/sleep 60"}))
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := s.History(ctx, []batch.Ref{testRef()}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
	if s.pause.failures != 0 {
		t.Errorf("%d failures are counted", s.pause.failures)
	}
}

func TestBackoff(t *testing.T) {
	var b backoff
	now := time.Unix(0, 0)
	away := errors.New("away")
	for i, want := range []int{1, 2, 4, 8, 16, 30, 30, 30} {
		if err := b.wait(now); err != nil {
			t.Fatalf("failure %d: still %v", i, err)
		}
		b.note(away, now)
		early := now.Add(time.Duration(want)*time.Second - time.Millisecond)
		if err := b.wait(early); !errors.Is(err, away) || !strings.Contains(err.Error(), fmt.Sprintf("(%d in a row)", i+1)) {
			t.Errorf("failure %d: asked again before %d s: %v", i, want, err)
		}
		now = now.Add(time.Duration(want) * time.Second)
	}
	b.note(nil, now)
	if err := b.wait(now); err != nil || b.failures != 0 {
		t.Errorf("after an answer: %v, %d failures", err, b.failures)
	}
	rapid.Check(t, func(t *rapid.T) {
		var b backoff
		now := time.Unix(0, 0)
		for range rapid.IntRange(1, 200).Draw(t, "failures") {
			b.note(away, now)
			if pause := b.until.Sub(now); pause < time.Second || pause > 30*time.Second {
				t.Fatalf("a pause of %s after %d failures", pause, b.failures)
			}
			now = b.until
		}
	})
}

// The submit time that the queue gave tells our row before the accounting has its
// name.
func TestSubmitTimeIsRemembered(t *testing.T) {
	dir := t.TempDir()
	queue, sacct := filepath.Join(dir, "queue"), filepath.Join(dir, "sacct")
	for path, text := range map[string]string{
		queue: testID + "|RUNNING|0|0|1795960000|" + testUser + "|n1|" + testName + "|None\n",
		sacct: testID + "|TIMEOUT|0:0|0:0|" + testUser + "|1795960000|n1|None|allocation\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := schedulerOf(commands(t, map[string]string{"squeue": printing(t, queue), "sacct": printing(t, sacct)}))
	s.submitted = map[string]string{}
	history := func() batch.Answer {
		answers, err := s.History(t.Context(), []batch.Ref{testRef()})
		if err != nil {
			t.Fatal(err)
		}
		return answers[0]
	}
	if a := history(); a.Known {
		t.Errorf("a row without a name was taken for ours: %+v", a)
	}
	if _, err := s.Queue(t.Context(), []batch.Ref{testRef()}); err != nil {
		t.Fatal(err)
	}
	if a := history(); a.Word != "TIMEOUT" || a.Phase != evidence.PhaseEnded {
		t.Errorf("our row was not known: %+v", a)
	}
}

// Whatever the accounting prints, nothing is made up: an answer is of a row that
// has our name and user.
func TestHistoryOfAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cell := rapid.SampledFrom([]string{
			"", testID, testID + ".0", testID + ".batch", "4712", "COMPLETED", "FAILED", "TIMEOUT", "CANCELLED by 0", "0:0", "3:0", "0:125", testUser, "0", testSubmit, "17", "node1", testName, "allocation", "\x00", "é",
		})
		var text strings.Builder
		for range rapid.IntRange(0, 6).Draw(t, "lines") {
			text.WriteString(strings.Join(rapid.SliceOfN(cell, 7, 10).Draw(t, "cells"), "|") + "\n")
		}
		s := &scheduler{submitted: map[string]string{testID: testSubmit}}
		var mine []row
		ours := false
		for _, r := range parseHistory(text.String()) {
			if r.job != testID {
				continue
			}
			mine = append(mine, r)
			ours = ours || r.step == "" && r.user == testUser && (r.name == testName || r.name == "allocation" && r.submit == testSubmit)
		}
		if a := s.account(mine, testRef()); a.Known != ours {
			t.Fatalf("known: %t, want %t, of\n%s", a.Known, ours, text.String())
		}
	})
}
