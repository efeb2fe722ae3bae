//go:build slurm

package hostlist_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"assay/pkg/hostlist"
)

// scontrol is the real thing. It asks no controller, but wants a configuration.
func scontrol(t *testing.T) func(list string) (hosts []string, complaint string) {
	t.Helper()
	path, err := exec.LookPath("scontrol")
	if err != nil {
		t.Fatalf("scontrol is missing: install the package slurm-client: %v", err)
	}
	conf := filepath.Join(t.TempDir(), "slurm.conf")
	if err := os.WriteFile(conf, []byte("ClusterName=x\nSlurmctldHost=localhost\nNodeName=node1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return func(list string) ([]string, string) {
		cmd := exec.Command(path, "--", "show", "hostnames", list) // a list may begin with a dash
		cmd.Env = append(os.Environ(), "SLURM_CONF="+conf)
		var stderr strings.Builder
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Sprintf("%v: %s", err, stderr.String())
		}
		return strings.Split(strings.TrimSuffix(string(out), "\n"), "\n"), stderr.String()
	}
}

// TestCasesAgreeWithScontrol holds what the cases say of scontrol.
func TestSlurmCasesAgreeWithScontrol(t *testing.T) {
	ask := scontrol(t)
	for _, c := range cases(t) {
		hosts, complaint := ask(c.List)
		printed := len(hosts) > 0 && hosts[0] != ""
		switch {
		case c.Scontrol == "same" && complaint == "" && cmp.Equal(hosts, c.Hosts):
		case c.Scontrol == "refuses" && !printed:
		case c.Scontrol == "differs" && printed:
		default:
			t.Errorf("%q: scontrol says %.200q, %s; expected %q", c.List, hosts, complaint, c.Scontrol)
		}
	}
}

func TestSlurmRandomListsAgreeWithScontrol(t *testing.T) {
	ask := scontrol(t)
	rapid.Check(t, func(rt *rapid.T) {
		for range 5 {
			list := randomList(rt)
			want, complaint := ask(list)
			got, err := hostlist.Expand(list)
			if d := cmp.Diff(want, got); err != nil || complaint != "" || d != "" {
				rt.Fatalf("%q: %v; scontrol: %s (-scontrol +ours):\n%s", list, err, complaint, d)
			}
		}
	})
}

// What Compress writes, SLURM reads.
func TestSlurmReadsCompressed(t *testing.T) {
	ask := scontrol(t)
	for _, hosts := range [][]string{{"n01", "n02", "n10"}, {"n8", "n9", "n10", "m", "m1"}, {"r0b1", "r0b2", "r1b1"}} {
		if got, complaint := ask(hostlist.Compress(hosts)); complaint != "" || !cmp.Equal(got, hosts) {
			t.Errorf("%q: scontrol reads %q as %q %s", hosts, hostlist.Compress(hosts), got, complaint)
		}
	}
}
