package k8s

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"assay/deploy"
	"assay/pkg/durable"
	"assay/pkg/evidence"
	"assay/pkg/metric"
	"assay/pkg/plan"
	"assay/pkg/pod"
	"assay/pkg/rundir"
)

// fetching is a followed job of one rank.
type fetching struct {
	*apiServer
	target  *Target
	attempt plan.Attempt
	job     *batchv1.Job

	mu   sync.Mutex
	logs map[string]logAnswer // by pod
	asks map[string]int
}

// logAnswer answers a request for a log, of which it is the nth.
type logAnswer func(nth int, w http.ResponseWriter, r *http.Request)

func newFetching(t *testing.T) *fetching {
	t.Helper()
	f := &fetching{apiServer: newAPIServer(t), target: newTarget(t), job: jobNamed("a"), logs: map[string]logAnswer{}, asks: map[string]int{}}
	f.attempt = plan.Attempt{
		Version: plan.AttemptVersion, RunID: "run", Nonce: "n", ManifestDigest: "sha256:0", Number: 1, Dir: t.TempDir(),
		Job: plan.Job{ID: "bench", WorldSize: 1, MarkerGraceSeconds: 1, K8s: &plan.K8s{Kubeconfig: f.config, Namespace: apiNamespace}},
	}
	if err := rundir.MakeRanksDir(f.attempt.Dir); err != nil {
		t.Fatal(err)
	}
	f.put(f.job)
	f.answers(func(w http.ResponseWriter, r *http.Request) bool {
		name, isLog := strings.CutSuffix(r.URL.Path, "/log")
		if !isLog {
			return false
		}
		name = filepath.Base(name)
		f.mu.Lock()
		f.asks[name]++
		nth, answer := f.asks[name], f.logs[name]
		f.mu.Unlock()
		if answer == nil {
			sayNo(w, http.StatusNotFound, metav1.StatusReasonNotFound, fmt.Sprintf("pods %q not found", name), &metav1.StatusDetails{Name: name, Kind: "pods"})
			return true
		}
		answer(nth, w, r)
		return true
	})
	return f
}

func (f *fetching) handle() deploy.Handle {
	f.t.Helper()
	r := f.refOf(f.job, 1)
	r.Unwrapped, r.Grace = f.attempt.Job.K8s.Unwrapped, f.attempt.Job.MarkerGraceSeconds
	h, err := r.handle()
	if err != nil {
		f.t.Fatal(err)
	}
	return h
}

// finish ends the job, and waits until all is there that can be had.
func (f *fetching) finish() evidence.Observation {
	f.t.Helper()
	f.put(with(f.job, batchv1.JobFailed))
	var last evidence.Observation
	until(f.t, f.target, []deploy.Handle{f.handle()}, "the end", func(seen []evidence.Observation, err error) bool {
		if err == nil {
			last = seen[0]
		}
		return err == nil && seen[0].Phase == evidence.PhaseEnded
	})
	return last
}

// end reads the end marker of the rank; nil when there is none.
func (f *fetching) end() *evidence.End {
	f.t.Helper()
	var end evidence.End
	data, err := os.ReadFile(f.path(rundir.EndFile))
	if os.IsNotExist(err) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(data, &end)
	}
	if err != nil || end.Identity != f.attempt.Identity(0) {
		f.t.Fatalf("end marker %s: %v", data, err)
	}
	return &end
}

func (f *fetching) path(name string) string {
	return filepath.Join(rundir.RankDir(f.attempt.Dir, 0), name)
}

func (f *fetching) has(name, content string) {
	f.t.Helper()
	if data, err := os.ReadFile(f.path(name)); err != nil || string(data) != content {
		f.t.Errorf("%s has %.200q, %v\nwant %.200q", name, data, err, content)
	}
}

func (f *fetching) endOf(code int) evidence.End {
	return evidence.End{Version: evidence.MarkerVersion, Identity: f.attempt.Identity(0), Host: "h", Outcome: evidence.OutcomeExited, ExitCode: code}
}

// logOf is the log of a rank that says words and ends.
func (f *fetching) logOf(said string, code int) string {
	f.t.Helper()
	var raw bytes.Buffer
	c := pod.NewConsole(&raw)
	id := f.attempt.Identity(0)
	s := pod.NewSender(c, id, fmt.Sprintf("process%d", code))
	if err := s.Begin(evidence.Begin{Version: evidence.MarkerVersion, Identity: id, Host: "h", StartedAt: time.Unix(1000, 0).UTC()}); err != nil {
		f.t.Fatal(err)
	}
	if _, err := c.Write([]byte(said)); err != nil {
		f.t.Fatal(err)
	}
	end, err := json.Marshal(f.endOf(code))
	if err != nil {
		f.t.Fatal(err)
	}
	var files []pod.File
	for name, text := range map[string]string{rundir.EndFile: string(end), rundir.StdoutFile: said, rundir.ResultsDir + "/r.csv": "model,performance\n"} {
		files = append(files, pod.File{Name: name, Size: int64(len(text)), Data: strings.NewReader(text)})
	}
	if err := s.Archive(files, nil); err != nil {
		f.t.Fatal(err)
	}
	return stampLines(raw.String())
}

// stampLines gives lines their times, as a kubelet does.
func stampLines(raw string) string {
	var b strings.Builder
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for line := range strings.Lines(raw) {
		at = at.Add(300 * time.Millisecond)
		b.WriteString(at.Format(time.RFC3339Nano) + " " + line)
	}
	return b.String()
}

// since is what a connection gives: whole seconds count.
func since(r *http.Request, log string) string {
	from, err := time.Parse(time.RFC3339, r.URL.Query().Get("sinceTime"))
	if err != nil {
		return log
	}
	var b strings.Builder
	for line := range strings.Lines(log) {
		stamp, _, _ := strings.Cut(line, " ")
		if at, _ := time.Parse(time.RFC3339Nano, stamp); !at.Before(from.Truncate(time.Second)) {
			b.WriteString(line)
		}
	}
	return b.String()
}

// whole answers with a log.
func whole(log string) logAnswer {
	return func(_ int, w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte(since(r, log))) }
}

// cutAt answers with the first bytes of a log, and breaks off.
func cutAt(w http.ResponseWriter, r *http.Request, log string, n int) {
	rest := since(r, log)
	_, _ = w.Write([]byte(rest[:min(n, len(rest))]))
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

// withMessage is a pod with a termination message.
func withMessage(p *corev1.Pod, m []byte) *corev1.Pod {
	p.Status.ContainerStatuses[0].State.Terminated.Message = string(m)
	return p
}

const said = "one\ntwo\nperformance: 12.5 GBs\nlast without its end"

// However the log comes, what the rank left is there.
func TestFetchLog(t *testing.T) {
	for name, answer := range map[string]func(log string) logAnswer{
		"complete": whole,
		"cut off in the middle": func(log string) logAnswer {
			return func(nth int, w http.ResponseWriter, r *http.Request) {
				if nth < 4 {
					cutAt(w, r, log, 150*nth)
				}
				whole(log)(nth, w, r)
			}
		},
		"500 for a while": func(log string) logAnswer {
			return func(nth int, w http.ResponseWriter, r *http.Request) {
				if nth < 4 {
					sayNo(w, http.StatusInternalServerError, metav1.StatusReasonInternalError, `Get "https://node1:10250/containerLogs/x": dial tcp: connection refused`, nil)
					return
				}
				whole(log)(nth, w, r)
			}
		},
		"words of the kubelet for a while": func(log string) logAnswer {
			return func(nth int, w http.ResponseWriter, r *http.Request) {
				if nth < 3 {
					_, _ = w.Write([]byte("unable to retrieve container logs for containerd://0123"))
					return
				}
				whole(log)(nth, w, r)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFetching(t)
			p := podOf(f.job, 0)
			f.logs[p.Name] = answer(f.logOf(said, 3))
			f.put(p)
			f.target.Follow(t.Context(), f.attempt, f.handle())
			f.put(endedPod(p, 3))
			if o := f.finish(); len(o.Ranks) > 0 {
				t.Errorf("ranks %v", o.Ranks)
			}
			end := f.end()
			if end == nil || end.ExitCode != 3 || end.Lost != "" || end.Message != "" || end.By != "" {
				t.Fatalf("end %+v", end)
			}
			f.has(rundir.StdoutFile, said)
			f.has(rundir.ResultsDir+"/r.csv", "model,performance\n")
		})
	}
}

// Without a log the termination message counts, if it is of this rank and run; and
// without that, that the rank began.
func TestFetchWithoutLog(t *testing.T) {
	for name, tt := range map[string]struct {
		nonce   string // of the message
		deleted bool
		want    string // in what the end marker says; empty: there is none
	}{
		"message":                {nonce: "n", want: "only its termination message could be had"},
		"message, pod deleted":   {nonce: "n", deleted: true, want: "only its termination message could be had"},
		"message of another run": {nonce: "m"},
		"nothing":                {},
		"nothing, pod deleted":   {deleted: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFetching(t)
			p := podOf(f.job, 0)
			f.put(p)
			f.target.Follow(t.Context(), f.attempt, f.handle())
			until(t, f.target, []deploy.Handle{f.handle()}, "running", saying("Running"))
			ended := endedPod(p, 3)
			if tt.nonce != "" {
				end := f.endOf(3)
				end.Nonce = tt.nonce
				m := evidence.Metrics{Version: evidence.MarkerVersion, Readings: []metric.Reading{{Name: "xGBs", Value: 1, Source: metric.SourceKeyValue}}}
				ended = withMessage(ended, pod.EncodeMessage(end, m))
			}
			f.put(ended)
			if tt.deleted {
				f.drop(ended)
			}
			f.finish()
			end := f.end()
			_, metricsErr := os.Stat(f.path(rundir.MetricsFile))
			switch {
			case tt.want == "":
				if end != nil || metricsErr == nil {
					t.Errorf("end %+v, metrics.json %v", end, metricsErr)
				}
				if _, err := os.Stat(f.path(rundir.BeginFile)); err != nil {
					t.Errorf("that the rank began: %v", err)
				}
			case end == nil || end.ExitCode != 3 || !strings.Contains(end.Message+end.Lost, tt.want) || metricsErr != nil:
				t.Errorf("end %+v, metrics.json %v", end, metricsErr)
			}
		})
	}
}

// Who begins to follow a job that is over has what it left too.
func TestFollowAfterEnd(t *testing.T) {
	f := newFetching(t)
	p := podOf(f.job, 0)
	f.logs[p.Name] = whole(f.logOf(said, 3))
	f.put(endedPod(p, 3))
	f.finish()
	if end := f.end(); end != nil {
		t.Fatalf("fetched for nobody: %+v", end)
	}
	f.target.Follow(t.Context(), f.attempt, f.handle())
	f.finish()
	if end := f.end(); end == nil || end.ExitCode != 3 {
		t.Errorf("end %+v", end)
	}
	if n := f.open(); n > 0 {
		t.Errorf("%d watches", n)
	}
}

// What a rank wrote where this process sees it is left as it is.
func TestFetchShared(t *testing.T) {
	f := newFetching(t)
	p := podOf(f.job, 0)
	f.put(p)
	dir, err := rundir.MakeRankDir(f.attempt.Dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := durable.WriteJSON(filepath.Join(dir, rundir.EndFile), f.endOf(0), 0o600); err != nil {
		t.Fatal(err)
	}
	other := f.endOf(5)
	f.target.Follow(t.Context(), f.attempt, f.handle())
	f.put(withMessage(endedPod(p, 5), pod.EncodeMessage(other, evidence.Metrics{})))
	f.finish()
	if end := f.end(); end == nil || end.ExitCode != 0 || end.Message != "" {
		t.Errorf("end %+v", end)
	}
}

// retried are the two pods of a rank that failed once.
func (f *fetching) retried() (first, second *corev1.Pod) {
	first, second = podOf(f.job, 0), podOf(f.job, 0)
	second.Name, second.UID = "a-0-again", "uid-again"
	second.Annotations[batchv1.JobIndexFailureCountAnnotation] = "1"
	return first, second
}

// What an earlier start left moves out of the way of the next.
func TestFetchRetried(t *testing.T) {
	f := newFetching(t)
	first, second := f.retried()
	f.logs[first.Name], f.logs[second.Name] = whole(f.logOf("first\n", 3)), whole(f.logOf("second\n", 0))
	f.put(endedPod(first, 3))
	f.put(endedPod(second, 0))
	f.target.Follow(t.Context(), f.attempt, f.handle())
	o := f.finish()
	if end := f.end(); end == nil || end.ExitCode != 0 || len(o.Earlier) != 1 || o.Earlier[0].Word != "exit code 3" {
		t.Errorf("end %+v, earlier %+v", end, o.Earlier)
	}
	f.has(rundir.StdoutFile, "second\n")
	data, err := os.ReadFile(filepath.Join(f.attempt.Dir, "earlier", "rank-0-start-1", rundir.StdoutFile))
	if err != nil || string(data) != "first\n" {
		t.Errorf("the first start left %q, %v", data, err)
	}
}

// A process that takes over does not mix what two starts of a rank left: the second
// left nothing here.
func TestFetchRetriedByAnother(t *testing.T) {
	for name, known := range map[string]bool{"both pods are there": true, "the first is not there any more": false} {
		t.Run(name, func(t *testing.T) {
			f := newFetching(t)
			first, second := f.retried()
			f.logs[first.Name] = whole(f.logOf("first\n", 3))
			f.put(endedPod(first, 3))
			ctx, cancel := context.WithCancel(t.Context())
			f.target.Follow(ctx, f.attempt, f.handle())
			until(t, f.target, []deploy.Handle{f.handle()}, "the first", func([]evidence.Observation, error) bool { return f.end() != nil })
			f.put(second)
			until(t, f.target, []deploy.Handle{f.handle()}, "the second", func([]evidence.Observation, error) bool { return f.end() == nil })
			cancel() // the process ends
			if !known {
				f.drop(endedPod(first, 3))
			}
			f.target = newTarget(t)
			f.target.Follow(t.Context(), f.attempt, f.handle())
			f.put(endedPod(second, 137))
			f.finish()
			if end := f.end(); end != nil {
				t.Errorf("the second start has the end of the first: %+v", end)
			}
		})
	}
}

// The first process is killed after it fetched from the first pod, and that is gone
// when the next looks.
func TestFetchRetriedUnseen(t *testing.T) {
	f := newFetching(t)
	_, second := f.retried()
	dir, err := rundir.MakeRankDir(f.attempt.Dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := durable.WriteJSON(filepath.Join(dir, rundir.EndFile), f.endOf(3), 0o600); err != nil {
		t.Fatal(err)
	}
	f.put(endedPod(second, 137))
	f.target.Follow(t.Context(), f.attempt, f.handle())
	f.finish()
	if end := f.end(); end != nil {
		t.Errorf("the second start has the end of the first: %+v", end)
	}
}

// Who follows next goes on where the one before ended, whenever that was.
func TestFollowAgain(t *testing.T) {
	for i := range 12 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			f := newFetching(t)
			p := podOf(f.job, 0)
			log := f.logOf(said, 3)
			var asked atomic.Bool
			f.logs[p.Name] = func(nth int, w http.ResponseWriter, r *http.Request) {
				if nth == 1 && i%3 == 0 {
					_, _ = w.Write([]byte(log[:200]))
					_ = http.NewResponseController(w).Flush()
					asked.Store(true)
					<-r.Context().Done()
					return
				}
				whole(log)(nth, w, r)
				asked.Store(true)
			}
			f.put(p)
			ctx, cancel := context.WithCancel(t.Context())
			f.target.Follow(ctx, f.attempt, f.handle())
			f.put(endedPod(p, 3))
			until(t, f.target, []deploy.Handle{f.handle()}, "asked", func([]evidence.Observation, error) bool {
				time.Sleep(time.Millisecond)
				f.target.notify()
				return asked.Load()
			})
			time.Sleep(time.Duration(i) * 500 * time.Microsecond)
			cancel()
			f.target.Follow(t.Context(), f.attempt, f.handle())
			f.finish()
			if end := f.end(); end == nil || end.ExitCode != 3 || end.Lost != "" {
				t.Errorf("end %+v", end)
			}
			f.has(rundir.StdoutFile, said)
		})
	}
}

// A rank that runs without the wrapper is known by what Kubernetes says of it, and by
// what it prints.
func TestFetchUnwrapped(t *testing.T) {
	broken := func(edit func(*corev1.ContainerStateTerminated)) func(*corev1.Pod) {
		return func(p *corev1.Pod) { edit(p.Status.ContainerStatuses[0].State.Terminated) }
	}
	for name, tt := range map[string]struct {
		log     logAnswer
		code    int32
		edit    func(*corev1.Pod)
		want    evidence.Outcome // unknown: no end marker
		lost    string
		metrics bool
	}{
		"passes":  {log: whole(stampLines("performance: 12.5 GBs\n")), want: evidence.OutcomeExited, metrics: true},
		"fails":   {log: whole(stampLines("oh\n")), code: 3, want: evidence.OutcomeExited},
		"killed":  {log: whole(stampLines("oh\n")), code: 137, want: evidence.OutcomeSignaled},
		"no log":  {want: evidence.OutcomeExited, lost: "not found"},
		"kubelet": {log: whole("unable to retrieve container logs for containerd://0123\n"), want: evidence.OutcomeExited, lost: "unable to retrieve container logs"},
		"deadline": {log: whole(""), code: 137, want: evidence.OutcomeTimedOut, edit: func(p *corev1.Pod) {
			p.Status.Reason = "DeadlineExceeded"
		}},
		"not there": {code: 128, want: evidence.OutcomeRefused, edit: broken(func(s *corev1.ContainerStateTerminated) {
			s.Reason, s.Message, s.StartedAt = "StartError", "no such file", metav1.Unix(0, 0)
		})},
		"made up": {log: whole(stampLines("performance: 12.5 GBs\n")), code: 137, edit: broken(func(s *corev1.ContainerStateTerminated) {
			s.Reason, s.StartedAt, s.FinishedAt = "ContainerStatusUnknown", metav1.Time{}, metav1.Time{}
		})},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFetching(t)
			f.attempt.Job.K8s.Unwrapped = true
			p := podOf(f.job, 0)
			if tt.log != nil {
				f.logs[p.Name] = tt.log
			}
			ended := endedPod(p, tt.code)
			if tt.edit != nil {
				tt.edit(ended)
			}
			if tt.want != evidence.OutcomeRefused {
				f.put(p)
			}
			f.target.Follow(t.Context(), f.attempt, f.handle())
			if tt.want != evidence.OutcomeRefused {
				until(t, f.target, []deploy.Handle{f.handle()}, "running", saying("Running"))
			}
			f.put(ended)
			f.finish()
			end := f.end()
			if tt.want == evidence.OutcomeUnknown {
				if end != nil {
					t.Errorf("end %+v", end)
				}
				return
			}
			if end == nil || end.Outcome != tt.want || end.Metrics != tt.metrics || !strings.Contains(end.Lost, tt.lost) || (end.Lost == "") != (tt.lost == "") || end.By != Name {
				t.Errorf("end %+v", end)
			}
		})
	}
}
