package slurm

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay/deploy"
	"assay/pkg/batch"
	"assay/pkg/environ"
	"assay/pkg/plan"
	"assay/pkg/rundir"
)

func testAttempt(dir string) plan.Attempt {
	return plan.Attempt{
		RunID: "20260101-000000-abcdef", Nonce: "00112233445566778899aabbccddeeff", Number: 1, Dir: dir,
		Job: plan.Job{ID: "bench", NNodes: 2, RanksPerNode: 1, WorldSize: 2},
	}
}

// saying is a command that says something and ends with a code.
func saying(words, code string) string { return "echo '" + words + "' >&2; exit " + code }

// TestSubmit gives the answers of sbatch and the kind of error that each is.
func TestSubmit(t *testing.T) {
	for name, c := range map[string]struct {
		sbatch string
		id     string
		kind   error
		words  string // part of the error
	}{
		"id":            {sbatch: "echo 4711", id: "4711"},
		"id_cluster":    {sbatch: "echo '4711;lab'", id: "4711"},
		"warning":       {sbatch: "echo 'sbatch: warning: x' >&2; echo 4711", id: "4711"},
		"nothing":       {sbatch: "exit 0", kind: deploy.ErrAmbiguous, words: `printed ""`},
		"no_id":         {sbatch: "echo 'Submitted batch job 4711'", kind: deploy.ErrAmbiguous, words: "Submitted batch job 4711"},
		"partition":     {sbatch: saying("sbatch: error: Batch job submission failed: Invalid partition name specified", "1"), kind: deploy.ErrRefused, words: "Invalid partition name specified"},
		"time":          {sbatch: saying("sbatch: error: Invalid --time specification", "255"), kind: deploy.ErrRefused, words: "Invalid --time specification"},
		"silent":        {sbatch: "exit 3", kind: deploy.ErrRefused, words: "exit code 3 and said nothing"},
		"socket":        {sbatch: saying("sbatch: error: Batch job submission failed: Socket timed out on send/recv operation", "1"), kind: deploy.ErrAmbiguous, words: "Socket timed out"},
		"zero_bytes":    {sbatch: saying("sbatch: error: Batch job submission failed: Zero Bytes were transmitted or received", "1"), kind: deploy.ErrAmbiguous},
		"reset":         {sbatch: saying("sbatch: error: Connection reset by peer", "1"), kind: deploy.ErrAmbiguous},
		"killed":        {sbatch: "kill -KILL $$", kind: deploy.ErrAmbiguous},
		"no_controller": {sbatch: saying("sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)", "1"), kind: deploy.ErrUnavailable, words: "Unable to contact slurm controller"},
		"standby":       {sbatch: saying("sbatch: error: Batch job submission failed: Slurm backup controller in standby mode", "1"), kind: deploy.ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			tools := commands(t, map[string]string{"sbatch": c.sbatch})
			s := schedulerOf(tools)
			dir := t.TempDir()
			ref, err := s.Submit(t.Context(), testAttempt(dir))
			if !errors.Is(err, c.kind) || (c.kind == nil) != (err == nil) {
				t.Fatalf("error %v, want of kind %v", err, c.kind)
			}
			if err != nil && !strings.Contains(err.Error(), c.words) {
				t.Errorf("error %v, want the words %q", err, c.words)
			}
			if ref.ID != c.id {
				t.Errorf("id %q, want %q", ref.ID, c.id)
			}
			if diff := cmp.Diff([]string{"sbatch --parsable " + filepath.Join(dir, batch.ScriptFile)}, called(t, tools)); diff != "" {
				t.Error(diff)
			}
			if err == nil {
				want := batch.Ref{ID: c.id, Name: testName, User: uid(), Output: filepath.Join(dir, batch.OutputFile)}
				if diff := cmp.Diff(want, ref); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

// A submission that gives no answer in time may have happened.
func TestSubmitThatHangs(t *testing.T) {
	tools := commands(t, map[string]string{"sbatch": "exec /bin/sleep 60"})
	tools.limit = 100 * time.Millisecond
	_, err := schedulerOf(tools).Submit(t.Context(), testAttempt(t.TempDir()))
	if !errors.Is(err, deploy.ErrAmbiguous) || !strings.Contains(err.Error(), "gave no answer within") {
		t.Errorf("error %v", err)
	}
}

// The end of the context does not cut a submission short.
func TestSubmitAndTheEndOfItsContext(t *testing.T) {
	tools := commands(t, map[string]string{"sbatch": "echo 4711"})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if ref, err := schedulerOf(tools).Submit(ctx, testAttempt(t.TempDir())); err != nil || ref.ID != testID {
		t.Errorf("%+v, %v", ref, err)
	}
}

func TestToolsThatAreNotThere(t *testing.T) {
	tools := commands(t, nil)
	s := schedulerOf(tools)
	for name, f := range map[string]func() error{
		"sbatch":  func() error { _, err := s.Submit(t.Context(), testAttempt(t.TempDir())); return err },
		"squeue":  func() error { _, err := s.Queue(t.Context(), []batch.Ref{testRef()}); return err },
		"scancel": func() error { return s.Cancel(t.Context(), testRef()) },
	} {
		if err := f(); !errors.Is(err, deploy.ErrUnavailable) || !strings.Contains(err.Error(), "there is no "+name+" in PATH ("+environ.Get(tools.env, "PATH")) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := s.History(t.Context(), []batch.Ref{testRef()}); !errors.Is(err, batch.ErrNoHistory) || !strings.Contains(err.Error(), "there is no sacct") {
		t.Errorf("sacct: %v", err)
	}
}

// The commands get who and where one is and how SLURM is found, and nothing that
// would change what they do.
func TestEnvironmentOfTheCommands(t *testing.T) {
	tools := commands(t, map[string]string{"sbatch": `/usr/bin/env >"$HOME/env"; echo 4711`})
	home := t.TempDir()
	tools.env = append(tools.env, "HOME="+home, "SLURM_CONF=/etc/slurm.conf", "SBATCH_PARTITION=nope", "SBATCH_EXPORT=ALL", "SLURM_NTASKS=7",
		"SLURM_JWT=secret", "SLURM_TIME_FORMAT=relative", "SQUEUE_FORMAT=%i", "SACCT_FORMAT=jobid", "API_TOKEN=secret", "LANG=C.UTF-8")
	if _, err := schedulerOf(tools).Submit(t.Context(), testAttempt(t.TempDir())); err != nil {
		t.Fatal(err)
	}
	text := readFile(t, filepath.Join(home, "env"))
	for _, wanted := range []string{"SLURM_CONF=/etc/slurm.conf\n", "LANG=C.UTF-8\n", "HOME=" + home + "\n"} {
		if !strings.Contains(text, wanted) {
			t.Errorf("%q is missing", wanted)
		}
	}
	for _, unwanted := range []string{"secret", "SBATCH_", "SLURM_NTASKS", "SLURM_TIME_FORMAT", "_FORMAT"} {
		if strings.Contains(text, unwanted) {
			t.Errorf("%q was passed on:\n%s", unwanted, text)
		}
	}
}

// A job whose submission had no answer is found by its name, in the queue first.
func TestFind(t *testing.T) {
	row := func(id, user, name string) string {
		return id + "|RUNNING|0|0|17|" + user + "|n1|" + name + "|None\n"
	}
	dir := t.TempDir()
	for name, c := range map[string]struct {
		queue, sacct string
		want         string
	}{
		"queue":     {queue: row("1", uid(), "other") + row("12", uid(), testName), sacct: "echo '13|" + testName + "'", want: "12"},
		"newest":    {queue: row("12", uid(), testName) + row("14", uid(), testName), want: "14"},
		"user":      {queue: row("12", "99999", testName), sacct: "exit 0", want: ""},
		"ended":     {sacct: "echo '11|assay-0'; echo '13|" + testName + "'", want: "13"},
		"no_sacct":  {sacct: saying("sacct: error: Slurm accounting storage is disabled", "1"), want: ""},
		"beginning": {queue: row("12", uid(), testName+"0"), sacct: "exit 0", want: ""},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(dir, name)
			if err := os.WriteFile(path, []byte(c.queue), 0o600); err != nil {
				t.Fatal(err)
			}
			controller := &cli{tools: commands(t, map[string]string{"squeue": printing(t, path), "sacct": c.sacct})}
			got, err := controller.find(t.Context(), testName, uid())
			if err != nil || got != c.want {
				t.Errorf("%q, %v; want %q", got, err, c.want)
			}
		})
	}
	controller := &cli{tools: commands(t, map[string]string{"squeue": saying("slurm_load_jobs error: Unable to contact slurm controller", "1")})}
	if id, err := controller.find(t.Context(), testName, uid()); id != "" || !errors.Is(err, deploy.ErrUnavailable) {
		t.Errorf("%q, %v; want that nobody could be asked", id, err)
	}
}

// The run of somebody else is taken over: what that user submitted is looked for too.
func TestFindWhatAnotherUserSubmitted(t *testing.T) {
	a := testAttempt(t.TempDir())
	launch := filepath.Join(a.Dir, rundir.LaunchFile)
	if err := os.WriteFile(launch, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(launch, 12345, -1); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skipf("another user's file cannot be made: %v", err)
	}
	queue := `case "$*" in *--user=12345*) echo "12|RUNNING|0|0|17|12345|n1|` + testName + `|None";; esac`
	ref, found, err := schedulerOf(commands(t, map[string]string{"squeue": queue, "sacct": "exit 0"})).Find(t.Context(), a)
	if err != nil || !found || ref.ID != "12" || ref.User != "12345" {
		t.Errorf("%+v, found %t, %v", ref, found, err)
	}
	nobody := `case "$*" in *--user=12345*) echo "squeue: error: Invalid user: 12345" >&2;; esac`
	synctest.Test(t, func(t *testing.T) {
		_, found, err = schedulerOf(commands(t, map[string]string{"squeue": nobody, "sacct": "exit 0"})).Find(t.Context(), a)
	})
	if err != nil || found {
		t.Errorf("a user without a name: found %t, %v", found, err)
	}
}

func TestCancel(t *testing.T) {
	for name, c := range map[string]struct{ scancel, words string }{
		"done":    {scancel: "exit 0"},
		"unknown": {scancel: saying("scancel: error: Kill job error on job id 4711: Invalid job id specified", "1")},
		"ended":   {scancel: saying("scancel: error: Kill job error on job id 4711: Job/step already completing or completed", "1")},
		"denied":  {scancel: saying("scancel: error: Kill job error on job id 4711: Access/permission denied", "1"), words: "Access/permission denied"},
	} {
		t.Run(name, func(t *testing.T) {
			tools := commands(t, map[string]string{"scancel": c.scancel})
			err := schedulerOf(tools).Cancel(t.Context(), testRef())
			if (c.words == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.words) {
				t.Errorf("error %v, want %q", err, c.words)
			}
			if diff := cmp.Diff([]string{"scancel --name=" + testName + " 4711"}, called(t, tools)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
