package podrank

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay/pkg/plan"
)

func TestHosts(t *testing.T) {
	for _, tt := range []struct {
		addr         string
		nodes, ranks int
		want         []string
	}{
		{"job-0.svc", 3, 1, []string{"job-0.svc", "job-1.svc", "job-2.svc"}},
		{"a-0-0.svc.ns.svc.cluster.local", 2, 4, []string{"a-0-0.svc.ns.svc.cluster.local", "a-0-4.svc.ns.svc.cluster.local"}},
		{"job-0", 2, 0, []string{"job-0", "job-1"}},
		{"job-10.svc", 2, 1, nil},
		{"-0.svc", 2, 1, nil},
		{"10.0.0.0", 2, 1, nil},
		{"localhost", 1, 1, nil},
		{"", 1, 1, nil},
	} {
		if d := cmp.Diff(tt.want, hosts(tt.addr, plan.Job{NNodes: tt.nodes, RanksPerNode: tt.ranks})); d != "" {
			t.Errorf("%s:\n%s", tt.addr, d)
		}
	}
}

// slow takes its time.
type slow struct{}

func (slow) Write(b []byte) (int, error) {
	time.Sleep(patience / 2)
	return len(b), nil
}

func TestPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &progress{to: slow{}}
		err := p.patiently(func() error {
			for range 100 {
				_, _ = p.Write([]byte("x"))
			}
			return errors.New("its own")
		})
		if err == nil || err.Error() != "its own" {
			t.Errorf("a slow reader was given up: %v", err)
		}
		r, w := io.Pipe() // nobody reads
		p = &progress{to: w}
		err = p.patiently(func() error { _, err := p.Write([]byte("x")); return err })
		if err == nil || !strings.Contains(err.Error(), "nobody read the log for 10s") {
			t.Errorf("error %v", err)
		}
		_ = r.Close() // ends the write that hangs
	})
}
