package rank

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"assay/pkg/evidence"
	"assay/pkg/plan"
)

// rootCase is a wrapper that is about to wait for the root.
func rootCase(t *testing.T, rank int, addr string, wait time.Duration, resolve Resolver) *wrapper {
	t.Helper()
	own, err := os.Create(filepath.Join(t.TempDir(), "assay.log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = own.Close() })
	return &wrapper{
		rank: rank, own: own, attempt: plan.Attempt{Job: plan.Job{WorldSize: 2}},
		options: Options{MasterAddr: addr, RootWait: wait, Resolve: resolve, Stderr: own, Signals: make(chan os.Signal, 1)},
	}
}

func TestRootWait(t *testing.T) {
	nobody := errors.New("lookup x-0.x: no such host")
	for name, tt := range map[string]struct {
		rank     int
		addr     string
		after    time.Duration // until the name resolves; 0: never
		wait     time.Duration
		asked    bool
		ok       bool
		message  string
		atLatest time.Duration
	}{
		"resolves late":   {1, "x-0.x", 20 * time.Second, 300 * time.Second, true, true, "", 21 * time.Second},
		"never":           {1, "x-0.x", 0, 300 * time.Second, true, false, "rank 0's name x-0.x did not resolve within 300 s (last answer: lookup x-0.x: no such host); its pod may not have started, or has ended already", 300 * time.Second},
		"rank 0":          {0, "x-0.x", 0, 300 * time.Second, false, true, "", 0},
		"no wait":         {1, "x-0.x", 0, 0, false, true, "", 0},
		"an address":      {1, "10.1.2.3", 0, 300 * time.Second, false, true, "", 0},
		"an IPv6 address": {1, "fe80::1%eth0", 0, 300 * time.Second, false, true, "", 0},
		"this host":       {1, "localhost", 0, 300 * time.Second, false, true, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began, asked := time.Now(), 0
				w := rootCase(t, tt.rank, tt.addr, tt.wait, func(context.Context, string) ([]string, error) {
					asked++
					if tt.after > 0 && time.Since(began) >= tt.after {
						return []string{"10.1.2.3"}, nil
					}
					return nil, nobody
				})
				ok := w.awaitRoot(t.Context())
				if ok != tt.ok || w.end.Message != tt.message || (asked > 0) != tt.asked || time.Since(began) > tt.atLatest {
					t.Errorf("%v, %q, asked %d times in %v; want %v, %q", ok, w.end.Message, asked, time.Since(began), tt.ok, tt.message)
				}
				if !tt.ok && (w.end.Outcome != evidence.OutcomeRefused || w.end.Code != "LAUNCH_REFUSED" || w.end.ExitCode != 6) {
					t.Errorf("end %+v", w.end)
				}
				if limit := int(tt.atLatest/time.Second) + 5; asked > limit {
					t.Errorf("asked %d times, want at most %d", asked, limit)
				}
			})
		})
	}
}

// Ranks that nothing says meet each other start although the name of rank 0 is gone:
// it may be done already.
func TestRanksThatStandAloneStartWithoutTheRoot(t *testing.T) {
	for name, tt := range map[string]struct {
		launcher, scope string
		starts          bool
	}{
		"alone": {"none", "job", true}, "a pair": {"none", "pair", false}, "a group": {"none", "group", false}, "torchrun": {"torchrun", "job", false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := rootCase(t, 1, "x-0.x", 60*time.Second, func(context.Context, string) ([]string, error) { return nil, errors.New("no such host") })
				w.attempt.Job.Launcher, w.attempt.Job.Scope = tt.launcher, tt.scope
				if started := w.awaitRoot(t.Context()); started != tt.starts {
					t.Errorf("started: %v", started)
				}
				if !strings.Contains(w.end.Message, "did not resolve within 60 s") {
					t.Errorf("it says %q", w.end.Message)
				}
			})
		})
	}
}

// Neither a server that does not answer nor one that has nothing to say ends the wait.
func TestRootWaitOutlastsSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		w := rootCase(t, 1, "x-0.x", 100*time.Second, func(ctx context.Context, _ string) ([]string, error) {
			switch asked++; asked {
			case 1:
				<-ctx.Done()
				return nil, ctx.Err()
			case 2:
				return nil, nil
			}
			return []string{"10.1.2.3"}, nil
		})
		if !w.awaitRoot(t.Context()) || asked != 3 {
			t.Errorf("asked %d times; %+v", asked, w.end)
		}
	})
}

func TestRootWaitIsInterrupted(t *testing.T) {
	for name, interrupt := range map[string]func(signals chan os.Signal, cancel func()){
		"a signal":               func(s chan os.Signal, _ func()) { s <- syscall.SIGTERM },
		"the end of the context": func(_ chan os.Signal, cancel func()) { cancel() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				w := rootCase(t, 1, "x-0.x", 300*time.Second, func(context.Context, string) ([]string, error) {
					return nil, errors.New("no such host")
				})
				signals := make(chan os.Signal, 1)
				w.options.Signals = signals
				began := time.Now()
				time.AfterFunc(5*time.Second, func() { interrupt(signals, cancel) })
				if w.awaitRoot(ctx) || time.Since(began) != 5*time.Second {
					t.Errorf("went on, or late: %v", time.Since(began))
				}
				if w.end.Outcome != evidence.OutcomeStopped || w.end.ExitCode != 143 || !strings.Contains(w.end.Message, "before the workload started") {
					t.Errorf("end %+v", w.end)
				}
			})
		})
	}
}
