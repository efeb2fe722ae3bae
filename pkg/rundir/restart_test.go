package rundir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay/deploy"
	"assay/pkg/evidence"
	"assay/pkg/plan"
)

// submittedAttempt writes an attempt directory as the driver does.
func submittedAttempt(t *testing.T, mode fs.FileMode) plan.Attempt {
	t.Helper()
	a := plan.Attempt{
		Version: plan.AttemptVersion, RunID: "r", Nonce: "n", ManifestDigest: "sha256:0", Number: 1, Dir: filepath.Join(t.TempDir(), "jobs", "bench", "1"),
		Job: plan.Job{ID: "bench", WorldSize: 2, Env: map[string]string{"TOKEN": "secret"}},
	}
	data, err := EncodeAttempt(a)
	if err == nil {
		err = os.MkdirAll(a.Dir, 0o700)
	}
	if err == nil {
		err = os.Chmod(a.Dir, mode)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(a.Dir, JobFile), data, mode&0o660)
	}
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestMakeRestart(t *testing.T) {
	for _, mode := range []fs.FileMode{0o700, 0o770 | fs.ModeSetgid} {
		a := submittedAttempt(t, mode)
		got, err := MakeRestart(a, 2)
		if err != nil {
			t.Fatal(err)
		}
		want := a
		want.Number, want.SubmittedAs, want.Dir = 3, 1, filepath.Join(filepath.Dir(a.Dir), "3")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		read, err := ReadAttempt(got.Dir)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, read); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(a, read.Submitted()); diff != "" {
			t.Error(diff)
		}
		if info, err := os.Stat(got.Dir); err != nil || info.Mode()&(fs.ModePerm|fs.ModeSetgid) != mode {
			t.Errorf("the directory is %v, %v; want %v", info.Mode(), err, mode)
		}
		if info, err := os.Stat(filepath.Join(got.Dir, JobFile)); err != nil || info.Mode().Perm() != mode&0o660 {
			t.Errorf("the job file is %v, %v; it has the values of variables", info.Mode(), err)
		}
		entries, err := os.ReadDir(filepath.Dir(a.Dir))
		if err != nil || len(entries) != 2 {
			t.Errorf("%d entries, %v; something was left behind", len(entries), err)
		}
		// A restart of the restart counts from the one that was submitted.
		if again, err := MakeRestart(got, 3); err != nil || again.Number != 4 || again.SubmittedAs != 1 {
			t.Errorf("%+v, %v", again, err)
		}
	}
}

// The node of the scheduler and whoever watches make the same directory, in any
// order and at the same time; what is in it stays.
func TestMakeRestartAtTheSameTime(t *testing.T) {
	a := submittedAttempt(t, 0o700)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			got, err := MakeRestart(a, 1)
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := ReadAttempt(got.Dir); err != nil {
				t.Errorf("it appeared before it was whole: %v", err)
			}
		})
	}
	wg.Wait()
	dir, err := MakeRankDir(a.Restart(1).Dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, EndFile), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := MakeRestart(a, 1); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, EndFile)); err != nil {
		t.Error(err)
	}
	if entries, err := os.ReadDir(filepath.Dir(a.Dir)); err != nil || len(entries) != 2 {
		t.Errorf("%d entries, %v", len(entries), err)
	}
}

func TestMakeRestartOfNothing(t *testing.T) {
	a := submittedAttempt(t, 0o700)
	if got, err := MakeRestart(a, 0); err != nil || got.Dir != a.Dir || got.SubmittedAs != 0 {
		t.Errorf("%+v, %v; the first start is the attempt itself", got, err)
	}
	a.Dir = filepath.Join(t.TempDir(), "none", "1")
	if _, err := MakeRestart(a, 1); err == nil || !strings.Contains(err.Error(), "cannot be seen") {
		t.Errorf("error %v", err)
	}
}

// How the submission went is written beside the attempt that was submitted, and
// is read from any restart of it.
func TestLaunchOfARestart(t *testing.T) {
	a := submittedAttempt(t, 0o700)
	next, err := MakeRestart(a, 1)
	if err != nil {
		t.Fatal(err)
	}
	if l, err := ReadLaunch(next.Dir); err != nil || l.State != evidence.LaunchPlanned {
		t.Errorf("%+v, %v", l, err)
	}
	r := &Run{Dir: filepath.Dir(filepath.Dir(filepath.Dir(a.Dir)))}
	want := LaunchRecord{Launch: evidence.Launch{State: evidence.LaunchSubmitted}, Handle: &deploy.Handle{Target: "slurm", ID: "7"}}
	if err := r.WriteLaunch(a.Dir, want); err != nil {
		t.Fatal(err)
	}
	got, err := ReadLaunch(next.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	// What is known of the restart alone wins.
	refused := want
	refused.Launch = evidence.Launch{State: evidence.LaunchRefused, Detail: "it waited too long"}
	if err := r.WriteLaunch(next.Dir, refused); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadLaunch(next.Dir); err != nil || got.State != evidence.LaunchRefused {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := ReadLaunch(a.Dir); err != nil || got.State != evidence.LaunchSubmitted {
		t.Errorf("%+v, %v", got, err)
	}
}

// A directory that has no job file is not taken for a restart, and not waited for.
func TestRestartOfADamagedAttempt(t *testing.T) {
	dir := t.TempDir()
	a := plan.Attempt{Version: plan.AttemptVersion, Number: 1, Dir: filepath.Join(dir, "1"), Job: plan.Job{ID: "a", WorldSize: 1}}
	for _, d := range []string{a.Dir, filepath.Join(dir, "2", "ranks")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := MakeRestart(a, 1); !errors.Is(err, fs.ErrExist) {
		t.Errorf("%v", err)
	}
}
