package slurmtest

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFromEnv(t *testing.T) {
	whole := []string{"SLURM_CONF=/c/slurm.conf", "SLURM_REST=http://127.0.0.1:1", "ASSAY_TEST_SLURM=/c"}
	c, err := fromEnv(whole)
	if err != nil {
		t.Fatal(err)
	}
	if c.Dir != "/c" || c.Conf != "/c/slurm.conf" || c.REST != "http://127.0.0.1:1" {
		t.Errorf("read %+v", c)
	}
	for i := range whole {
		part := append(append([]string{}, whole[:i]...), whole[i+1:]...)
		if _, err := fromEnv(part); err == nil || !strings.Contains(err.Error(), "make test-slurm") {
			t.Errorf("of %q alone: %v, want an error that says what to run", part, err)
		}
	}
}

func TestWithoutSlurm(t *testing.T) {
	got := withoutSlurm([]string{"PATH=/bin", "SLURM_JOB_ID=1", "SBATCH_PARTITION=x", "SQUEUE_FORMAT=%i", "SACCT_FORMAT=x", "SLURMD_NODENAME=n", "HOME=/h"})
	if d := cmp.Diff([]string{"PATH=/bin", "HOME=/h"}, got); d != "" {
		t.Error(d)
	}
}
