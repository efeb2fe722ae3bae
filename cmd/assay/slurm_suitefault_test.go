//go:build slurm

package main

import (
	"fmt"
	"slices"
	"strings"

	"assay/pkg/report"
	"assay/pkg/verdict"
)

// judgedRow is a test of the suite of faults, by the card that it is made of, and what
// each job of it has to come to: the verdict, the codes of its reasons, and every
// attempt where there were several.
type judgedRow struct {
	card    string
	verdict string
	reasons string
	history string
}

// faultRows are one row for each way in which an acceptance test can go wrong. What the
// scheduler says of the exit code comes after what the rank says, and only where that
// does not judge the hardware.
var faultRows = []judgedRow{
	{card: "acceptance-panics", verdict: "ERROR", reasons: "SKIP_UNDECLARED SCHED_STATE"},
	{card: "acceptance-exits-1", verdict: "FAIL", reasons: "RANK_EXIT"},
	{card: "acceptance-exits-3", verdict: "ERROR", reasons: "RANK_EXIT SCHED_STATE"},
	{card: "acceptance-killed", verdict: "ERROR", reasons: "RANK_SIGNAL SCHED_STATE"},
	{card: "acceptance-says-nothing", verdict: "ERROR", reasons: "NOTHING_MEASURED"},
	{card: "acceptance-nan", verdict: "FAIL", reasons: "METRIC_NOT_A_NUMBER"},
	{card: "acceptance-omits", verdict: "FAIL", reasons: "METRIC_ABSENT"},
	{card: "acceptance-not-measurable", verdict: "FAIL", reasons: "THRESHOLD"},
	{card: "acceptance-not-measurable-let-pass", verdict: "PASS"},
	{card: "acceptance-skips", verdict: "SKIP", reasons: "SKIP_DECLARED"},
	{card: "acceptance-error-then-pass", verdict: "PASS", history: "1 ERROR, 2 retry PASS"},
	{card: "acceptance-fail-once", verdict: "FAIL", reasons: "THRESHOLD"},
	{card: "acceptance-server-never-ready", verdict: "ERROR", reasons: "ROOT_NOT_READY SCHED_STATE"},
	{card: "acceptance-server-ends-early", verdict: "ERROR", reasons: "ROOT_ENDED SCHED_STATE"},
	{card: "acceptance-client-hangs", verdict: "ERROR", reasons: "RANK_TIMEOUT RANK_TIMEOUT SCHED_STATE"},
	{card: "acceptance-rank-hangs", verdict: "ERROR", reasons: "RANK_TIMEOUT SCHED_STATE"},
	{card: "acceptance-rank-slow", verdict: "FAIL", reasons: "THRESHOLD"},
}

// faultySuites are suites of which tests go wrong.
func faultySuites() map[string]func(*session) {
	return map[string]func(*session){
		"one test for each fault": func(s *session) {
			s.shipModels()
			suite := "name: faults\nmax_concurrent_nodes: all\npairs: node2:node4\ntests:\n"
			for _, row := range faultRows {
				suite += "  - " + row.card + "\n"
			}
			s.write("models/suites/faults.yaml", suite)
			r := s.assay(suiteArgs("models/suites/faults.yaml", "node[1-4]")...)
			if r.code != 3 || r.run.Verdict != verdict.Fail {
				s.Fatalf("exit code %d and %v, want 3 and FAIL\n%s\n%s", r.code, r.run.Verdict, r.stdout, r.stderr)
			}
			r.placed()
			attempts := 0
			for _, row := range faultRows {
				attempts += r.row(row)
			}
			// On the last rank alone the others did not wait in vain.
			hung := r.jobOf("acceptance-rank-hangs")
			if subject := hung.Reasons[0].Subject; subject != "rank 3 (node4)" {
				s.Errorf("the rank that hung is called %q", subject)
			}
			if n := s.submitted(); n != attempts {
				s.Errorf("%d jobs were submitted for %d attempts", n, attempts)
			}
			rows := map[string]bool{} // each attempt has one or more
			for _, row := range s.rows() {
				rows[row["model"]+" "+row["nodes"]+" "+row["attempt"]] = true
			}
			if len(rows) != attempts {
				s.Errorf("perf.csv has rows of %d attempts, and there were %d", len(rows), attempts)
			}
		},
		"stop on fail": func(s *session) {
			s.cards(
				script{name: "good", run: "echo valueCount=1"},
				script{name: "bad", run: "[ $ASSAY_NODE != node2 ] || { echo 'too few lanes' >&2; exit 1; }; echo valueCount=1"},
			)
			s.write("s.yaml", "max_concurrent_nodes: all\ntests: [{card: good, name: first}, {card: bad, name: second, stop_on_fail: true}, {card: good, name: third}]\n")
			r := s.assay(suiteArgs("s.yaml", "node[1-2]")...)
			if r.code != 3 {
				s.Fatalf("exit code %d, want 3\n%s\n%s", r.code, r.stdout, r.stderr)
			}
			r.words("first.node1 PASS", "first.node2 PASS", "second.node1 PASS", "second.node2 FAIL", "third.node1 ERROR", "third.node2 ERROR")
			for _, id := range []string{"third.node1", "third.node2"} {
				if got := texts(r.jobOf(id).Reasons); len(got) != 1 || !strings.HasPrefix(got[0], "NOT_RUN ") || !strings.Contains(got[0], "second.node2") {
					s.Errorf("reasons of %s: %q", id, got)
				}
			}
			if n := s.submitted(); n != 4 {
				s.Errorf("%d jobs were submitted, want 4", n)
			}
		},
		"isolate a slow node": func(s *session) {
			s.shipModels()
			s.write("s.yaml", "max_concurrent_nodes: all\ntests: [{card: acceptance-rank-slow, name: step}]\n")
			if r := s.assay(suiteArgs("s.yaml", "node[1-4]")...); r.code != 3 {
				s.Fatalf("exit code %d, want 3\n%s\n%s", r.code, r.stdout, r.stderr)
			}
			r := s.assay("isolate", "r")
			if r.code != 0 {
				s.Fatalf("exit code %d\n%s\n%s", r.code, r.stdout, r.stderr)
			}
			s.match("what it says", r.stdout, `(?s).*\nnode node3 is to blame: the other 3 nodes pass together \(\d+ jobs\)\n`)
			for id, list := range s.nodeLists() {
				if n := len(s.hosts(list)); n < 2 {
					s.Errorf("job %s ran on %s: a group has two nodes at least", id, list)
				}
			}
		},
	}
}

// row checks the jobs of a test, and returns how many attempts were made at them.
func (r *result) row(want judgedRow) (attempts int) {
	r.s.Helper()
	found := 0
	for _, j := range r.run.Jobs {
		if j.Test != want.card {
			continue
		}
		found++
		attempts += j.Attempts
		got := judgedRow{card: j.Test, verdict: j.Verdict.String(), reasons: codes(j.Reasons), history: history(j)}
		if got != want || len(j.Warnings) > 0 {
			r.s.Errorf("%s is %+v, want %+v; reasons %q, warnings %q", j.ID, got, want, texts(j.Reasons), texts(j.Warnings))
		}
		for _, reason := range j.Reasons { // of a node, whoever is blamed is on it
			if j.Scope == "node" && strings.HasPrefix(reason.Subject, "rank ") && reason.Subject != "rank 0 ("+j.Nodes[0]+")" {
				r.s.Errorf("%s blames %s", j.ID, reason.Subject)
			}
		}
	}
	if found == 0 {
		r.s.Errorf("%s was not run", want.card)
	}
	return attempts
}

func codes(reasons []verdict.Reason) string {
	var all []string
	for _, r := range reasons {
		all = append(all, r.Code)
	}
	return strings.Join(all, " ")
}

// history is what the attempts at a job came to, "1 ERROR, 2 retry PASS".
func history(j report.Job) string {
	var all []string
	for _, a := range j.History {
		all = append(all, strings.Join(strings.Fields(fmt.Sprint(a.Attempt, " ", a.Trigger, " ", a.Verdict)), " "))
	}
	return strings.Join(all, ", ")
}

// words checks the verdicts of all jobs in their order, "ID VERDICT".
func (r *result) words(want ...string) *result {
	r.s.Helper()
	var got []string
	for _, j := range r.run.Jobs {
		got = append(got, j.ID+" "+j.Verdict.String())
	}
	if !slices.Equal(got, want) {
		r.s.Errorf("the verdicts are\n\t%s\nwant\n\t%s\n%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"), r.stderr)
	}
	return r
}

// script is a card of scope node under the acceptance contract.
type script struct {
	name  string
	run   string
	scope string // node when empty
	more  object
}

// cards writes cards that are bash scripts.
func (s *session) cards(all ...script) {
	s.Helper()
	var list []object
	for _, c := range all {
		scope := c.scope
		if scope == "" {
			scope = "node"
		}
		list = append(list, merge(object{
			"name": c.name, "contract": "acceptance", "scope": scope, "command": []string{"bash", "-c", c.run}, "timeout": 120,
			"thresholds": []object{{"metric": "valueCount", "min": 1}},
		}, c.more))
	}
	s.writeJSON("models/cards.json", list)
}
