package rank_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay/pkg/evidence"
)

func TestOutcomes(t *testing.T) {
	tests := []struct {
		name, script string
		limit        int
		exit         int
		outcome      evidence.Outcome
		signal       string
	}{
		{"clean", "echo hello", 0, 0, evidence.OutcomeExited, ""},
		{"exit code", "exit 3", 0, 3, evidence.OutcomeExited, ""},
		{"killed", "kill -KILL $$", 0, 137, evidence.OutcomeSignaled, "SIGKILL"},
		{"segfault", "kill -SEGV $$", 0, 139, evidence.OutcomeSignaled, "SIGSEGV"},
		{"terminated by another", "kill -TERM $$", 0, 143, evidence.OutcomeSignaled, "SIGTERM"},
		{"time limit", "sleep 600", 1, 124, evidence.OutcomeTimedOut, ""},
		{"time limit, ignores TERM", "trap '' TERM; while :; do sleep 1; done", 1, 124, evidence.OutcomeTimedOut, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, tt.script)
			f.attempt.Job.TimeoutSeconds = tt.limit
			exit, end := f.run()
			if exit != tt.exit || end.ExitCode != tt.exit {
				t.Errorf("exited %d, end marker says %d, want %d", exit, end.ExitCode, tt.exit)
			}
			if end.Outcome != tt.outcome || end.Signal != tt.signal {
				t.Errorf("outcome %v %q, want %v %q", end.Outcome, end.Signal, tt.outcome, tt.signal)
			}
			if end.ElapsedSeconds <= 0 || end.StartedAt.IsZero() || end.FinishedAt.Before(end.StartedAt) {
				t.Errorf("times are wrong: %+v", end)
			}
			want := evidence.Identity{RunID: "r1", Nonce: "n1", ManifestDigest: "d1", Job: "job", Attempt: 1, WorldSize: 1}
			if d := cmp.Diff(want, end.Identity); d != "" {
				t.Errorf("identity (-want +got):\n%s", d)
			}
		})
	}
}

func TestOutputIsKept(t *testing.T) {
	f := newFixture(t, `printf 'out\0\377\n'; printf err >&2`)
	_, end := f.run()
	if got := f.read("stdout"); got != "out\x00\xff\n" {
		t.Errorf("stdout is %q", got)
	}
	if got := f.read("stderr"); got != "err" {
		t.Errorf("stderr is %q", got)
	}
	if end.Stdout.Bytes != 6 || end.Stderr.Bytes != 3 || end.Stdout.Dropped != 0 {
		t.Errorf("sizes are wrong: %+v %+v", end.Stdout, end.Stderr)
	}
}

func TestHostileArguments(t *testing.T) {
	hostile := []string{"a b", `"q"`, "$(touch x)", "`id`", "line\nbreak", "é☃", "--leading", "", `back\slash`, "'"}
	f := newFixture(t, "")
	f.attempt.Job.Program.Command = append([]string{"printf", "%s\\0"}, hostile...)
	f.attempt.Job.Env = map[string]string{"HOSTILE": strings.Join(hostile, "|")}
	f.run()
	if d := cmp.Diff(strings.Join(hostile, "\x00")+"\x00", f.read("stdout")); d != "" {
		t.Errorf("argv (-want +got):\n%s", d)
	}
	g := newFixture(t, `printf %s "$HOSTILE"`)
	g.attempt.Job.Env = f.attempt.Job.Env
	g.run()
	if d := cmp.Diff(strings.Join(hostile, "|"), g.read("stdout")); d != "" {
		t.Errorf("environment (-want +got):\n%s", d)
	}
}
