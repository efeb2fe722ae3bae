package slurm

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay/deploy"
	"assay/pkg/batch"
	"assay/pkg/plan"
)

// listing is a line of squeue as List asks for it.
func listing(id, state, name, comment string) string {
	pad := func(s string, n int) string { return s + strings.Repeat(" ", max(0, n-len(s))) }
	return pad(id, 20) + "|" + pad(state, 24) + "|" + pad(name, 160) + "|" + pad(comment, 4096) + "\n"
}

func TestList(t *testing.T) {
	a := plan.Attempt{RunID: "20260101-000000-abcdef", Nonce: "001122334455667788", Number: 2, Dir: "/scratch/my runs/r/jobs/bench/2", Job: plan.Job{ID: "bench"}}
	long := a
	long.Dir = "/" + strings.Repeat("deep/", 400) + "jobs/bench/2"
	text := "squeue: warning: something\n" +
		listing("1", "RUNNING", "nightly", "assay run=x nonce=y job=z attempt=1 host=h dir=/d") +
		listing("2", "PENDING", jobName(a), jobComment(a, "login1")) +
		listing("3", "RUNNING", "not-assay-1", "") +
		listing("4", "COMPLETING", "assay-aabbccddeeff-x-1", "somebody changed | the comment") +
		listing("5", "RUNNING", jobName(long), jobComment(long, "login1")) +
		listing("6", "RUNNING", "a | b", "c | d")
	path := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	tools := commands(t, map[string]string{"squeue": printing(t, path)})
	s := schedulerOf(tools)
	target := &Target{Target: batch.New(s, time.Now), s: s}
	got, err := target.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []deploy.Listed{
		{State: "PENDING", RunID: a.RunID, Nonce: a.Nonce, Host: "login1", RunDir: "/scratch/my runs/r"},
		{State: "COMPLETING", Nonce: "aabbccddeeff"},
		{State: "RUNNING", RunID: a.RunID, Nonce: a.Nonce, Host: "login1"},
	}
	ids := []string{"2", "4", "5"}
	if len(got) != len(want) {
		t.Fatalf("%d jobs, want %d: %+v", len(got), len(want), got)
	}
	for i := range got {
		if got[i].Handle.ID != ids[i] || got[i].Handle.Target != Name {
			t.Errorf("handle %+v, want of job %s", got[i].Handle, ids[i])
		}
		got[i].Handle = deploy.Handle{}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if calls := called(t, tools); len(calls) != 1 || !strings.Contains(calls[0], "--user="+uid()) {
		t.Errorf("calls %q", calls)
	}
}

// The comment is no longer than SLURM takes, and always tells the run.
func TestJobComment(t *testing.T) {
	a := plan.Attempt{RunID: "r", Nonce: "n", Number: 1, Job: plan.Job{ID: "j"}}
	for n := range 2000 {
		a.Dir = "/" + strings.Repeat("d", n)
		comment := jobComment(a, "h")
		if len(comment) > maxComment || !strings.HasPrefix(comment, "assay run=r nonce=n job=j attempt=1 host=h dir=") {
			t.Fatalf("%d bytes: %s", len(comment), comment)
		}
	}
}
