//go:build docker

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"assay/deploy"
	"assay/pkg/evidence"
	"assay/pkg/procfs"
	"assay/pkg/rundir"
	"assay/pkg/verdict"
)

// TestDockerRunPasses runs two ranks in an image that is only in the registry.
func TestDockerRunPasses(t *testing.T) {
	s := newDockerSite(t)
	local := s.image + "-pulled"
	for _, words := range [][]string{{"tag", s.image, local}, {"push", "--quiet", local}, {"rmi", local}} {
		s.tool("docker", words...)
	}
	s.box(
		deployment{"built_images": map[string]any{"docker_image": "ci-not-here", "registry_image": local}},
		workload{"m", `echo "rank $RANK of $WORLD_SIZE in $PWD home=$HOME path=$PATH"; [ "$RANK" != 0 ] || echo "performance: 42.5 GB/s"`, twoRanks()},
	)
	res := s.runJSON().want(verdict.Pass)
	if m := res.Jobs[0].Measurements; len(m) != 1 || *m[0].Value != 42.5 {
		t.Errorf("measured %+v", m)
	}
	for rank := range 2 {
		out, err := os.ReadFile(s.rankFile("m", rank, rundir.StdoutFile))
		if err != nil || !strings.Contains(string(out), " of 2 in "+s.rankFile("m", rank, rundir.WorkDir)) || !strings.Contains(string(out), "path=/bin\n") {
			t.Errorf("rank %d wrote %q (%v)", rank, out, err)
		}
	}
	log, err := os.ReadFile(s.rankFile("m", 0, rundir.WrapperLog))
	if err != nil || !strings.Contains(string(log), "container assay-") {
		t.Errorf("the log of rank 0 names no container: %q (%v)", log, err)
	}
}

// TestDockerRunEnds compares the ends of workloads with what is said of them.
func TestDockerRunEnds(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		model  map[string]any
		code   string
		words  []string
	}{
		"exit":    {"exit 3", nil, "RANK_EXIT", []string{"exited 3"}},
		"signal":  {"kill -SEGV $$", nil, "RANK_SIGNAL", []string{"SIGSEGV"}},
		"missing": {"exec nothing-like-this", nil, "RANK_EXIT", []string{"127"}},
		"limit":   {"sleep 600", map[string]any{"timeout": 1}, "RANK_TIMEOUT", []string{"1 s"}},
		"memory": {
			"exec tail /dev/zero",
			map[string]any{"additional_docker_run_options": "--memory 64m --memory-swap 64m"},
			"RANK_SIGNAL",
			[]string{"SIGKILL", "the container ran out of memory (limit 64 MiB)"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newDockerSite(t)
			s.box(nil, workload{"m", c.script, c.model})
			s.runJSON().want(verdict.Fail).reason(c.code, c.words...)
		})
	}
}

// TestDockerRunMemoryOfAPart says that memory was short also where the script lives on.
func TestDockerRunMemoryOfAPart(t *testing.T) {
	s := newDockerSite(t)
	s.box(nil, workload{"m", "tail /dev/zero\nexit 5", map[string]any{"additional_docker_run_options": "--memory=64m --memory-swap=64m"}})
	s.runJSON().want(verdict.Fail).reason("RANK_EXIT", "exited 5").warning("RANK_NOTE", "the container ran out of memory (limit 64 MiB)")
}

// TestDockerRunKilledContainer is a container that somebody kills: the process outside
// records the end that the wrapper inside could not.
func TestDockerRunKilledContainer(t *testing.T) {
	for _, how := range [][]string{{"kill", "--signal", "KILL"}, {"rm", "--force"}} {
		t.Run(how[0], func(t *testing.T) {
			t.Parallel()
			s := newDockerSite(t)
			s.box(nil, workload{"m", s.untilGo(""), nil})
			r := s.startRun()
			s.awaitFile("m", 0, "results/there")
			s.tool("docker", append(how, s.containers()...)...)
			r.wait().want(verdict.Fail).reason("RANK_SIGNAL", "SIGKILL", "its container was")
		})
	}
}

// TestDockerRunSteps runs pre- and post-scripts in the container.
func TestDockerRunSteps(t *testing.T) {
	s := newDockerSite(t)
	s.write("pre.sh", "#!/bin/sh\ntouch /tmp/made-by-pre\n", 0o755)
	s.write("post.sh", "#!/bin/sh\ncp /tmp/made-by-pre $ASSAY_RESULTS_DIR/post\n", 0o755)
	s.box(
		deployment{"context": map[string]any{"pre_scripts": []string{"pre.sh"}, "post_scripts": []string{"post.sh"}}},
		workload{"m", "[ -e /tmp/made-by-pre ] && echo performance: 1 x", nil},
	)
	s.runJSON().want(verdict.Pass)
	s.awaitFile("m", 0, "results/post")
	if exists("/tmp/made-by-pre") {
		t.Error("the pre-script ran on the host")
	}
}

// TestDockerRunMounts gives a container what the manifest mounts, at any path.
func TestDockerRunMounts(t *testing.T) {
	s := newDockerSite(t)
	for _, name := range []string{"a, b", `c"d`} {
		if err := os.Mkdir(filepath.Join(s.dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
		s.write(name+"/data", "performance: 7 x\n", 0o644)
	}
	s.box(
		deployment{"context": map[string]any{"docker_mounts": map[string]string{"/in, put": "a, b", "/quoted": filepath.Join(s.dir, `c"d`)}}},
		workload{"m", `cat "/in, put/data"; ls /quoted/data`, map[string]any{"additional_docker_run_options": `-e "A=x  y" --cap-add=SYS_PTRACE`}},
	)
	s.runJSON().want(verdict.Pass)
}

// TestDockerRunEnvironment hands over an env_file with hostile values: they arrive as
// they are, and stand in no argument of a process and in none of the container.
func TestDockerRunEnvironment(t *testing.T) {
	s := newDockerSite(t)
	want := map[string]string{
		"PLAIN": "s3cret-plain", "QUOTES": `s3cret "a" 'b' \n $(touch x) ` + "`id`", "MULTI": "s3cret\none\n\ntwo\n", "CR": "s3cret\rcr\r",
		"BLANKS": "  s3cret  ", "HASH": "#s3cret", "UNICODE": "s3cret ü 漢 🙂", "BYTES": "s3cret\xff\xfe", "EMPTY": "", "EQUALS": "=s3cret=",
		"QUOTED": `"s3cret"`, "LONG": "s3cret" + strings.Repeat("x", 100_000), "DASH": "--s3cret", "TABS": "\ts3cret\t", "DOCKER_HOST": "tcp://s3cret\n:1", "LD_LIBRARY_PATH": " s3cret",
	}
	var file strings.Builder
	for name, value := range want {
		file.WriteString("export " + name + "='" + strings.ReplaceAll(value, "'", `'\''`) + "'\n")
	}
	s.write("secrets.sh", file.String(), 0o600)
	s.box(deployment{"env_file": "secrets.sh"}, workload{"m", `cat /proc/$$/environ > "$ASSAY_RESULTS_DIR/environ"` + "\n" + s.untilGo("echo performance: 1 x"), nil})
	r := s.startRun()
	s.awaitFile("m", 0, "results/there")
	for _, id := range s.containers() {
		if args := s.tool("docker", "inspect", "--format", "{{json .Path}} {{json .Args}} {{json .Config.Cmd}} {{json .Config.Labels}} {{json .Mounts}}", id); strings.Contains(args, "s3cret") {
			t.Errorf("docker inspect shows %s", args)
		}
	}
	for _, p := range everyProcess(t) {
		if args, err := procfs.Args(p.PID); err == nil && strings.Contains(strings.Join(args, " "), "s3cret") {
			t.Errorf("process %d has the arguments %.300q", p.PID, args)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "assay-env-*")); len(left) > 0 && holdsSecret(left) {
		t.Errorf("the values still lie in %q", left)
	}
	s.goOn()
	r.wait().want(verdict.Pass)
	data, err := os.ReadFile(s.rankFile("m", 0, "results/environ"))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, kv := range strings.Split(string(data), "\x00") {
		name, value, _ := strings.Cut(kv, "=")
		got[name] = value
	}
	for name, value := range want {
		if got[name] != value {
			t.Errorf("%s arrived as %.100q, want %.100q", name, got[name], value)
		}
	}
	s.noSecrets()
}

// noSecrets fails the test when a file of the run holds a value of the env_file,
// except what the workload wrote.
func (s *dockerSite) noSecrets() {
	s.t.Helper()
	err := filepath.WalkDir(filepath.Join(s.dir, "runs"), func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || filepath.Base(path) == "environ" {
			return err
		}
		data, err := os.ReadFile(path)
		if err == nil && strings.Contains(string(data), "s3cret") {
			s.t.Errorf("%s holds a value of the env_file", path)
		}
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

func holdsSecret(dirs []string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool {
		data, err := os.ReadFile(filepath.Join(dir, "env"))
		return err == nil && strings.Contains(string(data), "s3cret")
	})
}

func everyProcess(t *testing.T) []procfs.Process {
	t.Helper()
	all, err := procfs.All()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestDockerRunImages refuses a rank whose image is not there, or is another.
func TestDockerRunImages(t *testing.T) {
	const other = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	for name, c := range map[string]struct {
		image map[string]any
		words []string
	}{
		"missing": {map[string]any{"docker_image": "127.0.0.1:1/nothing:1", "docker_sha": nil}, []string{"127.0.0.1:1/nothing:1", "could not be pulled", "push it"}},
		"no tag":  {map[string]any{"registry_image": os.Getenv("ASSAY_TEST_REGISTRY") + "/box:none", "docker_image": "ci-none", "docker_sha": other}, []string{"/box:none", "could not be pulled", "not"}},
		"another": {map[string]any{"docker_sha": other}, []string{other, "is not the one of the manifest", "sha256:"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newDockerSite(t)
			s.box(deployment{"built_images": c.image}, workload{"m", "echo performance: 1 x", nil})
			host, err := os.Hostname()
			if err != nil {
				t.Fatal(err)
			}
			s.runJSON().want(verdict.Error).reason("IMAGE", append(c.words, host)...)
		})
	}
}

// TestDockerRunByDigest pulls what was recorded, although its name in the registry is
// not there any more, or is another's.
func TestDockerRunByDigest(t *testing.T) {
	s := newDockerSite(t)
	image := map[string]any{"registry_image": os.Getenv("ASSAY_TEST_REGISTRY") + "/box:none", "docker_image": "ci-none"}
	s.box(deployment{"built_images": image}, workload{"m", "echo performance: 1 x", nil})
	s.runJSON().want(verdict.Pass)
}

// TestDockerRunRecordedID takes an image by the id that a build recorded.
func TestDockerRunRecordedID(t *testing.T) {
	s := newDockerSite(t)
	s.box(deployment{"built_images": map[string]any{"docker_sha": s.id, "image_id": s.id}}, workload{"m", "echo performance: 1 x", nil})
	s.runJSON().want(verdict.Pass)
}

// TestDockerRunCannotCreate says in the engine's words why there is no container.
func TestDockerRunCannotCreate(t *testing.T) {
	s := newDockerSite(t)
	s.box(nil, workload{"m", "echo performance: 1 x", map[string]any{"additional_docker_run_options": "--memory nonsense"}})
	s.runJSON().want(verdict.Error).reason("LAUNCH_REFUSED", "could not be created", "nonsense")
}

// TestDockerRunCannotStart is a container that is created and cannot be started.
func TestDockerRunCannotStart(t *testing.T) {
	s := newDockerSite(t)
	s.box(nil, workload{"m", "echo performance: 1 x", map[string]any{"additional_docker_run_options": "--device /dev/nothing-like-this"}})
	s.runJSON().want(verdict.Error).reason("LAUNCH_REFUSED", "could not be", "nothing-like-this")
}

// TestDockerRunWithoutRuntime knows beforehand that nothing runs containers.
func TestDockerRunWithoutRuntime(t *testing.T) {
	s := newDockerSite(t)
	works := s.env["DOCKER_HOST"]
	s.env["DOCKER_HOST"] = "unix:///nothing/like/this.sock"
	defer func() { s.env["DOCKER_HOST"] = works }()
	s.box(nil, workload{"m", "echo performance: 1 x", nil})
	res := s.assay("run", "-m", "m.json")
	if res.code != 6 || !strings.Contains(res.stderr, "no container runtime works here") || !strings.Contains(res.stderr, "--bare") {
		t.Errorf("exit code %d: %s", res.code, res.stderr)
	}
	if res = s.assay("run", "-m", "m.json", "--bare", "--run-id", "bare"); res.code != 0 {
		t.Errorf("--bare: exit code %d: %s", res.code, res.stderr)
	}
}

// TestDockerRunCancelled ends the containers with the first Ctrl-C.
func TestDockerRunCancelled(t *testing.T) {
	s := newDockerSite(t)
	s.box(nil, workload{"m", "trap 'echo told > $ASSAY_RESULTS_DIR/told; exit 1' TERM INT\n" + s.untilGo(""), twoRanks()})
	r := s.startRun()
	s.awaitFile("m", 0, "results/there")
	s.awaitFile("m", 1, "results/there")
	if err := r.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	res := r.wait()
	if res.code != 130 {
		t.Errorf("exit code %d: %s", res.code, res.stderr)
	}
	res.reason("CANCELLED", "SIGINT")
	s.awaitFile("m", 0, "results/told")
	s.awaitFile("m", 1, "results/told")
}

// TestDockerRunWrapperKilled kills the process that watches a container: the rank goes
// on, is judged by its own record, and what it leaves is found and removed.
func TestDockerRunWrapperKilled(t *testing.T) {
	s := newDockerSite(t)
	s.box(nil, workload{"m", s.untilGo("echo performance: 3 x"), nil})
	r := s.startRun()
	s.awaitFile("m", 0, "results/there")
	killWrapper(t, s.attempt("m", 1))
	if res := s.assay("status", "r", "--json"); res.code != 8 {
		t.Errorf("status exits with %d while the container runs: %s%s", res.code, res.stdout, res.stderr)
	}
	if res := s.assay("gc", "--json"); strings.Contains(res.stdout, "assay-") {
		t.Errorf("gc lists a container of a run that goes on: %s", res.stdout)
	}
	s.goOn()
	r.wait().want(verdict.Pass)
	left := s.containers()
	if len(left) != 1 {
		t.Fatalf("containers left: %q", left)
	}
	var found []struct{ Container string }
	res := s.assay("gc", "--json")
	if err := json.Unmarshal([]byte(res.stdout), &found); err != nil || !slices.ContainsFunc(found, func(o struct{ Container string }) bool {
		return strings.HasPrefix(o.Container, "assay-") && strings.HasSuffix(o.Container, "-m-1-0")
	}) {
		t.Errorf("gc lists %s (%v)", res.stdout, err)
	}
	if len(s.containers()) != 1 {
		t.Error("gc removed a container without --cancel")
	}
	s.assay("gc", "--cancel")
}

// TestDockerRunWrapperKilledThenCancelled ends a rank whose watcher is gone.
func TestDockerRunWrapperKilledThenCancelled(t *testing.T) {
	s := newDockerSite(t)
	s.box(nil, workload{"m", s.untilGo(""), nil})
	r := s.startRun()
	s.awaitFile("m", 0, "results/there")
	killWrapper(t, s.attempt("m", 1))
	if res := s.assay("cancel", "r"); res.code != 0 {
		t.Fatalf("cancel: %s", res.stderr)
	}
	r.wait().reason("CANCELLED", "assay cancel")
	s.assay("gc", "--cancel")
}

// killWrapper kills the process outside of the container of rank 0.
func killWrapper(t *testing.T, attempt string) {
	t.Helper()
	l, err := rundir.ReadLaunch(attempt)
	if err != nil || l.Handle == nil {
		t.Fatalf("no handle: %v", err)
	}
	killHandle(t, *l.Handle)
}

func killHandle(t *testing.T, h deploy.Handle) {
	t.Helper()
	var j struct {
		Procs []struct {
			PID int `json:"pid"`
		} `json:"procs"`
	}
	if err := json.Unmarshal(h.Data, &j); err != nil || len(j.Procs) == 0 || j.Procs[0].PID == 0 {
		t.Fatalf("no process in %s (%v)", h.Data, err)
	}
	if err := syscall.Kill(j.Procs[0].PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

// TestDockerRunKeepAlive leaves the container running, and says how to enter it.
func TestDockerRunKeepAlive(t *testing.T) {
	s := newDockerSite(t)
	s.box(deployment{"env_vars": map[string]string{"CARD": "c"}}, workload{"m", "echo performance: 2 x\necho here > /tmp/left", nil})
	res := s.runJSON("--keep-alive").want(verdict.Pass)
	ids := s.containers()
	if len(ids) != 1 {
		t.Fatalf("containers: %q", ids)
	}
	name := strings.TrimPrefix(s.tool("docker", "inspect", "--format", "{{.Name}}", ids[0]), "/")
	if !strings.Contains(res.stderr, "docker exec -it "+name+" sh") || !strings.Contains(res.stderr, "docker rm -f "+name) {
		t.Errorf("assay says %s", res.stderr)
	}
	if got := s.tool("docker", "exec", name, "sh", "-c", "cat /tmp/left; echo $CARD"); got != "here\nc" {
		t.Errorf("inside there is %q", got)
	}
	if res := s.assay("gc"); !strings.Contains(res.stdout, name+" was kept") {
		t.Errorf("gc says %s%s", res.stdout, res.stderr)
	}
	if res := s.assay("gc", "--cancel"); !strings.Contains(res.stdout, "has been removed") {
		t.Errorf("gc --cancel says %s%s", res.stdout, res.stderr)
	}
}

// TestDockerRunTwiceAtOnce runs the same manifest twice at the same time: names of
// containers do not meet.
func TestDockerRunTwiceAtOnce(t *testing.T) {
	s := newDockerSite(t)
	s.box(nil, workload{"m", s.untilGo("echo performance: 1 x"), twoRanks()})
	first := s.startRun()
	second := s.start("run", "-m", "m.json", "--run-id", "r2", "--json", "--perf-csv", "")
	s.eventually("four containers", func() bool { return len(s.containers()) == 4 })
	s.goOn()
	first.wait().want(verdict.Pass)
	second.wait().want(verdict.Pass)
}

// TestDockerRunRecords leaves the records that a rank on the host leaves.
func TestDockerRunRecords(t *testing.T) {
	s := newDockerSite(t)
	s.box(nil, workload{"m", "echo performance: 1 x", nil})
	s.runJSON().want(verdict.Pass)
	var end evidence.End
	data, err := os.ReadFile(s.rankFile("m", 0, rundir.EndFile))
	if err != nil || json.Unmarshal(data, &end) != nil {
		t.Fatalf("end marker: %s (%v)", data, err)
	}
	host, err := os.Hostname()
	if err != nil || end.Host != host || end.Node != host || end.Outcome != evidence.OutcomeExited {
		t.Errorf("end marker: %s (%v)", data, err)
	}
}
