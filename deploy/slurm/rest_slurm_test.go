//go:build slurm

package slurm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay/deploy"
	"assay/deploy/slurm/slurmtest"
	"assay/pkg/batch"
	"assay/pkg/plan"
	"assay/pkg/rundir"
)

// restUser is somebody who talks to a slurmrestd.
type restUser struct {
	*slurmtest.Cluster
	url   string
	token string // path of its file, "" where the socket says who one is
	dir   string
	start func(name string, args ...string) *exec.Cmd
}

// overHTTP is who runs the tests, with a token.
func overHTTP(t *testing.T, c *slurmtest.Cluster) restUser {
	t.Helper()
	u := restUser{Cluster: c, url: c.REST, dir: c.SharedDir(), start: c.Command}
	u.token = filepath.Join(u.dir, "token")
	if err := os.WriteFile(u.token, []byte(c.Token(identity{}.self(), time.Hour)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return u
}

// overSocket is nobody, with a slurmrestd of their own on a Unix socket.
func overSocket(t *testing.T, c *slurmtest.Cluster) restUser {
	t.Helper()
	nobody := c.Nobody()
	socket := filepath.Join(nobody.Home, "rest.sock")
	server := nobody.Command("slurmrestd", "-a", "rest_auth/local", "unix:"+socket)
	var said bytes.Buffer
	server.Stdout, server.Stderr = &said, &said
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Signal(syscall.SIGTERM)
		_ = server.Wait()
		if t.Failed() {
			t.Logf("slurmrestd said:\n%s", &said)
		}
	})
	c.Await("slurmrestd listens at "+socket, func() bool { _, err := os.Stat(socket); return err == nil })
	return restUser{Cluster: c, url: "unix://" + socket, dir: nobody.Home, start: nobody.Command}
}

// TestSlurmREST runs the built binary through slurmrestd: jobs that pass, fail and
// are cancelled.
func TestSlurmREST(t *testing.T) {
	c := slurmtest.Open(t)
	assay := filepath.Join(c.SharedDir(), "assay")
	build := exec.Command("go", "build", "-o", assay, "assay/cmd/assay")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	for way, who := range map[string]func(*testing.T, *slurmtest.Cluster) restUser{"http": overHTTP, "socket": overSocket} {
		for name, run := range map[string]func(*testing.T, restUser, string){"pass": restPass, "fail": restFail, "cancel": restCancel} {
			t.Run(way+"/"+name, func(t *testing.T) {
				t.Parallel()
				run(t, who(t, c.In(t)), assay)
			})
		}
	}
}

// manifest writes a manifest of one job on two nodes.
func (u restUser) manifest(t *testing.T, script string) {
	t.Helper()
	slurm := map[string]any{"partition": "main", "nodes": 2, "time": "5", "api": "rest", "rest_url": u.url}
	if u.token != "" {
		slurm["rest_token_file"] = u.token
	}
	data, err := json.Marshal(map[string]any{
		"built_images": map[string]any{"job": map[string]any{"docker_image": nil}},
		"built_models": map[string]any{"job": map[string]any{"name": "job", "command": []string{"bash", "-c", script}}},
		"context":      map[string]any{}, "deployment_config": map[string]any{"target": "slurm", "slurm": slurm},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(u.dir, "m.json"), data, 0o644); err != nil {
		t.Fatal(err)
	}
}

// runsDir has what SLURM and a shell read as something else.
const runsDir = "runs %j it's $(x)"

// assay is a command in the user's directory.
func (u restUser) assay(binary string, args ...string) *exec.Cmd {
	cmd := u.start(binary, args...)
	cmd.Dir = u.dir
	cmd.Env = append(cmd.Env, "ASSAY_RUNS_DIR="+runsDir)
	return cmd
}

// attempt is the directory of the job's only attempt.
func (u restUser) attempt() string { return filepath.Join(u.dir, runsDir, "r", "jobs", "job", "1") }

// run runs assay in the user's directory. Nothing of what it leaves has the token.
func (u restUser) run(t *testing.T, assay string, wantCode int, want ...string) {
	t.Helper()
	cmd := u.assay(assay, "run", "-m", "m.json", "--run-id", "r")
	out, err := cmd.CombinedOutput()
	code := cmd.ProcessState.ExitCode()
	if code != wantCode {
		t.Errorf("exit code %d, want %d (%v)", code, wantCode, err)
	}
	for _, w := range want {
		if !strings.Contains(string(out), w) {
			t.Errorf("%q is not said", w)
		}
	}
	if t.Failed() {
		t.Logf("assay said:\n%s", out)
	}
	if _, err := os.Stat(filepath.Join(u.attempt(), batch.OutputFile)); err != nil {
		t.Errorf("the batch script wrote elsewhere: %v", err)
	}
	if u.token == "" {
		return
	}
	token, err := os.ReadFile(u.token)
	if err != nil {
		t.Fatal(err)
	}
	left, err := exec.Command("grep", "-rlF", "--exclude-dir=.assay", strings.TrimSpace(string(token)), filepath.Join(u.dir, runsDir)).Output()
	if len(left) > 0 {
		t.Errorf("the token is in %s (%v)", left, err)
	}
}

func restPass(t *testing.T, u restUser, assay string) {
	u.manifest(t, `[ -z "${SLURM_JWT:-}" ] || exit 9; echo "performance: $((40 + WORLD_SIZE)) GBs, copy"`)
	u.run(t, assay, 0, "PASS")
}

func restFail(t *testing.T, u restUser, assay string) {
	u.manifest(t, `exit $((RANK == 1 ? 3 : 0))`)
	u.run(t, assay, 3, "rank 1 (node", "exited 3", "FAILED: exit code 3")
}

func restCancel(t *testing.T, u restUser, assay string) {
	u.manifest(t, `echo up > "$ASSAY_RESULTS_DIR/up"; sleep 300`)
	done := make(chan struct{})
	go func() {
		defer close(done)
		u.run(t, assay, 6, "CANCELLED")
	}()
	u.Await("a rank runs", func() bool {
		_, err := os.Stat(filepath.Join(rundir.RankDir(u.attempt(), 1), rundir.BeginFile))
		return err == nil
	})
	for range 2 {
		if out, err := u.assay(assay, "cancel", "r").CombinedOutput(); err != nil {
			t.Errorf("cancel: %v\n%s", err, out)
		}
	}
	<-done
}

// TestSlurmRESTOptions submits a job with everything that a manifest can ask for,
// and looks at what slurmctld was told.
func TestSlurmRESTOptions(t *testing.T) {
	t.Parallel()
	c := slurmtest.Start(t, map[string]string{"GPUS": "4"})
	u := overHTTP(t, c)
	for _, node := range []string{"node1", "node2"} {
		c.Scontrol("update", "NodeName="+node, "Features=fast,ib")
	}
	me := identity{}.self()
	c.Run("sacctmgr", "--immediate", "add", "account", "acct", "Cluster=assay")
	c.Run("sacctmgr", "--immediate", "add", "user", me, "Account=acct")
	c.Scontrol("create", "reservation", "ReservationName=resv", "StartTime=now", "Duration=60", "Users="+me, "Nodes=node[1-2]")
	for _, requeue := range []bool{true, false} {
		dir := filepath.Join(u.dir, fmt.Sprintf("it's $(a) \"job\" %%j %t", requeue))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		a := plan.Attempt{RunID: "20260102-150405-a1b2c3", Nonce: "0123456789abcdef0123456789abcdef", Number: 1, Dir: dir, Job: plan.Job{
			ID: fmt.Sprintf("options-%t", requeue), NNodes: 2, RanksPerNode: 3, WorldSize: 6, Slurm: &plan.Slurm{
				Partition: "main", Account: "acct", QOS: "normal", Reservation: "resv", Nodelist: "node[1-2]", Exclude: "node3",
				Constraint: "fast&ib", GPUsPerNode: 2, Time: "1-02:00:30", Mem: "1G", Exclusive: true, Requeue: &requeue,
				MailUser: `a "b" $(c)`, MailType: "END,FAIL", API: "rest", RestURL: u.url, RestTokenFile: u.token,
			},
		}}
		if err := os.WriteFile(filepath.Join(dir, batch.ScriptFile), []byte("#!/bin/bash\nexec sleep 300\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		s := New(Options{Env: c.Env()})
		ref, err := s.s.Submit(t.Context(), a)
		if err != nil {
			t.Fatal(err)
		}
		text := c.Scontrol("show", "job", ref.ID)
		got := map[string]string{}
		want := map[string]string{
			"JobName": "assay-0123456789ab-" + a.Job.ID + "-1", "Account": "acct", "QOS": "normal", "Requeue": map[bool]string{true: "1", false: "0"}[requeue],
			"TimeLimit": "1-02:01:00", "Partition": "main", "ReqNodeList": "node[1-2]", "ExcNodeList": "node3", "MinMemoryNode": "1G",
			"Features": "fast&ib", "Reservation": "resv", "OverSubscribe": "NO", "TresPerNode": "gres:gpu:2", "MailType": "END,FAIL",
		}
		for word := range strings.FieldsSeq(text) {
			name, value, _ := strings.Cut(word, "=")
			if _, asked := want[name]; asked {
				got[name] = value
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s\n%s", diff, text)
		}
		for _, line := range []string{
			"NumTasks=6", "NumNodes=2", "NtasksPerN:B:S:C=3:", "WorkDir=" + dir + "\n", "MailUser=a \"b\" $(c)", "attempt=1 host=", "dir=" + dir,
		} {
			if !strings.Contains(text, line) {
				t.Errorf("%q is not in\n%s", line, text)
			}
		}
		if err := s.s.Cancel(t.Context(), ref); err != nil {
			t.Error(err)
		}
	}
}

// TestSlurmRESTFindsAJob finds a job by its name, in the queue and, once slurmctld
// has forgotten it, in the accounting.
func TestSlurmRESTFindsAJob(t *testing.T) {
	t.Parallel()
	c := slurmtest.Open(t)
	u := overHTTP(t, c)
	r := newRest(u.url, u.token, c.Env(), nil)
	const name = "assay-feedfeedfeed-found-1"
	id := c.Sbatch("#!/bin/bash\ntrue\n", "--job-name="+name, "--output=/dev/null", "--partition=main")
	if got, err := r.find(t.Context(), name, uid()); got != id || err != nil {
		t.Errorf("found %q in the queue, %v; want %s", got, err, id)
	}
	c.Await("the accounting has the end of the job", func() bool {
		return strings.HasPrefix(c.Sacct("-X", "-j", id, "-o", "State,JobName%40"), "COMPLETED|"+name)
	})
	v, err := r.ask(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	rows, err := r.accounted(t.Context(), v, map[string][]string{"job_name": {name}})
	if got := newest(rows, name, uid()); err != nil || got != id {
		t.Errorf("found %q in the accounting, %v; want %s", got, err, id)
	}
	if got, err := r.find(t.Context(), name+"x", uid()); got != "" || err != nil {
		t.Errorf("found %q for a name that no job has, %v", got, err)
	}
}

// TestSlurmRESTRefusals submits with what is wrong with a token.
func TestSlurmRESTRefusals(t *testing.T) {
	t.Parallel()
	c := slurmtest.Open(t)
	good := c.Token(identity{}.self(), time.Hour)
	for name, tt := range map[string]struct {
		token string
		want  error
	}{
		"none": {"", deploy.ErrRefused}, "another's": {c.Token("nobody", time.Hour), deploy.ErrRefused},
		"forged": {good[:len(good)-8] + "AAAAAAAA", deploy.ErrUnavailable},
	} {
		a := attempt(t)
		a.Job.Slurm.RestURL = c.REST
		h, err := New(Options{Env: append(c.Env(), "SLURM_JWT="+tt.token)}).Submit(t.Context(), a)
		if !errors.Is(err, tt.want) || tt.token != "" && strings.Contains(fmt.Sprint(err), tt.token) {
			t.Errorf("%s: submitted as %v, %v", name, h.ID, err)
		}
	}
}
