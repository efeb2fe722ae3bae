// Package deploytest is the suite that every target passes against the real
// thing. A target's own test is a Harness and a call of Run.
package deploytest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"assay/deploy"
	"assay/pkg/plan"
)

// Harness is what the suite needs of a target. Everything is needed unless it is
// said to be optional, or the cases that use it are declared in Cannot.
type Harness struct {
	// New returns a target as a new process would make it: it knows nothing of jobs
	// that another one submitted.
	New func(t *testing.T) deploy.Target
	// Dir returns an empty directory that every rank sees under the same path.
	Dir func(t *testing.T) string
	// Patience is how long a job of no length may take to end, however it ends.
	Patience time.Duration
	// Adapt fills in what every job needs here, such as a partition. Optional.
	Adapt func(*plan.Job)
	// Nodes says that the ranks of two nodes run under two names of nodes. A target
	// without it runs all "nodes" of a job on one.
	Nodes bool
	// Named are names of nodes that a job may ask for, one of them or several; nil: the
	// target does not let anybody choose. Optional.
	Named []string
	// Serve is what bash runs where ranks are to listen on $MASTER_PORT for the one
	// connection that they ever take, and to say hello. Optional: python3 does it.
	Serve string
	// Isolated says that each rank is alone in a container that the target makes: it
	// counts its processes by itself, so that a number of theirs says nothing on this
	// machine and Left has to tell what is left, and it shares no devices.
	Isolated bool
	// KillRank ends the wrapper of a rank with SIGKILL.
	KillRank func(t *testing.T, a plan.Attempt, rank int)
	// Left names what the target itself still has of a job: entries of its queue,
	// objects. Optional: processes and files are looked for by the suite.
	Left func(t *testing.T, h deploy.Handle) []string
	// Waiting returns a target, or changes the job, so that the job is accepted and
	// does not start.
	Waiting func(*testing.T, plan.Job) (deploy.Target, plan.Job)
	// Refused returns a target, or changes the job, so that the tool that submits
	// says no, and words that it then uses.
	Refused func(*testing.T, plan.Job) (target deploy.Target, job plan.Job, words string)
	// Lacking returns a target as it is where a tool that submits is not there, and
	// the tool's name.
	Lacking func(*testing.T) (target deploy.Target, tool string)
	// Purged returns what the handle of a job that ended becomes when the target
	// has nothing of that id any more.
	Purged func(*testing.T, deploy.Handle) deploy.Handle
	// Recycled returns what it becomes when its id belongs to something else that
	// runs, and says whether that still runs.
	Recycled func(*testing.T, deploy.Handle) (h deploy.Handle, runs func() bool)
	// Mute returns a target, or changes the job, so that questions about the job and
	// requests to end it go wrong in a way, while it is told so.
	Mute func(*testing.T, Way, plan.Job) (target deploy.Target, job plan.Job, mute func(bool))

	// Cannot gives the reason for each case that the target cannot have, by its
	// name. They do not count as passed.
	Cannot map[string]string

	queues, finds bool // what the target is: a deploy.Queue, a deploy.Finder
}

// Way is how a question goes wrong.
type Way int

// The ways.
const (
	Fails Way = iota + 1 // the tool says that it could not ask
	Hangs                // the tool never answers
)

// testCase is one promise that every target keeps.
type testCase struct {
	name string
	run  func(*testing.T, Harness)
	hook func(Harness) bool // whether the harness has what the case needs; nil: always
}

func cases() []testCase {
	return []testCase{
		{name: "render is pure", run: renderIsPure},
		{name: "handle survives JSON and a new process", run: handleSurvives},
		{name: "answers come in the order of the questions", run: answersInOrder},
		{name: "submission without an answer is found", run: found, hook: func(h Harness) bool { return h.finds }},
		{name: "ranks keep their exit codes", run: exitCodes},
		{name: "the end of a rank leaves the others", run: endOfOne},
		{name: "death by signal", run: deathBySignal},
		{name: "killed wrapper leaves no end marker", run: killedWrapper},
		{name: "output is complete", run: outputIsComplete},
		{name: "arguments and environment arrive unchanged", run: hostileWords},
		{name: "directories may have any name", run: hostileDirectory},
		{name: "rank environment", run: rankEnvironment},
		{name: "a client waits until its server is ready", run: clientWaits},
		{name: "server that is never ready", run: neverReady},
		{name: "server that ends before its client began", run: endsEarly},
		{name: "server that goes on is released", run: lingers},
		{name: "named nodes", run: namedNodes, hook: func(h Harness) bool { return len(h.Named) > 0 }},
		{name: "cancel before the start", run: cancelBeforeStart, hook: func(h Harness) bool { return h.Waiting != nil }},
		{name: "cancel right after the submission", run: cancelAtOnce},
		{name: "cancel while running, twice and after the end", run: cancelRunning},
		{name: "time limit", run: timeLimit},
		{name: "refused submission carries the tool's words", run: refused, hook: func(h Harness) bool { return h.Refused != nil }},
		{name: "a job that cannot keep records is refused", run: noRoom},
		{name: "missing tool is named", run: missingTool, hook: func(h Harness) bool { return h.Lacking != nil }},
		{name: "purged job is judged by its records", run: purged, hook: func(h Harness) bool { return h.Purged != nil }},
		{name: "purged job without records is not judged by absence", run: purgedAndLost, hook: func(h Harness) bool { return h.Purged != nil }},
		{name: "recycled id is not taken for the job", run: recycled, hook: func(h Harness) bool { return h.Recycled != nil }},
		{name: "failing status command", run: func(t *testing.T, h Harness) { muted(t, h, Fails) }, hook: func(h Harness) bool { return h.Mute != nil }},
		{name: "hanging status command", run: func(t *testing.T, h Harness) { muted(t, h, Hangs) }, hook: func(h Harness) bool { return h.Mute != nil }},
		{name: "the end of the context leaves the job", run: contextEnd},
		{name: "twenty submissions at once", run: manyAtOnce},
		{name: "nothing is left behind", run: nothingLeft},
	}
}

// Run runs every case of the suite, several at the same time. A case that the
// harness has no hook for has to be declared, or the suite fails. One that is
// declared is no subtest, so that nothing says that it passed: the log of t says
// how many cases there are, which of them were not run, and why.
func Run(t *testing.T, h Harness) {
	t.Helper()
	target := h.New(t)
	if q, ok := target.(deploy.Queue); ok {
		h.queues = q.Queues()
	}
	_, h.finds = target.(deploy.Finder)
	have, problems := h.choose(cases())
	for _, p := range problems {
		t.Error(p)
	}
	t.Logf("the target has %d of the suite's %d cases", len(have), len(cases()))
	for _, name := range slices.Sorted(maps.Keys(h.Cannot)) {
		t.Logf("not run: %s: %s", name, h.Cannot[name])
	}
	for _, c := range have {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			c.run(t, h)
		})
	}
}

// choose returns the cases that the target has, and what is wrong with what the
// harness says of the others.
func (h Harness) choose(all []testCase) (have []testCase, problems []string) {
	known := map[string]bool{}
	for _, c := range all {
		known[c.name] = true
		reason, declared := h.Cannot[c.name]
		able := c.hook == nil || c.hook(h)
		switch {
		case able && declared:
			problems = append(problems, fmt.Sprintf("the harness declares that the target cannot have the case %q (%s), and nothing hinders it", c.name, reason))
		case able:
			have = append(have, c)
		case !declared:
			problems = append(problems, fmt.Sprintf("the case %q has no hook in the harness or no method of the target: give it, or declare in Cannot why the target cannot have the case", c.name))
		case reason == "":
			problems = append(problems, fmt.Sprintf("the harness gives no reason why the target cannot have the case %q", c.name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(h.Cannot)) {
		if !known[name] {
			problems = append(problems, fmt.Sprintf("the harness declares that the target cannot have the case %q, and there is no such case", name))
		}
	}
	if h.queues && h.Waiting == nil {
		problems = append(problems, "the target says that it has a queue, and the harness has no hook Waiting")
	}
	return have, problems
}

// String returns the word for a way.
func (w Way) String() string {
	switch w {
	case Fails:
		return "fails"
	case Hangs:
		return "hangs"
	}
	return fmt.Sprintf("way %d", int(w))
}
