//go:build slurm

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"assay/pkg/report"
	"assay/pkg/rundir"
	"assay/pkg/verdict"
)

// TestSlurmSuite runs suites over named nodes of a real cluster, the shipped ones and
// ones that go wrong, and looks at what a user gets and at what SLURM knows of it.
func TestSlurmSuite(t *testing.T) {
	t.Parallel()
	bin, err := staticAssay()
	if err != nil {
		t.Fatal(err)
	}
	for _, scenarios := range []map[string]func(*session){shippedSuites(), faultySuites(), interruptedSuites(), interlocks()} {
		for name, scenario := range scenarios {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				scenario(newSession(t, bin))
			})
		}
	}
}

// shipModels puts the shipped cards, their scripts and suites where assay is run.
func (s *session) shipModels() {
	s.Helper()
	if err := os.CopyFS(filepath.Join(s.dir, "models"), os.DirFS("../../models")); err != nil {
		s.Fatal(err)
	}
}

// suiteArgs are the arguments that run a suite on nodes.
func suiteArgs(file, nodes string, more ...string) []string {
	return append([]string{"run", "--suite", file, "--target", "slurm", "--nodes", nodes, "--run-id", "r", "--json"}, more...)
}

// shippedSuites are the suites of models/suites as they are.
func shippedSuites() map[string]func(*session) {
	return map[string]func(*session){
		"smoke": func(s *session) {
			r := s.passes("smoke")
			r.shape("link", 4, 2)
			if n := len(r.run.Jobs); n != 3*4+4+1 {
				s.Errorf("%d jobs, want 3 tests on each of 4 nodes, 4 links and a group", n)
			}
		},
		"network": func(s *session) {
			r := s.passes("network")
			r.shape("link", 12, 3) // two variants of 6 links
			if n := len(r.run.Pairs); n != 2 {
				s.Fatalf("%d matrices, want one for each variant\n%s", n, r.stderr)
			}
			for _, p := range r.run.Pairs {
				r.matrix(p, 3)
			}
		},
		"acceptance": func(s *session) {
			r := s.passes("acceptance", "--max-concurrent-nodes", "4")
			for _, j := range r.run.Jobs {
				if j.Test == "cpu" && (j.Attempts != 2 || len(j.History) != 2 || j.History[1].Trigger != verdict.TriggerRepeat) {
					s.Errorf("%s: %d attempts, history %+v, want 2 by repeats", j.ID, j.Attempts, j.History)
				}
				if j.Optional != (j.Test == "disk") {
					s.Errorf("%s: optional is %v", j.ID, j.Optional)
				}
				if j.Gates == nil || j.Gates.Hardware != "*" {
					s.Errorf("%s: judged by %+v", j.ID, j.Gates)
				}
			}
		},
	}
}

// passes runs a shipped suite on the four nodes, and checks that every job of it passed
// where it should have run.
func (s *session) passes(name string, more ...string) *result {
	s.Helper()
	s.shipModels()
	r := s.assay(suiteArgs("models/suites/"+name+".yaml", "node[1-4]", more...)...)
	if r.code != 0 || r.run.Verdict != verdict.Pass || r.run.Suite != name {
		s.Fatalf("suite %q ended with exit code %d and %v\n%s\n%s", r.run.Suite, r.code, r.run.Verdict, r.stdout, r.stderr)
	}
	for _, j := range r.run.Jobs {
		if j.Verdict != verdict.Pass || len(j.Warnings) > 0 {
			s.Errorf("%s: %v, reasons %q, warnings %q", j.ID, j.Verdict, texts(j.Reasons), texts(j.Warnings))
		}
	}
	r.placed()
	return r
}

// placed checks that each job ran on exactly the nodes that it is about: as its ranks
// say, and as the controller does.
func (r *result) placed() *result {
	r.s.Helper()
	where := r.s.nodeLists()
	for _, j := range r.run.Jobs {
		var ran []string
		for _, k := range j.Ranks {
			ran = append(ran, k.Node)
		}
		want := map[string]int{"node": 1, "pair": 2, "group": 4}[j.Scope]
		if len(j.Nodes) != want || !slices.Equal(ran, j.Nodes) {
			r.s.Errorf("%s of scope %s is about %q, and its ranks ran on %q", j.ID, j.Scope, j.Nodes, ran)
		}
		if strings.Contains(j.ID, ".") && !strings.HasSuffix(j.ID, "."+strings.Join(j.Nodes, ".")) {
			r.s.Errorf("job %s ran on %q", j.ID, j.Nodes)
		}
		if j.Scheduler == nil {
			r.s.Errorf("%s: SLURM said nothing", j.ID)
			continue
		}
		if got := r.s.hosts(where[j.Scheduler.JobID]); !slices.Equal(got, slices.Sorted(slices.Values(j.Nodes))) {
			r.s.Errorf("SLURM ran %s on %q, and it is about %q", j.ID, got, j.Nodes)
		}
	}
	return r
}

// nodeLists are the host lists of all jobs of the session, by their ids.
func (s *session) nodeLists() map[string]string {
	s.Helper()
	lists := map[string]string{}
	for line := range strings.Lines(s.Squeue("--states=all", "--Format=JobID:20,NodeList:200,Comment:4096")) {
		if f := strings.Fields(line); len(f) > 2 && strings.Contains(line, "dir="+s.dir+"/") {
			lists[f[0]] = f[1]
		}
	}
	return lists
}

// hosts are the nodes of a host list of this cluster, sorted. One at a time is asked of
// scontrol, which is not what assay reads them with.
func (s *session) hosts(list string) []string {
	s.Helper()
	if list == "" {
		return nil
	}
	return slices.Sorted(strings.FieldsSeq(s.Scontrol("show", "hostnames", list)))
}

// shape checks how many links a test has, and in how many rounds; the links of a round
// have no node in common.
func (r *result) shape(test string, links, rounds int) *result {
	r.s.Helper()
	n, last := 0, 0
	busy := map[string]string{}
	for _, j := range r.run.Jobs {
		if j.Test != test {
			continue
		}
		n++
		last = max(last, j.Round)
		for _, node := range j.Nodes {
			at := fmt.Sprint(j.Variant, j.Round, node)
			if other, taken := busy[at]; taken {
				r.s.Errorf("%s and %s are on %s in round %d", other, j.ID, node, j.Round)
			}
			busy[at] = j.ID
		}
	}
	if n != links || last != rounds {
		r.s.Errorf("test %s has %d links in %d rounds, want %d in %d", test, n, last, links, rounds)
	}
	return r
}

// matrix checks that every link of four nodes has its value, its verdict and its round.
func (r *result) matrix(p report.Pairs, rounds int) {
	r.s.Helper()
	if !slices.Equal(p.Nodes, []string{"node1", "node2", "node3", "node4"}) || p.Metric != "tcpBandwidthGbps" || p.NotMeasured != 0 {
		r.s.Errorf("the matrix is about %s of %q, %d not measured", p.Metric, p.Nodes, p.NotMeasured)
		return
	}
	for i := range p.Nodes {
		for k := range p.Nodes {
			value, word, round := p.Cells[i][k], p.Words[i][k], p.Rounds[i][k]
			whole := value != nil && *value > 0 && word == "PASS" && round >= 1 && round <= rounds
			if i == k {
				whole = value == nil && round == 0
			}
			if !whole || round != p.Rounds[k][i] {
				r.s.Errorf("%s–%s of %v: value %v, %q, round %d", p.Nodes[i], p.Nodes[k], p.Variant, value, word, round)
			}
		}
	}
}

// jobOf is the job of a run with an id.
func (r *result) jobOf(id string) report.Job {
	r.s.Helper()
	for _, j := range r.run.Jobs {
		if j.ID == id {
			return j
		}
	}
	r.s.Fatalf("there is no job %s; exit code %d\n%s\n%s", id, r.code, r.stdout, r.stderr)
	return report.Job{}
}

// verdictBytes are the verdicts of an attempt of jobs of the run, as they were written.
func (s *session) verdictBytes(attempt int, jobs ...string) map[string]string {
	s.Helper()
	kept := map[string]string{}
	for _, id := range jobs {
		path := filepath.Join(rundir.AttemptDir(s.path(), id, attempt), rundir.VerdictFile)
		kept[path] = s.awaitFile(path)
	}
	return kept
}
