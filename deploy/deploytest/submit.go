package deploytest

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay/deploy"
	"assay/pkg/evidence"
	"assay/pkg/plan"
	"assay/pkg/rundir"
	"assay/pkg/verdict"
)

func renderIsPure(t *testing.T, h Harness) {
	a := h.prepare(t, h.New(t), bash("true", 2))
	first, err := h.New(t).Render(a)
	if err != nil {
		t.Fatal(err)
	}
	second, err := h.New(t).Render(a)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("the same attempt rendered differently:\n%s", diff)
	}
}

// handleSurvives hands a job that runs to a target that has only what is on disk.
func handleSurvives(t *testing.T, h Harness) {
	a, handle := h.start(t, h.New(t), bash(untilGo+"exit 5", 1))
	data, err := json.Marshal(handle)
	if err != nil {
		t.Fatal(err)
	}
	var again deploy.Handle
	if err := json.Unmarshal(data, &again); err != nil {
		t.Fatal(err)
	}
	h.awaitUp(t, a, 0)
	h.eventually(t, func() string {
		switch seen := observe(t, h.New(t), again); seen.Phase {
		case evidence.PhaseRunning:
			return ""
		case evidence.PhasePending: // a target may learn of the start late
			return "a job that runs is said to be pending"
		default:
			t.Fatalf("a job that runs is said to be %+v", seen)
			return ""
		}
	})
	letGo(t, a, 0)
	h.await(t, h.New(t), again)
	if m := mustEnd(t, a, 0); m.ExitCode != 5 {
		t.Errorf("exit code %d, want 5", m.ExitCode)
	}
}

// found loses the answer of a submission, as a process that is killed then does.
func found(t *testing.T, h Harness) {
	find := func(a plan.Attempt) (deploy.Handle, bool) {
		finder, ok := h.New(t).(deploy.Finder)
		if !ok {
			t.Fatal("the target is no Finder any more")
		}
		handle, found, err := finder.Find(t.Context(), a)
		if err != nil {
			t.Fatalf("find: %v", err)
		}
		return handle, found
	}
	target := h.New(t)
	a, _ := h.start(t, target, bash(untilGo+"exit 6", 1))
	h.awaitUp(t, a, 0)
	handle, known := find(a)
	if !known {
		t.Fatal("a job that runs was not found")
	}
	if never, known := find(h.prepare(t, target, a.Job)); known {
		t.Errorf("for an attempt that was never submitted %+v was found", never)
	}
	letGo(t, a, 0)
	h.await(t, target, handle)
	if m := mustEnd(t, a, 0); m.ExitCode != 6 {
		t.Errorf("exit code %d, want 6", m.ExitCode)
	}
}

func refused(t *testing.T, h Harness) {
	target, job, words := h.Refused(t, bash("true", 1))
	a := h.prepare(t, target, job)
	handle, err := target.Submit(t.Context(), a)
	if !errors.Is(err, deploy.ErrRefused) {
		t.Fatalf("submit gave handle %+v and %v, want a refusal", handle, err)
	}
	if !strings.Contains(err.Error(), words) {
		t.Errorf("the refusal %q does not say %q", err, words)
	}
	v := judgeRefused(t, a, err)
	wantVerdict(t, v, verdict.Error, verdict.CodeLaunchRefused)
	if len(v.Reasons) == 0 || !strings.Contains(v.Reasons[0].Message, words) {
		t.Errorf("the verdict does not say %q: %v", words, v.Reasons)
	}
	h.wantNothingLeft(t, a, handle)
}

// noRoom puts a file where the ranks' directory has to be: what runs there could
// keep no record.
func noRoom(t *testing.T, h Harness) {
	target := h.New(t)
	a := h.prepare(t, target, bash("true", 1))
	if err := os.WriteFile(filepath.Join(a.Dir, "ranks"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	handle, err := target.Submit(t.Context(), a)
	if !errors.Is(err, deploy.ErrRefused) {
		t.Errorf("submit gave handle %+v and %v, want a refusal", handle, err)
	}
	h.wantNothingLeft(t, a, handle)
}

// missingTool submits, observes and cancels where a tool is not there: nothing is
// made up, and the tool is named.
func missingTool(t *testing.T, h Harness) {
	lacking, tool := h.Lacking(t)
	a := h.prepare(t, lacking, bash("true", 1))
	handle, err := lacking.Submit(t.Context(), a)
	if !errors.Is(err, deploy.ErrRefused) && !errors.Is(err, deploy.ErrUnavailable) {
		t.Fatalf("submit gave handle %+v and %v", handle, err)
	}
	if !strings.Contains(err.Error(), tool) {
		t.Errorf("the error %q does not name %s", err, tool)
	}
	h.wantNothingLeft(t, a, handle)

	target := h.New(t)
	a, handle = h.start(t, target, bash(untilGo+"exit 0", 1))
	h.awaitUp(t, a, 0)
	seen, err := lacking.Observe(t.Context(), []deploy.Handle{handle})
	switch {
	case err != nil && !errors.Is(err, deploy.ErrUnavailable):
		t.Errorf("observe gave the error %v, which is not of the kind unavailable", err)
	case err != nil && len(seen) > 0:
		t.Errorf("observe gave an error and states besides: %+v", seen)
	case err == nil && seen[0].Phase.Over():
		t.Errorf("of a job that runs it is said without the tool: %+v", seen[0])
	}
	letGo(t, a, 0)
	h.await(t, target, handle)
}

// manyAtOnce submits jobs at the same time, and watches all of them several times
// at once.
func manyAtOnce(t *testing.T, h Harness) {
	const jobs, watchers = 20, 3
	target := h.New(t)
	attempts := make([]plan.Attempt, jobs)
	handles := make([]deploy.Handle, jobs)
	var wg sync.WaitGroup
	for i := range jobs {
		attempts[i] = h.prepare(t, target, bash(`echo "$MASTER_ADDR:$MASTER_PORT"; exit `+strconv.Itoa(i), 1))
		wg.Go(func() {
			var err error
			if handles[i], err = target.Submit(t.Context(), attempts[i]); err != nil {
				t.Errorf("submit %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	for _, handle := range handles {
		t.Cleanup(func() { h.abandon(t, handle) })
	}
	if t.Failed() {
		return
	}
	for range watchers {
		wg.Go(func() { h.awaitAll(t, target, handles) })
	}
	wg.Wait()
	if t.Failed() {
		return
	}
	ids, meet := map[string]int{}, map[string]int{}
	for i, a := range attempts {
		if m := mustEnd(t, a, 0); m.ExitCode != i {
			t.Errorf("job %d ended with code %d", i, m.ExitCode)
		}
		at := strings.TrimSpace(output(t, a, 0, rundir.StdoutFile))
		if before, twice := meet[at]; twice {
			t.Errorf("jobs %d and %d were given the same place to meet, %q", before, i, at)
		}
		if before, twice := ids[handles[i].ID]; twice {
			t.Errorf("jobs %d and %d have the same id %q", before, i, handles[i].ID)
		}
		meet[at], ids[handles[i].ID] = i, i
	}
}
