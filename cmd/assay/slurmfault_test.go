//go:build slurm

package main

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"assay/deploy/slurm/slurmtest"
	"assay/pkg/evidence"
	"assay/pkg/verdict"
)

// scenario is a fault, and what assay has to make of it.
type scenario struct {
	name string
	run  func(*testing.T)
}

// together runs scenarios at the same time, however few processors there are: they
// spend their time waiting for SLURM.
func together(t *testing.T, all ...scenario) {
	t.Helper()
	var wg sync.WaitGroup
	for _, s := range all {
		wg.Go(func() { t.Run(s.name, s.run) })
	}
	wg.Wait()
}

// TestSlurmFaults lets go wrong what can go wrong with a cluster under a job. A
// scenario that disturbs others has a cluster of its own.
func TestSlurmFaults(t *testing.T) {
	// The longest first: clusters start one after the other.
	losing := slurmtest.Start(t, losingNodes())
	together(t,
		scenario{"nodes", func(t *testing.T) { faultyNodes(t, losing) }},
		scenario{"controller", controllerAway},
		scenario{"records", oddRecords},
		scenario{"memory", outOfMemory},
		scenario{"accounting", accountingAway},
		scenario{"unaccounted", unaccounted},
		scenario{"purged", purged},
		scenario{"leftovers", leftovers},
	)
}

// on makes a site on a cluster.
func on(t *testing.T, c *slurmtest.Cluster, env ...string) *site {
	t.Helper()
	return newSite(t, append([]string{slurmtest.EnvConf + "=" + c.Conf}, env...)...)
}

// gate is a file that scripts wait for.
func (s *site) gate(name string) string { return filepath.Join(s.dir, name) }

// open lets the scripts go on that wait for a gate.
func (s *site) open(gate string) {
	s.t.Helper()
	if err := os.WriteFile(gate, []byte("open\n"), 0o644); err != nil {
		s.t.Fatal(err)
	}
}

// until is the beginning of a script that waits for a gate.
func until(gate string) string { return "until [ -e " + gate + " ]; do sleep 0.1; done; " }

// The ends of scripts.
const (
	measure  = "[ $RANK = 1 ] || echo performance: 7 tps"
	rankOne3 = "[ $RANK = 0 ] || exit 3"
)

// source fails the test unless the verdict rests on a source.
func (r judged) source(name string) judged {
	r.t.Helper()
	if s := r.Jobs[0].Scheduler; s == nil || s.Source != name {
		r.t.Errorf("the source of the verdict is %+v, want %s\n%s", s, name, r.stderr)
	}
	return r
}

// saw fails the test unless the observations of an attempt have one of a phase and
// a word, and the last one is over.
func (s *site) saw(attempt int, phase evidence.Phase, word string) {
	s.t.Helper()
	all := s.observations("t", attempt)
	var lines []string
	found := false
	for _, o := range all {
		lines = append(lines, o.Source+" "+o.Word)
		found = found || o.Phase == phase && o.Word == word
	}
	if !found {
		s.t.Errorf("nobody saw %s in attempt %d: %s", word, attempt, strings.Join(lines, ", "))
	}
}

// A rank that runs out of memory is killed by its node: the step is OUT_OF_MEMORY,
// which the job's own row hides.
func outOfMemory(t *testing.T) {
	c := slurmtest.Start(t, map[string]string{"CGROUP": "1", "NODES": "2"})
	const swallow = `x=$(head -c 600M /dev/zero | tr "\0" x); echo ${#x}`
	memory := map[string]any{"mem": "200", "nodelist": "node[1-2]"}
	together(t,
		scenario{"nothing measured", func(t *testing.T) {
			s := on(t, c)
			s.manifest(memory, workload{name: "t", script: "[ $RANK = 0 ] || { " + swallow + "; exit; }"})
			r := s.runJSON().want(verdict.Fail).
				reason("SCHED_STATE", "OUT_OF_MEMORY", "sacct", "node")
			if node := r.rank(1).Node; node != "node2" {
				t.Errorf("rank 1 was on %q", node)
			}
			blames(r, "rank 1 (node2)")
		}},
		scenario{"measured", func(t *testing.T) {
			s := on(t, c)
			s.manifest(memory, workload{name: "t", script: "[ $RANK = 0 ] || { " + swallow + "; exit; }; echo performance: 7 tps"})
			r := s.runJSON().want(verdict.Pass).
				warning("SCHED_STATE", "OUT_OF_MEMORY", "sacct")
			if !names(r.Jobs[0].Warnings, "rank 1 (node2)") {
				t.Errorf("no warning names rank 1: %+v", r.Jobs[0].Warnings)
			}
		}},
	)
}

// blames fails the test unless the first reason, and no other rank's, is about a
// subject.
func blames(r judged, subject string) {
	r.t.Helper()
	if got := r.Jobs[0].Reasons[0].Subject; got != subject {
		r.t.Errorf("the first reason is about %s, want %s\n%s", got, subject, r.stdout)
	}
}

func names(list []verdict.Reason, subject string) bool {
	for _, x := range list {
		if x.Subject == subject {
			return true
		}
	}
	return false
}
