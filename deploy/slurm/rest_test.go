package slurm

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay/deploy"
	"assay/pkg/batch"
	"assay/pkg/plan"
)

// secret is a token that must appear nowhere.
const secret = "eyJhbGciOiJIUzI1NiJ9.eyJleHAiOjQxMDI0NDQ4MDB9.c2VjcmV0LXNpZ25hdHVyZQ"

// canned is an answer out of testdata/rest. The zero status is 200.
type canned struct {
	status int
	file   string
}

// fake is a slurmrestd that gives canned answers and keeps what it was asked.
type fake struct {
	*httptest.Server
	mu    sync.Mutex
	asked []question
}

type question struct {
	what   string // "GET /slurm/v0.0.38/jobs"
	query  string
	header http.Header
	body   []byte
}

func newFake(t *testing.T, answers map[string]canned) *fake {
	t.Helper()
	f := &fake{}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		q := question{r.Method + " " + r.URL.Path, r.URL.RawQuery, r.Header, body}
		f.mu.Lock()
		f.asked = append(f.asked, q)
		f.mu.Unlock()
		a, known := answers[q.what]
		if !known {
			a = map[string]canned{
				"GET /openapi/v3":           {0, "openapi.json"},
				"GET /slurm/v0.0.38/ping":   {0, "ping.json"},
				"GET /slurmdb/v0.0.38/jobs": {0, "db-unknown.json"},
			}[q.what]
		}
		if a.file == "" {
			a = canned{http.StatusNotFound, "notfound.txt"}
		}
		data, err := os.ReadFile(filepath.Join("testdata", "rest", a.file))
		if err != nil {
			t.Error(err)
		}
		kind := "text/plain"
		if strings.HasSuffix(a.file, ".json") {
			kind = "application/json"
		}
		w.Header().Set("Content-Type", kind)
		if a.status != 0 {
			w.WriteHeader(a.status)
		}
		_, _ = w.Write(data)
	}))
	t.Cleanup(f.Close)
	return f
}

// of lists the questions of a kind.
func (f *fake) of(what string) []question {
	f.mu.Lock()
	defer f.mu.Unlock()
	var found []question
	for _, q := range f.asked {
		if q.what == what {
			found = append(found, q)
		}
	}
	return found
}

func (f *fake) client() *rest { return clientOf(f.URL) }

func clientOf(url string) *rest {
	return newRest(url, "", []string{"SLURM_JWT=" + secret, "USER=root"}, []variable{{"HOME", "/home/user"}, {"PATH", "/opt/bin:/bin"}})
}

// attempt is a job whose script is written.
func attempt(t *testing.T) plan.Attempt {
	t.Helper()
	a := plan.Attempt{
		RunID: "20260102-150405-a1b2c3", Nonce: "0123456789abcdef0123456789abcdef", Number: 1, Dir: t.TempDir(),
		Job: plan.Job{ID: "pass", NNodes: 2, RanksPerNode: 3, WorldSize: 6, Slurm: &plan.Slurm{Partition: "main", Time: "5", API: "rest"}},
	}
	if err := os.WriteFile(filepath.Join(a.Dir, batch.ScriptFile), []byte("#!/bin/bash\ntrue\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return a
}

func TestRESTSubmit(t *testing.T) {
	f := newFake(t, map[string]canned{"POST /slurm/v0.0.38/job/submit": {0, "submit.json"}})
	a := attempt(t)
	r := f.client()
	for range 2 {
		id, err := r.submit(t.Context(), a)
		if err != nil || id != "25" {
			t.Fatalf("submitted as %q, %v", id, err)
		}
	}
	sent := f.of("POST /slurm/v0.0.38/job/submit")
	if len(sent) != 2 || len(f.of("GET /openapi/v3")) != 1 || len(f.of("GET /slurm/v0.0.38/ping")) != 1 {
		t.Errorf("two submissions asked %d times for the version, pinged %d times and submitted %d times",
			len(f.of("GET /openapi/v3")), len(f.of("GET /slurm/v0.0.38/ping")), len(sent))
	}
	if h := sent[0].header; h.Get("X-SLURM-USER-TOKEN") != secret || h.Get("X-SLURM-USER-NAME") == "" {
		t.Errorf("the headers are %v", h)
	}
	var got struct {
		Script string
		Job    map[string]any
	}
	if err := json.Unmarshal(sent[0].body, &got); err != nil {
		t.Fatal(err)
	}
	comment, _ := got.Job["comment"].(string)
	if got.Script != "#!/bin/bash\ntrue\n" || !strings.HasPrefix(comment, "assay run="+a.RunID+" nonce="+a.Nonce+" job=pass attempt=1 ") {
		t.Errorf("script %q, comment %q", got.Script, comment)
	}
	delete(got.Job, "comment")
	want := map[string]any{
		"name": "assay-0123456789ab-pass-1", "current_working_directory": a.Dir, "standard_output": filepath.Join(a.Dir, batch.OutputFile),
		"open_mode": "append", "nodes": 2.0, "tasks_per_node": 3.0, "tasks": 6.0, "partition": "main", "time_limit": "5",
		"environment": map[string]any{"HOME": "/home/user", "PATH": "/opt/bin:/bin"},
	}
	if diff := cmp.Diff(want, got.Job); diff != "" {
		t.Error(diff)
	}
}

// Every way in which a submission fails is of the kind that says what to do.
func TestRESTSubmitErrors(t *testing.T) {
	const submit, ping = "POST /slurm/v0.0.38/job/submit", "GET /slurm/v0.0.38/ping"
	for _, tt := range []struct {
		name, path string
		answer     canned
		want       error
		words      string
	}{
		{"partition", submit, canned{500, "submit-partition.json"}, deploy.ErrRefused, "Invalid partition name specified"},
		{"memory", submit, canned{400, "submit-memory.json"}, deploy.ErrRefused, "Invalid memory specification"},
		{"no controller", submit, canned{500, "submit-nocontroller.json"}, deploy.ErrUnavailable, "Unable to contact slurm controller"},
		{"answer lost", submit, canned{500, "submit-badtoken.json"}, deploy.ErrAmbiguous, "Zero Bytes were transmitted or received"},
		{"no id", submit, canned{200, "ping.json"}, deploy.ErrAmbiguous, "neither a job id nor an error"},
		{"no document", submit, canned{200, "README.md"}, deploy.ErrAmbiguous, "HTTP 200"},
		{"proxy lost it", submit, canned{502, "unauthorized.txt"}, deploy.ErrAmbiguous, "HTTP 502"},
		{"proxy has no server", submit, canned{503, "unauthorized.txt"}, deploy.ErrUnavailable, "HTTP 503"},
		{"another server by now", submit, canned{404, "notfound.txt"}, deploy.ErrUnavailable, "HTTP 404"},
		{"not let in", submit, canned{401, "unauthorized.txt"}, deploy.ErrRefused, "Authentication failure"},
		{"not let in at all", "GET /openapi/v3", canned{401, "unauthorized.txt"}, deploy.ErrRefused, "scontrol token"},
		{"token not accepted", ping, canned{500, "ping-badtoken.json"}, deploy.ErrUnavailable, "does not accept the token"},
		{"controller does not answer", ping, canned{500, "ping-nocontroller.json"}, deploy.ErrUnavailable, "slurmctld does not answer"},
		{"no known version", "GET /openapi/v3", canned{200, "ping.json"}, deploy.ErrRefused, "names no way to submit"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			answers := map[string]canned{submit: {0, "submit.json"}}
			answers[tt.path] = tt.answer
			f := newFake(t, answers)
			id, err := f.client().submit(t.Context(), attempt(t))
			wantKind(t, err, tt.want)
			if id != "" || err == nil || !strings.Contains(err.Error(), tt.words) || strings.Contains(err.Error(), secret) {
				t.Errorf("id %q, error %v; want %q in it", id, err, tt.words)
			}
			if tt.path != submit && len(f.of(submit)) > 0 {
				t.Error("it was submitted all the same")
			}
		})
	}
}

// wantKind checks that an error is of one kind and of no other.
func wantKind(t *testing.T, err, want error) {
	t.Helper()
	for _, kind := range []error{deploy.ErrRefused, deploy.ErrUnavailable, deploy.ErrAmbiguous} {
		if errors.Is(err, kind) != errors.Is(kind, want) {
			t.Errorf("%v: is of the kind %q: %t", err, kind, errors.Is(err, kind))
		}
	}
}

// A server that takes the request and gives no answer may have submitted the job.
func TestRESTLostAnswers(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"hangs": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"closes": func(w http.ResponseWriter, _ *http.Request) {
			c, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				c.Close()
			}
		},
		"half": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"job_id": `))
		},
	} {
		t.Run(name, func(t *testing.T) {
			var posts atomic.Int32
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				posts.Add(1)
				answer(w, r)
			}))
			t.Cleanup(s.Close)
			r := clientOf(s.URL)
			r.api = &api{version: 38, history: true}
			r.web.accept(token{value: secret})
			r.web.limit = 200 * time.Millisecond
			_, err := r.submit(t.Context(), attempt(t))
			wantKind(t, err, deploy.ErrAmbiguous)
			if posts.Load() != 1 {
				t.Errorf("it was sent %d times", posts.Load())
			}
			if _, err := r.queue(t.Context(), []string{"0"}); !errors.Is(err, deploy.ErrUnavailable) {
				t.Errorf("the queue could not be asked: %v", err)
			}
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err := r.queue(ended, []string{"0"}); !errors.Is(err, context.Canceled) {
				t.Errorf("the context ended: %v", err)
			}
		})
	}
}

func TestRESTNoServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	for _, url := range []string{"http://" + l.Addr().String(), "unix://" + filepath.Join(t.TempDir(), "none.sock")} {
		r := clientOf(url)
		_, err := r.submit(t.Context(), attempt(t))
		wantKind(t, err, deploy.ErrUnavailable)
		r.api = &api{version: 38}
		r.web.accept(token{value: secret})
		_, err = r.submit(t.Context(), attempt(t))
		wantKind(t, err, deploy.ErrUnavailable)
		if !strings.Contains(err.Error(), "slurmrestd at "+url) {
			t.Errorf("%v does not name the server", err)
		}
	}
}

// Another server would get the token.
func TestRESTFollowsNoRedirect(t *testing.T) {
	other := newFake(t, nil)
	s := httptest.NewServer(http.RedirectHandler(other.URL+"/openapi/v3", http.StatusTemporaryRedirect))
	t.Cleanup(s.Close)
	if _, err := clientOf(s.URL).queue(t.Context(), nil); !errors.Is(err, deploy.ErrUnavailable) || len(other.asked) > 0 {
		t.Errorf("%v; the other server was asked %v", err, other.asked)
	}
}

func TestRESTQueueAndHistory(t *testing.T) {
	ours := func(r row) row { r.user, r.name = "0", "assay-0123456789ab-"+r.name+"-1"; return r }
	f := newFake(t, map[string]canned{"GET /slurm/v0.0.38/jobs": {0, "jobs.json"}, "GET /slurmdb/v0.0.38/jobs": {0, "db-rank1.json"}})
	r := f.client()
	past := func(exit string) []row {
		return []row{
			ours(row{job: "19", name: "rank1", state: "FAILED", exit: exit, submit: "1795983298", nodes: "node[1-2]", reason: "None"}),
			ours(row{job: "19", name: "rank1", step: "batch", state: "FAILED", submit: "1795983298", nodes: "node1"}),
			ours(row{job: "19", name: "rank1", step: "0", state: "FAILED", submit: "1795983298", nodes: "node[1-2]"}),
		}
	}
	got, err := r.history(t.Context(), []string{"19", "25"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(past(""), got, cmp.AllowUnexported(row{})); diff != "" {
		t.Errorf("what the accounting says of exit codes was believed:\n%s", diff)
	}
	if q := f.of("GET /slurmdb/v0.0.38/jobs"); len(q) != 1 || q[0].query != "step=19%2C25" {
		t.Errorf("the accounting was asked %v", q)
	}

	got, err = r.queue(t.Context(), []string{"0"})
	if err != nil {
		t.Fatal(err)
	}
	const at = "1795983298"
	want := []row{
		ours(row{job: "18", name: "pass", state: "COMPLETED", exit: "0:0", submit: at, nodes: "node[1-2]", reason: "None"}),
		ours(row{job: "19", name: "rank1", state: "FAILED", exit: "3:0", submit: at, nodes: "node[1-2]", reason: "NonZeroExitCode"}),
		ours(row{job: "20", name: "masked", state: "COMPLETED", exit: "0:0", submit: at, nodes: "node[1-2]", reason: "None"}),
		ours(row{job: "21", name: "signal", state: "FAILED", exit: "0:9", submit: at, nodes: "node1", reason: "JobLaunchFailure"}),
		ours(row{job: "22", name: "run", state: "RUNNING", exit: "0:0", submit: at, nodes: "node[1-2]", reason: "None"}),
		ours(row{job: "23", name: "cancelled", state: "CANCELLED", exit: "0:15", submit: at, nodes: "node[1-2]", reason: "None"}),
		ours(row{job: "24", name: "pending", state: "PENDING", exit: "0:0", submit: at, reason: "PartitionNodeLimit"}),
		ours(row{job: "25", name: "requeued", state: "COMPLETED", exit: "0:0", submit: "1795983301", nodes: "node1", reason: "None", restarts: 1}),
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(row{})); diff != "" {
		t.Error(diff)
	}
	// What slurmctld said stands where the accounting does not know better.
	if got, err = r.history(t.Context(), []string{"19"}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(past("3:0"), got, cmp.AllowUnexported(row{})); diff != "" {
		t.Error(diff)
	}
}

// The answers of the accounting, as the target concludes from them.
func TestRESTAccount(t *testing.T) {
	for file, want := range map[string]batch.Answer{
		"db-masked.json": {Word: "FAILED", Bad: true, Detail: "step 0 is FAILED on node[1-2], the job as a whole COMPLETED"},
		"db-rank1.json":  {Word: "FAILED", Bad: true, Script: true},
		"db-signal.json": {Word: "FAILED", Bad: true, Script: true, Detail: "ended by signal 9"},
		"newer-db.json":  {Word: "OUT_OF_MEMORY", Bad: true, Detail: "step 0 is OUT_OF_MEMORY (0:125) on node[1-2], the job as a whole FAILED (3:0)"},
	} {
		t.Run(file, func(t *testing.T) {
			f := newFake(t, map[string]canned{"GET /slurmdb/v0.0.38/jobs": {0, file}})
			rows, err := f.client().history(t.Context(), []string{"1"})
			if err != nil {
				t.Fatal(err)
			}
			rows = slices.DeleteFunc(rows, func(r row) bool { return r.job == "25" })
			s := &scheduler{submitted: map[string]string{}}
			got := s.account(rows, batch.Ref{ID: rows[0].job, Name: rows[0].name, User: "0"})
			short := batch.Answer{Word: got.Word, Bad: got.Bad, Detail: got.Detail, Script: got.Script}
			if diff := cmp.Diff(want, short); diff != "" {
				t.Error(diff)
			}
		})
	}
	for _, file := range []string{"db-requeued.json", "newer-db.json"} {
		f := newFake(t, map[string]canned{"GET /slurmdb/v0.0.38/jobs": {0, file}})
		rows, err := f.client().history(t.Context(), []string{"25"})
		if err != nil {
			t.Fatal(err)
		}
		rows = slices.DeleteFunc(rows, func(r row) bool { return r.job != "25" })
		s := &scheduler{submitted: map[string]string{}}
		got := s.account(rows, batch.Ref{ID: "25", Name: "assay-0123456789ab-requeued-1", User: "0"})
		if got.Word != "COMPLETED" || got.Restarts != 1 || len(got.Earlier) != 1 || got.Earlier[0].Word != "REQUEUED" {
			t.Errorf("%s: %+v", file, got)
		}
	}
}

// No answer of the accounting is not an empty one.
func TestRESTHistoryErrors(t *testing.T) {
	for _, tt := range []struct {
		answer canned
		want   error
	}{
		{canned{200, "db-unknown.json"}, nil},
		{canned{200, "db-badtoken.json"}, deploy.ErrUnavailable},
		{canned{200, "db-nodatabase.json"}, deploy.ErrUnavailable},
		{canned{401, "unauthorized.txt"}, deploy.ErrUnavailable},
		{canned{400, "unauthorized.txt"}, deploy.ErrUnavailable},
	} {
		f := newFake(t, map[string]canned{"GET /slurmdb/v0.0.38/jobs": tt.answer})
		rows, err := f.client().history(t.Context(), []string{"999999"})
		if !errors.Is(err, tt.want) || len(rows) > 0 {
			t.Errorf("%s: %d rows, %v; want %v", tt.answer.file, len(rows), err, tt.want)
		}
	}
	f := newFake(t, nil)
	r := f.client()
	r.api = &api{version: 38}
	if _, err := r.history(t.Context(), []string{"1"}); !errors.Is(err, batch.ErrNoHistory) {
		t.Errorf("without accounting: %v", err)
	}
}

func TestRESTFind(t *testing.T) {
	const rank1 = "assay-0123456789ab-rank1-1"
	for _, tt := range []struct {
		name, user, queue, history, want string
	}{
		{rank1, "0", "jobs.json", "db-unknown.json", "19"},
		{rank1, "7", "jobs.json", "db-unknown.json", ""},
		{rank1, "0", "ping.json", "db-rank1.json", "19"},
		{rank1, "0", "ping.json", "db-nodatabase.json", ""},
		{"assay-0123456789ab-requeued-1", "0", "ping.json", "db-requeued.json", "25"},
		{"assay-0123456789ab-rank1-2", "0", "jobs.json", "db-rank1.json", ""},
	} {
		f := newFake(t, map[string]canned{"GET /slurm/v0.0.38/jobs": {0, tt.queue}, "GET /slurmdb/v0.0.38/jobs": {0, tt.history}})
		if id, err := f.client().find(t.Context(), tt.name, tt.user); id != tt.want || err != nil {
			t.Errorf("%+v: found %q, %v", tt, id, err)
		}
	}
	f := newFake(t, map[string]canned{"GET /slurm/v0.0.38/jobs": {500, "jobs-nocontroller.json"}})
	if _, err := f.client().find(t.Context(), rank1, "0"); !errors.Is(err, deploy.ErrUnavailable) {
		t.Errorf("the queue could not be asked: %v", err)
	}
}

func TestRESTCancel(t *testing.T) {
	const get, del = "GET /slurm/v0.0.38/job/19", "DELETE /slurm/v0.0.38/job/19"
	for _, tt := range []struct {
		what     string
		get, del canned
		name     string
		deleted  int
		fails    bool
	}{
		{"ours", canned{0, "job-rank1.json"}, canned{0, "delete.json"}, "assay-0123456789ab-rank1-1", 1, false},
		{"another's", canned{0, "job-rank1.json"}, canned{0, "delete.json"}, "assay-0123456789ab-rank1-2", 0, false},
		{"another id", canned{0, "job-run.json"}, canned{0, "delete.json"}, "assay-0123456789ab-run-1", 0, false},
		{"gone", canned{500, "job-unknown.json"}, canned{}, "assay-0123456789ab-rank1-1", 0, false},
		{"gone meanwhile", canned{0, "job-rank1.json"}, canned{500, "delete-unknown.json"}, "assay-0123456789ab-rank1-1", 1, false},
		{"no controller", canned{0, "job-rank1.json"}, canned{500, "delete-nocontroller.json"}, "assay-0123456789ab-rank1-1", 1, true},
		{"not let in", canned{401, "unauthorized.txt"}, canned{}, "assay-0123456789ab-rank1-1", 0, true},
	} {
		f := newFake(t, map[string]canned{get: tt.get, del: tt.del})
		err := f.client().cancel(t.Context(), "19", tt.name)
		if (err != nil) != tt.fails || len(f.of(del)) != tt.deleted {
			t.Errorf("%s: %v, deleted %d times", tt.what, err, len(f.of(del)))
		}
	}
	f := newFake(t, nil)
	if err := f.client().cancel(t.Context(), "19/../../x", "n"); err == nil {
		t.Error("an id that is none was taken")
	}
}

func TestRESTFindings(t *testing.T) {
	job := func(url string, s plan.Slurm) []plan.Job {
		s.API, s.RestURL = "rest", url
		return []plan.Job{{ID: "j", NNodes: 1, RanksPerNode: 1, WorldSize: 1, Slurm: &s}, {ID: "cli"}}
	}
	texts := func(jobs []plan.Job, env ...string) string {
		s := &scheduler{opt: Options{Env: env}}
		var all []string
		for _, f := range s.restFindings(t.Context(), jobs) {
			all = append(all, f.State.String()+": "+f.Text())
		}
		return strings.Join(all, "\n")
	}
	f := newFake(t, nil)
	bad := newFake(t, map[string]canned{"GET /slurm/v0.0.38/ping": {500, "ping-badtoken.json"}})
	for _, tt := range []struct {
		got  string
		want []string
	}{
		{texts(job(f.URL, plan.Slurm{}), "SLURM_JWT="+secret), []string{"ok: slurmrestd at " + f.URL + " speaks v0.0.38", "ok: slurmctld accepts the token, which ends at 2100-01-01"}},
		{texts(job(bad.URL, plan.Slurm{}), "SLURM_JWT="+secret), []string{"problem: ", "does not accept the token"}},
		{texts(job(f.URL, plan.Slurm{})), []string{"problem: there is no token"}},
		{texts(job("ftp://x", plan.Slurm{})), []string{"problem: rest_url ftp://x is neither"}},
		{texts(job("http://login.invalid:1", plan.Slurm{}), "SLURM_JWT="+secret), []string{"warning: the token goes to http://login.invalid:1 unencrypted", "problem: slurmrestd at http://login.invalid:1"}},
	} {
		for _, w := range tt.want {
			if !strings.Contains(tt.got, w) || strings.Contains(tt.got, secret) {
				t.Errorf("the findings are\n%s\nand do not say %q", tt.got, w)
			}
		}
	}
	if got := texts([]plan.Job{{ID: "cli", Slurm: &plan.Slurm{}}}); got != "" {
		t.Errorf("nobody uses slurmrestd: %s", got)
	}
}
