//go:build slurm

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// three is a suite of which the second test waits until the test lets it go on.
func (s *session) three() {
	s.Helper()
	s.cards(
		script{name: "good", run: "echo valueCount=1"},
		script{name: "waits", run: s.arrives() + until(s.gate()) + "echo valueCount=1"},
	)
	s.write("s.yaml", "name: three\nmax_concurrent_nodes: all\ntests: [{card: good, name: first}, {card: waits, name: second}, {card: good, name: third}]\n")
}

// gate is the file that scripts wait for.
func (s *session) gate() string { return filepath.Join(s.dir, "gate") }

// arrives is the beginning of a script that tells the test on which node it runs.
func (s *session) arrives() string { return `touch "` + s.dir + `/at-$ASSAY_NODE"; ` }

// awaitArrival waits until such a script runs on nodes.
func (s *session) awaitArrival(nodes ...string) {
	s.Helper()
	for _, n := range nodes {
		s.Await("a script on "+n, func() bool { return exists(filepath.Join(s.dir, "at-"+n)) })
	}
}

// sixJobs is what the suite of three comes to on two nodes.
var sixJobs = []string{"first.node1 PASS", "first.node2 PASS", "second.node1 PASS", "second.node2 PASS", "third.node1 PASS", "third.node2 PASS"}

// interruptedSuites are suites whose process is killed, and that are resumed.
func interruptedSuites() map[string]func(*session) {
	return map[string]func(*session){
		"kill -9 while a test runs, then resume": func(s *session) {
			s.three()
			p := s.start(suiteArgs("s.yaml", "node[1-2]")...)
			s.awaitArrival("node1", "node2")
			kept := s.verdictBytes(1, "first.node1", "first.node2")
			p.kill9()
			resumed := s.start("run", "--resume", "r", "--json")
			s.write("gate", "")
			resumed.wait().resumed(kept, 6, sixJobs...)
		},
		"kill -9 between two tests, then resume": func(s *session) {
			s.three()
			s.write("gate", "")
			s.killsAt(3, "before")
			p := s.start(suiteArgs("s.yaml", "node[1-2]")...)
			if r := p.wait(); r.code != -1 {
				s.Fatalf("exit code %d, want a death by SIGKILL\n%s", r.code, r.stderr)
			}
			kept := s.verdictBytes(1, "first.node1", "first.node2")
			s.assay("run", "--resume", "r", "--json").resumed(kept, 6, sixJobs...)
		},
		"kill -9 right after sbatch of a test, then resume": func(s *session) {
			s.three()
			s.write("gate", "")
			s.killsAt(4, "after")
			p := s.start(suiteArgs("s.yaml", "node[1-2]")...)
			if r := p.wait(); r.code != -1 {
				s.Fatalf("exit code %d, want a death by SIGKILL\n%s", r.code, r.stderr)
			}
			kept := s.verdictBytes(1, "first.node1", "first.node2")
			s.assay("run", "--resume", "r", "--json").resumed(kept, 6, sixJobs...)
		},
		"resume what could not be judged": func(s *session) {
			s.cards(
				script{name: "good", run: "echo valueCount=1"},
				script{name: "flaky", run: "echo valueCount=1; [ -e " + s.gate() + " ] || [ $ASSAY_NODE = node1 ] || exit 3"},
				script{name: "bad", run: "echo valueCount=0"},
			)
			s.write("s.yaml", "name: mixed\nmax_concurrent_nodes: all\ntests: [good, flaky, bad]\n")
			want := []string{"good.node1 PASS", "good.node2 PASS", "flaky.node1 PASS", "flaky.node2 ERROR", "bad.node1 FAIL", "bad.node2 FAIL"}
			if r := s.assay(suiteArgs("s.yaml", "node[1-2]")...).words(want...); r.code != 3 {
				s.Fatalf("exit code %d, want 3\n%s", r.code, r.stderr)
			}
			kept := s.verdictBytes(1, "good.node1", "good.node2", "flaky.node1", "flaky.node2", "bad.node1", "bad.node2")
			s.write("gate", "")
			want[3] = "flaky.node2 PASS"
			r := s.assay("run", "--resume", "r", "--json").resumed(kept, 7, want...)
			if got := history(r.jobOf("flaky.node2")); got != "1 ERROR, 2 resume PASS" {
				s.Errorf("the history is %q", got)
			}
		},
	}
}

// kill9 kills an assay.
func (p *started) kill9() {
	p.s.Helper()
	p.signal(os.Kill)
	if r := p.wait(); r.code != -1 {
		p.s.Fatalf("exit code %d after SIGKILL\n%s", r.code, r.stderr)
	}
}

// killsAt lets assay be killed at a submission, the first of which is 1, before or after
// SLURM gets it.
func (s *session) killsAt(n int, when string) {
	s.Helper()
	s.replaceTool("sbatch", `echo call >>"$dir/sbatch.log"
[ $(wc -l <"$dir/sbatch.log") = `+strconv.Itoa(n)+` ] || exec "$real" "$@"
[ `+when+` = before ] || out=$("$real" "$@") || exit
kill -KILL $PPID`)
}

// resumed checks what a run that was resumed came to: the verdicts, that what was judged
// before is what it was, and how many jobs SLURM got for it in all.
func (r *result) resumed(kept map[string]string, submitted int, want ...string) *result {
	r.s.Helper()
	r.words(want...)
	for path, was := range kept {
		if now, err := os.ReadFile(path); err != nil || string(now) != was {
			r.s.Errorf("%s changed: %v\n%s\nwas\n%s", path, err, now, was)
		}
	}
	if n := r.s.submitted(); n != submitted {
		r.s.Errorf("%d jobs were submitted, want %d", n, submitted)
	}
	return r
}

// interlocks are about which nodes are under load at the same time.
func interlocks() map[string]func(*session) {
	return map[string]func(*session){
		"a node of an active run": func(s *session) {
			s.cards(script{name: "good", run: s.arrives() + until(s.gate()) + "echo valueCount=1"})
			s.write("s.yaml", "max_concurrent_nodes: all\ntests: [good]\n")
			first := s.start(suiteArgs("s.yaml", "node[1-2]")...)
			s.awaitArrival("node1", "node2")
			second := append(suiteArgs("s.yaml", "node[2-3]"), "--run-id", "second")
			r := s.assay(second...)
			if r.code != 4 || !strings.Contains(r.stderr, "run r uses node2") || strings.Contains(r.stderr, "node3;") {
				s.Errorf("exit code %d, want 4, and node2 named\n%s", r.code, r.stderr)
			}
			if n := s.submitted(); n != 2 {
				s.Errorf("%d jobs were submitted, want the 2 of the first run", n)
			}
			forced := s.start(append(second, "--force")...)
			s.awaitArrival("node3")
			s.write("gate", "")
			if r := forced.wait(); r.code != 0 || !slices.Equal(r.run.Forced, []string{s.path()}) {
				s.Errorf("exit code %d, forced %q, want 0 and %s\n%s\n%s", r.code, r.run.Forced, s.path(), r.stdout, r.stderr)
			}
			if r := first.wait(); r.code != 0 {
				s.Errorf("the first run: exit code %d\n%s", r.code, r.stderr)
			}
		},
		"more nodes under load than may be": func(s *session) {
			s.cards(script{name: "link", scope: "pair", run: "echo valueCount=1"})
			s.write("s.yaml", "tests: [link]\n")
			r := s.assay(suiteArgs("s.yaml", "node[1-2]")...)
			if r.code != 4 || !strings.Contains(r.stderr, "max_concurrent_nodes") {
				s.Errorf("exit code %d, want 4\n%s", r.code, r.stderr)
			}
			if n := s.submitted(); n != 0 || exists(s.path()) {
				s.Errorf("%d jobs were submitted, and there is a run: %v", n, exists(s.path()))
			}
		},
		"one node under load": func(s *session) {
			s.noted("1")
			if most := s.mostAtOnce(); most != 1 {
				s.Errorf("%d nodes were under load at the same time, want 1", most)
			}
		},
		"two nodes under load": func(s *session) {
			s.noted("2")
			if most := s.mostAtOnce(); most > 2 {
				s.Errorf("%d nodes were under load at the same time, want 2 at most", most)
			}
		},
		"all nodes under load": func(s *session) {
			// None goes on before all are there.
			s.cards(script{name: "meet", run: s.arrives() + "until [ -e " + s.dir + "/at-node4 ] && [ -e " + s.dir + "/at-node1 ]; do sleep 0.1; done; echo valueCount=1"})
			s.write("s.yaml", "max_concurrent_nodes: all\ntests: [meet]\n")
			if r := s.assay(suiteArgs("s.yaml", "node[1,4]")...).words("meet.node1 PASS", "meet.node4 PASS"); r.code != 0 {
				s.Errorf("exit code %d\n%s", r.code, r.stderr)
			}
		},
	}
}

// noted runs two tests on four nodes with a limit of nodes under load. Each job notes
// when it began and ended, by the clock that the nodes of these tests share.
func (s *session) noted(limit string) {
	s.Helper()
	s.cards(script{name: "noted", run: `note() { echo "$1 $ASSAY_NODE $(date +%s%N)" >>` + s.dir + `/log-$ASSAY_NODE; }
note begin; sleep 0.3; note end; echo valueCount=1`})
	s.write("s.yaml", "max_concurrent_nodes: "+limit+"\ntests: [{card: noted, name: a}, {card: noted, name: b, repeats: 2}]\n")
	r := s.assay(suiteArgs("s.yaml", "node[1-4]")...)
	if r.code != 0 || len(r.run.Jobs) != 8 {
		s.Fatalf("exit code %d, %d jobs\n%s\n%s", r.code, len(r.run.Jobs), r.stdout, r.stderr)
	}
	r.placed()
}

// mostAtOnce is how many jobs were between their begin and their end at the same time.
func (s *session) mostAtOnce() int {
	s.Helper()
	type note struct {
		at   int64
		step int
	}
	var notes []note
	for n := range 4 {
		for line := range strings.Lines(s.awaitFile(filepath.Join(s.dir, fmt.Sprintf("log-node%d", n+1)))) {
			f := strings.Fields(line)
			at, err := strconv.ParseInt(f[2], 10, 64)
			if err != nil {
				s.Fatal(err)
			}
			notes = append(notes, note{at, map[string]int{"begin": 1, "end": -1}[f[0]]})
		}
	}
	if len(notes) != 2*(4+2*4) {
		s.Fatalf("%d notes, want a begin and an end of 12 attempts", len(notes))
	}
	slices.SortFunc(notes, func(a, b note) int { return int(a.at - b.at) })
	most, now := 0, 0
	for _, n := range notes {
		now += n.step
		most = max(most, now)
	}
	return most
}
