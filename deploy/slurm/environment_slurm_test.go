//go:build slurm

package slurm

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"assay/deploy/slurm/slurmtest"
)

// TestSlurmEnvironment submits beside variables that would change what sbatch and
// srun do, and beside a token: the job runs where the manifest says, with the ranks
// it says, and the token is nowhere.
func TestSlurmEnvironment(t *testing.T) {
	t.Parallel()
	c := slurmtest.Open(t)
	dir := c.SharedDir()
	bin := filepath.Join(dir, "assay")
	build := exec.Command("go", "build", "-o", bin, "assay/cmd/assay")
	build.Env = append(build.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	writeText(t, filepath.Join(dir, "m.json"), `{"built_images": {"m": {"docker_image": null}}, "context": {},
		"built_models": {"m": {"name": "m", "command": ["bash", "-c", "env; echo performance: 1 x"]}},
		"deployment_config": {"target": "slurm", "slurm": {"partition": "main", "nodes": 2, "time": "5"}, "env_vars": {"NAMED": "by the manifest"}}}`)
	cmd := exec.Command(bin, "run", "-m", "m.json", "--run-id", "env")
	cmd.Dir = dir
	cmd.Env = append(c.Env(), "SBATCH_PARTITION=nope", "SBATCH_EXPORT=ALL", "SBATCH_TIMELIMIT=bad", "SLURM_NTASKS=7", "SLURM_NNODES=3",
		"SLURM_EXPORT_ENV=ALL", "SLURM_HINT=nomultithread", "API_TOKEN=token-secret", "LC_ALL=C.UTF-8")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	attempt := filepath.Join(dir, "runs", "env", "jobs", "m", "1")
	for _, rank := range []string{"0", "1"} {
		text := readFile(t, filepath.Join(attempt, "ranks", rank, "stdout"))
		for _, wanted := range []string{"\nWORLD_SIZE=2\n", "\nNAMED=by the manifest\n", "\nLC_ALL=C.UTF-8\n", "\nRANK=" + rank + "\n"} {
			if !strings.Contains("\n"+text, wanted) {
				t.Errorf("rank %s lacks %q", rank, strings.TrimSpace(wanted))
			}
		}
		for _, unwanted := range []string{"token-secret", "API_TOKEN", "SBATCH_PARTITION", "SLURM_HINT"} {
			if strings.Contains(text, unwanted) {
				t.Errorf("rank %s has %s", rank, unwanted)
			}
		}
	}
	if found, err := filepath.Glob(filepath.Join(attempt, "ranks", "*")); err != nil || len(found) != 2 {
		t.Errorf("ranks %q, %v; want 2", found, err)
	}
	for _, name := range []string{"job.sh", "job.json", "job.out"} {
		if strings.Contains(readFile(t, filepath.Join(attempt, name)), "token-secret") {
			t.Errorf("%s has the token", name)
		}
	}
}
