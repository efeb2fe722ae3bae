package run

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"assay/deploy"
	"assay/pkg/exitcode"
	"assay/pkg/plan"
	"assay/pkg/rundir"
)

// claimant makes a run of one job on nodes below a directory.
func claimant(ctx context.Context, t *testing.T, runs, id string, nodes ...string) (*rundir.Run, error) {
	t.Helper()
	p := &Prepared{Input: Input{ManifestPath: "m.json", Manifest: []byte(`{}`), Nodes: nodes}, Jobs: []plan.Job{jobOf("x", nil)}}
	return p.Create(ctx, Settings{Runs: runs, Concurrency: 1, RunID: id, Now: time.Unix(0, 0)}, &played{t: t})
}

// mustClaim is claimant that succeeds.
func mustClaim(t *testing.T, runs, id string, nodes ...string) *rundir.Run {
	t.Helper()
	r, err := claimant(t.Context(), t, runs, id, nodes...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// runsOut takes a run to its end.
func runsOut(t *testing.T, r *rundir.Run) {
	t.Helper()
	playOut(t, &played{t: t}, r)
}

func claimFile(runs, id string) string { return filepath.Join(runs, ".claims", id+".json") }

// What keeps the nodes of run one from run two.
func TestActiveClaims(t *testing.T) {
	for _, tt := range []struct {
		name   string
		happen func(t *testing.T, runs string, one *rundir.Run) (seen string) // where the runs are then
		want   string                                                         // in the refusal; empty: there is none
	}{
		{"it has not ended", nil, "run one uses a; wait for it (if its process has ended: assay attach one), end it with: assay cancel one,"},
		{"it has ended", func(t *testing.T, runs string, one *rundir.Run) string {
			runsOut(t, one)
			return runs
		}, ""},
		{"it has ended, and could not give the nodes free", func(t *testing.T, runs string, one *rundir.Run) string {
			data, err := os.ReadFile(claimFile(runs, "one"))
			if err != nil {
				t.Fatal(err)
			}
			runsOut(t, one)
			if err := os.WriteFile(claimFile(runs, "one"), data, 0o600); err != nil {
				t.Fatal(err)
			}
			return runs
		}, ""},
		{"it has ended, and is being resumed", func(t *testing.T, runs string, one *rundir.Run) string {
			runsOut(t, one)
			unlock, err := one.Lock()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(unlock)
			claims, _, err := reclaim(t.Context(), one, false)
			if err != nil {
				t.Fatal(err)
			}
			claims.Release()
			return runs
		}, "run one uses a;"},
		{"the runs have another path", func(t *testing.T, runs string, _ *rundir.Run) string {
			other := filepath.Join(t.TempDir(), "elsewhere")
			if err := os.Rename(runs, other); err != nil {
				t.Fatal(err)
			}
			return other
		}, "run one uses a;"},
		{"it was removed", func(t *testing.T, runs string, one *rundir.Run) string {
			if err := os.RemoveAll(one.Dir); err != nil {
				t.Fatal(err)
			}
			return runs
		}, ""},
		{"its process was killed before the ledger was there", func(t *testing.T, runs string, one *rundir.Run) string {
			if err := os.Remove(filepath.Join(one.Dir, rundir.LedgerFile)); err != nil {
				t.Fatal(err)
			}
			return runs
		}, ""},
		{"its ledger is of another version", func(t *testing.T, runs string, one *rundir.Run) string {
			if err := os.WriteFile(filepath.Join(one.Dir, rundir.LedgerFile), []byte(`{"version": 99}`), 0o600); err != nil {
				t.Fatal(err)
			}
			return runs
		}, "run one uses a (whether it has ended cannot be seen: "},
		{"its evidence cannot be read", func(t *testing.T, runs string, one *rundir.Run) string {
			if err := os.WriteFile(filepath.Join(one.AttemptDir("x", 1), rundir.JobFile), []byte("{"), 0o600); err != nil {
				t.Fatal(err)
			}
			return runs
		}, "run one uses a (whether it has ended cannot be seen: "},
		{"its claim cannot be read", func(t *testing.T, runs string, _ *rundir.Run) string {
			if err := os.WriteFile(claimFile(runs, "one"), []byte("{"), 0o600); err != nil {
				t.Fatal(err)
			}
			return runs
		}, "run one may use any node (its claim cannot be read: "},
	} {
		t.Run(strings.ReplaceAll(tt.name, " ", "-"), func(t *testing.T) {
			runs := filepath.Join(t.TempDir(), "runs")
			one := mustClaim(t, runs, "one", "a", "b")
			if tt.happen != nil {
				runs = tt.happen(t, runs, one)
			}
			_, err := claimant(t.Context(), t, runs, "two", "a")
			switch {
			case tt.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tt.want != "" && (exitcode.Of(err) != exitcode.Invalid || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("%v, want a refusal with %q", err, tt.want)
			case tt.want != "":
				if _, err := os.Lstat(filepath.Join(runs, "two")); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("the run that was refused is there: %v", err)
				}
			}
		})
	}
}

// Only runs that use the nodes are looked at, and the refusal names them.
func TestClaimsThatDoNotOverlap(t *testing.T) {
	runs := t.TempDir()
	other := mustClaim(t, runs, "aaa", "z")
	if err := os.WriteFile(filepath.Join(other.Dir, rundir.LedgerFile), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	mustClaim(t, runs, "bbb", "a")
	_, err := claimant(t.Context(), t, runs, "ccc", "a", "b")
	if err == nil || strings.Contains(err.Error(), "aaa") || !strings.Contains(err.Error(), "assay cancel bbb") {
		t.Errorf("the refusal: %v", err)
	}
	mustClaim(t, runs, "ddd", "c")
}

// looker is a target that looks around while a job is rendered.
type looker struct {
	*played
	look func()
}

func (l *looker) Render(a plan.Attempt) ([]deploy.File, error) {
	l.look()
	return l.played.Render(a)
}

// Nobody can claim nodes until the attempts are there that make a resumed run active.
func TestResumeHoldsTheClaims(t *testing.T) {
	runs := t.TempDir()
	one := mustClaim(t, runs, "one", "a")
	playOut(t, &played{t: t, exits: map[string][]int{"x": {3}}}, one)
	looks := 0
	target := &looker{&played{t: t}, func() {
		looks++
		if _, err := rundir.HoldClaims(t.Context(), runs, 0); !errors.Is(err, rundir.ErrClaimsHeld) {
			t.Errorf("another process looks at the claims: %v", err)
		}
	}}
	if n, err := Resume(t.Context(), one, target, false); n != 1 || looks != 1 || err != nil {
		t.Errorf("%d jobs, rendered %d times: %v", n, looks, err)
	}
}

// A run is claimed for in the directory that it is in, by whatever name it was opened.
func TestResumeThroughALink(t *testing.T) {
	runs, elsewhere := t.TempDir(), t.TempDir()
	one := mustClaim(t, runs, "one", "a")
	runsOut(t, one)
	mustClaim(t, runs, "two", "a")
	link := filepath.Join(elsewhere, "mine")
	if err := os.Symlink(one.Dir, link); err != nil {
		t.Fatal(err)
	}
	linked, err := rundir.Open(link)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Resume(t.Context(), linked, &played{t: t}, false); err == nil || !strings.Contains(err.Error(), "run two uses a") {
		t.Errorf("resumed: %v", err)
	}
	if err := Unclaim(linked); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(filepath.Join(elsewhere, ".claims")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("claims beside the link: %v", err)
	}
}

// A run that was moved to an archive leaves nothing there when it is judged again.
func TestFinishOfAnArchivedRun(t *testing.T) {
	runs, archive := t.TempDir(), t.TempDir()
	one := mustClaim(t, runs, "one", "a")
	runsOut(t, one)
	moved := filepath.Join(archive, "one")
	if err := os.Rename(one.Dir, moved); err != nil {
		t.Fatal(err)
	}
	r, err := rundir.Open(moved)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Finish(r, func(s string) { t.Errorf("it says %q", s) }); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(filepath.Join(archive, ".claims")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("claims in the archive: %v", err)
	}
}

// Of two runs with the same id one is made, and has its claim.
func TestTwoRunsWithOneID(t *testing.T) {
	runs := t.TempDir()
	errs := make(chan error, 2)
	for range 2 {
		go func() {
			_, err := claimant(t.Context(), t, runs, "same", "a")
			errs <- err
		}()
	}
	if a, b := <-errs, <-errs; (a == nil) == (b == nil) {
		t.Errorf("%v, %v", a, b)
	}
	if _, err := os.Stat(claimFile(runs, "same")); err != nil {
		t.Error(err)
	}
}

// Who holds the claims keeps nobody from ending, and others not for ever from beginning.
func TestClaimsThatAreHeld(t *testing.T) {
	runs := t.TempDir()
	one := mustClaim(t, runs, "one", "a")
	held, err := HoldClaims(t.Context(), runs)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Release()
	runsOut(t, one)
	if _, err := os.Stat(claimFile(runs, "one")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the claim of what has ended: %v", err)
	}
	synctest.Test(t, func(t *testing.T) {
		_, err := claimant(t.Context(), t, runs, "two", "a")
		if exitcode.Of(err) != exitcode.Error || !strings.Contains(err.Error(), filepath.Join(runs, ".claims", "lock")+": another assay process holds it for 1m0s already") {
			t.Errorf("it waited in vain, and says: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		before := time.Now()
		if _, err := claimant(ctx, t, runs, "three", "a"); !errors.Is(err, context.Canceled) || time.Since(before) > time.Second {
			t.Errorf("it was interrupted, and says after %v: %v", time.Since(before), err)
		}
	})
	for _, id := range []string{"two", "three"} {
		if _, err := os.Lstat(filepath.Join(runs, id)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("run %s is there: %v", id, err)
		}
	}
}

// asOther runs f as another user and group of this machine.
func asOther(t *testing.T, f func()) {
	t.Helper()
	if os.Getuid() != 0 {
		if os.Getenv("CI") == "true" {
			t.Fatal("only root can act as another user")
		}
		t.Skip("only root can act as another user")
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked, so that the thread ends with its user
		unix.SetfsgidRetGid(65534)
		unix.SetfsuidRetUid(65534)
		f()
	}()
	<-done
}

// A directory of runs that users share serves all of them.
func TestClaimsOfSeveralUsers(t *testing.T) {
	top := t.TempDir()
	for dir := top; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	runs := filepath.Join(top, "runs")
	if err := errors.Join(os.Mkdir(runs, 0o755), os.Chmod(runs, 0o777|fs.ModeSetgid)); err != nil {
		t.Fatal(err)
	}
	mustClaim(t, runs, "one", "a")
	for path, want := range map[string]fs.FileMode{".claims": fs.ModeDir | fs.ModeSetgid | 0o777, ".claims/lock": 0o666, ".claims/one.json": 0o666} {
		if info, err := os.Stat(filepath.Join(runs, path)); err != nil || info.Mode() != want {
			t.Errorf("%s: %v, %v; want %v", path, info.Mode(), err, want)
		}
	}
	asOther(t, func() {
		_, err := claimant(t.Context(), t, runs, "two", "a")
		if exitcode.Of(err) != exitcode.Invalid || !strings.Contains(err.Error(), "run one uses a (whether it has ended cannot be seen: ") {
			t.Errorf("the run of another user: %v", err)
		}
		if _, err := claimant(t.Context(), t, runs, "three", "b"); err != nil {
			t.Errorf("other nodes: %v", err)
		}
	})
	if _, err := claimant(t.Context(), t, runs, "four", "b"); err == nil {
		t.Error("a node that another user claimed was not refused")
	}
}

// A claim lies there as what people, and older versions, can read.
func TestClaimFile(t *testing.T) {
	runs := t.TempDir()
	mustClaim(t, runs, "one", "a", "b")
	data, err := os.ReadFile(claimFile(runs, "one"))
	if err != nil {
		t.Fatal(err)
	}
	if want := "{\n  \"run_id\": \"one\",\n  \"target\": \"played\",\n  \"nodes\": [\n    \"a\",\n    \"b\"\n  ]\n}\n"; string(data) != want {
		t.Errorf("%s", data)
	}
}

// Runs that begin at the same time never share a node.
func TestClaimsAtTheSameTime(t *testing.T) {
	runs := t.TempDir()
	const n = 8
	made := make(chan string, n)
	for i := range n {
		go func() {
			id := fmt.Sprintf("run%d", i)
			if _, err := claimant(t.Context(), t, runs, id, "a", fmt.Sprint("own", i)); err != nil {
				id = ""
			}
			made <- id
		}()
	}
	var ids []string
	for range n {
		ids = append(ids, <-made)
	}
	if won := slices.DeleteFunc(ids, func(id string) bool { return id == "" }); len(won) != 1 {
		t.Errorf("%v have the same node", won)
	}
}
