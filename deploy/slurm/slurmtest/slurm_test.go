//go:build slurm

package slurmtest_test

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"assay/deploy/slurm/slurmtest"
)

const twoNodes = "#!/bin/bash\nsrun --label bash -c 'echo $SLURMD_NODENAME'\n"

func awaitState(t *testing.T, c *slurmtest.Cluster, id, want string) {
	t.Helper()
	c.Await("job "+id+" is "+want, func() bool { return c.JobState(id) == want })
}

// awaitRow waits for the accounting of a job, which comes seconds after its end.
func awaitRow(t *testing.T, c *slurmtest.Cluster, id, want string) {
	t.Helper()
	c.Await("sacct says of job "+id+": "+want, func() bool {
		return c.Sacct("--allocations", "--jobs="+id, "--format=JobID,State,ExitCode,NodeList") == id+"|"+want
	})
}

func TestSlurmRunsAJobOnTwoNodes(t *testing.T) {
	c := slurmtest.Open(t)
	out := filepath.Join(t.TempDir(), "out")
	id := c.Sbatch(twoNodes, "--nodes=2", "--nodelist=node[3-4]", "--output="+out)
	awaitState(t, c, id, "COMPLETED")
	awaitRow(t, c, id, "COMPLETED|0:0|node[3-4]")
	got, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"0: node3", "1: node4"} {
		if !strings.Contains(string(got), line) {
			t.Errorf("no %q in the output %q", line, got)
		}
	}
}

func TestSlurmNodeDiesAndComesBack(t *testing.T) {
	c := slurmtest.Open(t)
	dir := t.TempDir()
	beat := filepath.Join(dir, "beat")
	id := c.Sbatch("#!/bin/bash\nsrun bash -c 'while :; do [ $SLURMD_NODENAME = node1 ] || echo >>"+beat+"; sleep 0.1; done'\n",
		"--nodes=2", "--nodelist=node[1-2]", "--no-requeue", "--output="+filepath.Join(dir, "out"))
	c.Await("the task on node2 runs", func() bool { return size(beat) > 0 })
	c.KillNode("node2")
	dead := size(beat)
	c.Await("node2 is down", func() bool { return strings.HasPrefix(c.NodeState("node2"), "down") })
	if now := size(beat); now != dead {
		t.Errorf("the task on node2 wrote %d bytes after its node was killed", now-dead)
	}
	awaitState(t, c, id, "NODE_FAIL")
	c.StartDaemon("node2")
	c.Await("node2 is idle", func() bool { return c.NodeState("node2") == "idle" })
}

func size(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

func TestSlurmControllerGoesAndComesBack(t *testing.T) {
	c := slurmtest.Open(t)
	id := c.Sbatch("#!/bin/bash\nsleep 1\n", "--output=/dev/null")
	c.StopDaemon(slurmtest.Slurmctld)
	if out, err := c.Try("scontrol", "ping"); err == nil {
		t.Errorf("the stopped controller answered %q", out)
	}
	c.StartDaemon(slurmtest.Slurmctld)
	awaitState(t, c, id, "COMPLETED")
}

func TestSlurmNobodySubmits(t *testing.T) {
	c := slurmtest.Open(t)
	u := c.Nobody()
	id := u.Sbatch("#!/bin/bash\nid -un\npwd\nexit 3\n", "--output=out")
	awaitState(t, c, id, "FAILED")
	awaitRow(t, c, id, "FAILED|3:0|node1")
	got, err := os.ReadFile(filepath.Join(u.Home, "out"))
	if err != nil {
		t.Fatal(err)
	}
	if want := "nobody\n" + u.Home + "\n"; string(got) != want {
		t.Errorf("the job printed %q, want %q", got, want)
	}
	if other := c.Sbatch("#!/bin/bash\nsleep 60\n", "--output=/dev/null"); u.Command("scancel", other).Run() == nil {
		t.Error("nobody could cancel a job of root")
	} else {
		c.Run("scancel", other)
	}
}

func TestSlurmRESTTakesAToken(t *testing.T) {
	c := slurmtest.Open(t)
	for token, want := range map[string]int{c.Token("nobody", time.Minute): http.StatusOK, "": http.StatusUnauthorized} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.REST+"/slurm/v0.0.38/ping", nil)
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			req.Header.Set("X-SLURM-USER-NAME", "nobody")
			req.Header.Set("X-SLURM-USER-TOKEN", token)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("with a token of %d bytes: %s %s, want %d", len(token), resp.Status, body, want)
		}
	}
}

func TestSlurmWithoutAccounting(t *testing.T) {
	c := slurmtest.Start(t, map[string]string{"ACCOUNTING": "none", "NODES": "2"})
	id := c.Sbatch(twoNodes, "--nodes=2", "--output=/dev/null")
	awaitState(t, c, id, "COMPLETED")
	if out, err := c.Try("sacct", "--jobs="+id); err == nil {
		t.Errorf("sacct answered without accounting: %q", out)
	}
}

func TestSlurmMemoryLimit(t *testing.T) {
	c := slurmtest.Start(t, map[string]string{"CGROUP": "1", "NODES": "2"})
	id := c.Sbatch("#!/bin/bash\nsrun --ntasks=1 bash -c 'x=$(head -c 300M /dev/zero | tr \"\\0\" x); echo ${#x}'\n",
		"--mem=100", "--output=/dev/null")
	c.Await("the job has ended", func() bool { s := c.JobState(id); return s != "" && s != "PENDING" && s != "RUNNING" })
	c.Await("accounting calls the step OUT_OF_MEMORY", func() bool {
		return strings.Contains(c.Sacct("--jobs="+id, "--format=JobID,State"), id+".0|OUT_OF_MEMORY")
	})
}

func TestSlurmGPUs(t *testing.T) {
	c := slurmtest.Start(t, map[string]string{"GPUS": "8", "NODES": "1", "ACCOUNTING": "none"})
	if got := c.Run("srun", "--gpus-per-node=4", "printenv", "CUDA_VISIBLE_DEVICES"); got != "0,1,2,3" {
		t.Errorf("a job with 4 of 8 GPUs sees %q", got)
	}
	if _, err := c.Try("srun", "--gpus-per-node=9", "true"); err == nil {
		t.Error("9 of 8 GPUs were granted")
	}
}
