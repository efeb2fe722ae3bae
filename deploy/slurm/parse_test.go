package slurm

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay/pkg/batch"
)

// TestHistory has the accounting print the rows of each file, and compares what is
// made of them with the answer beside it.
func TestHistory(t *testing.T) {
	paths, err := filepath.Glob("testdata/history/*.txt")
	if err != nil || len(paths) < 30 {
		t.Fatalf("%d cases (%v)", len(paths), err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			s := schedulerOf(commands(t, map[string]string{"sacct": printing(t, path)}))
			answers, err := s.History(t.Context(), []batch.Ref{testRef()})
			if err != nil {
				t.Fatal(err)
			}
			goldenAnswer(t, strings.TrimSuffix(path, ".txt")+".json", answers[0])
		})
	}
}

// TestQueue does the same with the rows of the queue.
func TestQueue(t *testing.T) {
	paths, err := filepath.Glob("testdata/queue/*.txt")
	if err != nil || len(paths) < 10 {
		t.Fatalf("%d cases (%v)", len(paths), err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			s := schedulerOf(commands(t, map[string]string{"squeue": printing(t, path)}))
			answers, err := s.Queue(t.Context(), []batch.Ref{testRef()})
			if err != nil {
				t.Fatal(err)
			}
			goldenAnswer(t, strings.TrimSuffix(path, ".txt")+".json", answers[0])
		})
	}
}

func goldenAnswer(t *testing.T, path string, a batch.Answer) {
	t.Helper()
	data, err := json.MarshalIndent(compact(t, a), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, path, string(data)+"\n")
}

// compact is an answer without what it does not say.
func compact(t *testing.T, a batch.Answer) map[string]any {
	t.Helper()
	data, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(data, &fields); err != nil {
		t.Fatal(err)
	}
	for name, v := range fields {
		if v == nil || v == "" || v == false || v == 0.0 {
			delete(fields, name)
		}
	}
	return fields
}

func TestExitStatus(t *testing.T) {
	for raw, want := range map[string]string{"0": "0:0", "768": "3:0", "9": "0:9", "139": "0:11", "65280": "255:0", "": "", "N/A": "N/A"} {
		if got := exitStatus(raw); got != want {
			t.Errorf("%q is %q, want %q", raw, got, want)
		}
	}
}

func TestFirstWord(t *testing.T) {
	for state, want := range map[string]string{
		"RUNNING": "RUNNING", "RUNNING+": "RUNNING", "CANCELLED by 1001": "CANCELLED", "NODE_FAIL*": "NODE_FAIL",
		" COMPLETED ": "COMPLETED", "": "", "OUT_OF_MEMORY": "OUT_OF_MEMORY", "OUT_OF_ME+": "OUT_OF_ME",
	} {
		if got := firstWord(state); got != want {
			t.Errorf("%q is %q, want %q", state, got, want)
		}
	}
}

// Fields that are asked for and fields that are read are the same number.
func TestColumns(t *testing.T) {
	if got := strings.Count(historyFields, ",") + 1; got != 9 {
		t.Errorf("sacct is asked for %d columns, 9 are read", got)
	}
	if got := strings.Count(queueFields, ",") + 1; got != 9 {
		t.Errorf("squeue is asked for %d columns, 9 are read", got)
	}
	line := "1|RUNNING|0|0|17|0|n1|a|b|c|None\n" // a name with bars in it
	want := []row{{job: "1", state: "RUNNING", exit: "0:0", submit: "17", user: "0", nodes: "n1", name: "a", reason: "b|c|None"}}
	if diff := cmp.Diff(want, parseQueue(line), cmp.AllowUnexported(row{})); diff != "" {
		t.Error(diff)
	}
}
