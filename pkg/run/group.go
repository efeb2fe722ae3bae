package run

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"assay/pkg/evidence"
	"assay/pkg/exitcode"
	"assay/pkg/isolate"
	"assay/pkg/phrase"
	"assay/pkg/plan"
	"assay/pkg/report"
	"assay/pkg/rundir"
	"assay/pkg/threshold"
	"assay/pkg/verdict"
)

// Group is a job of scope group of a run, which can be run again on some of its nodes.
type Group struct {
	Nodes   []string   // of the job, in the order of its ranks
	Judged  report.Job // as the run ended
	Metric  string     // whose value tells how good a part of the nodes is; empty: the job is gated by none
	attempt plan.Attempt
	ledger  rundir.Ledger
	data    []byte // the manifest of the run
}

// FindGroup returns the job of a run that ended whose nodes are to be told apart: the
// one that is named by its id, key or test, else the only job of scope group that failed.
// bounded says that a bound will be given by which a job that passed is bad, so that it
// need not have failed. An error carries exitcode.Invalid where the run has no such job.
func FindGroup(r *rundir.Run, rep report.Run, name string, bounded bool) (*Group, error) {
	j, err := chooseGroup(rep, name, bounded)
	if err != nil {
		return nil, exitcode.With(exitcode.Invalid, fmt.Errorf("run %s: %w", rep.RunID, err))
	}
	a, err := rundir.ReadAttempt(r.AttemptDir(j.ID, 1))
	if err != nil {
		return nil, exitcode.With(exitcode.Error, fmt.Errorf("job %s: %w", j.ID, err))
	}
	data, err := r.Manifest()
	if err != nil {
		return nil, exitcode.With(exitcode.Error, err)
	}
	if digest := Digest(data); digest != r.Ledger.ManifestDigest {
		return nil, exitcode.Errorf(exitcode.Error, "%s is not what run %s was made of: its digest is %s, and that in %s is %s; what failed cannot be run again",
			filepath.Join(r.Dir, rundir.ManifestFile), rep.RunID, digest, rundir.LedgerFile, r.Ledger.ManifestDigest)
	}
	g := &Group{Nodes: a.Job.Nodes, Judged: j, attempt: a, ledger: r.Ledger, data: bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))}
	if len(g.Nodes) == 0 {
		g.Nodes = j.Nodes // the target chose them
	}
	if len(g.Nodes) < 2 || len(g.Nodes) != a.Job.NNodes {
		return nil, exitcode.Errorf(exitcode.Invalid, "run %s: job %s had %s, and ranks were seen on %d: which nodes to tell apart is not known; name them when you run it (--nodes)",
			rep.RunID, j.ID, phrase.Count(a.Job.NNodes, "node"), len(g.Nodes))
	}
	if t := a.Job.Expect.Thresholds; len(t) > 0 {
		g.Metric = t[0].Metric
	}
	return g, nil
}

func chooseGroup(rep report.Run, name string, bounded bool) (report.Job, error) {
	var groups, failed []report.Job
	for _, j := range rep.Jobs {
		if name != "" && name != j.ID && name != j.Key && name != j.Test {
			continue
		}
		switch {
		case j.Scope != "group":
			if name != "" {
				return j, fmt.Errorf("job %s is of scope %s: only the nodes of a group can be told apart by running parts of it", j.ID, j.Scope)
			}
			continue
		case j.Verdict == verdict.Fail || j.Verdict == verdict.Error:
			failed = append(failed, j)
		}
		groups = append(groups, j)
	}
	switch {
	case len(groups) == 0 && name != "":
		return report.Job{}, fmt.Errorf("there is no job %q", name)
	case len(groups) == 0:
		return report.Job{}, fmt.Errorf("no job is of scope group, and only the nodes of a group can be told apart by running parts of it")
	case len(failed) == 1:
		return failed[0], nil
	case len(failed) > 1:
		return report.Job{}, fmt.Errorf("%d groups failed (%s); say which with --job", len(failed), jobNames(failed))
	case !bounded:
		return report.Job{}, fmt.Errorf("no group failed (%s); for one that is slow say what is too slow: --metric NAME with --min or --max", jobNames(groups))
	case len(groups) > 1:
		return report.Job{}, fmt.Errorf("it has %d groups (%s); say which with --job", len(groups), jobNames(groups))
	}
	return groups[0], nil
}

func jobNames(jobs []report.Job) string {
	var out []string
	for _, j := range jobs {
		out = append(out, j.ID+" "+j.Verdict.String())
	}
	return strings.Join(out, ", ")
}

// Bound makes what violates a threshold bad, instead of what violates those that the
// group has on the same metric.
func (g *Group) Bound(t threshold.Threshold) {
	x := &g.attempt.Job.Expect
	x.Thresholds = append(slices.DeleteFunc(slices.Clone(x.Thresholds), func(o threshold.Threshold) bool { return o.Metric == t.Metric }), t)
	g.Metric = t.Metric
}

// Prepare plans the job of the group on some of its nodes, as the only one of a run. A
// job that cannot be judged is not made again: whoever asks decides that. timeout, in
// seconds, is for every rank; nil: as it was.
func (g *Group) Prepare(ctx context.Context, env, nodes []string, timeout *int) (*Prepared, error) {
	data, err := g.manifest()
	if err != nil {
		return nil, exitcode.With(exitcode.Error, fmt.Errorf("the manifest of run %s: %w", g.ledger.RunID, err))
	}
	job := g.attempt.Job
	if timeout == nil {
		timeout = &job.TimeoutSeconds
	}
	return Prepare(ctx, Input{ // its thresholds are in the entry, those for its hardware too
		ManifestPath: g.ledger.ManifestPath, Manifest: data, Env: env, Nodes: nodes,
		Bare: job.Image == "", Strict: g.ledger.Strict, Timeout: timeout, LogLimit: g.attempt.LogLimit,
	})
}

// manifest is that of the run with nothing but the entry of the group, whose size is
// left to the nodes that it runs on.
func (g *Group) manifest() ([]byte, error) {
	var doc map[string]json.RawMessage
	if err := json.Unmarshal(g.data, &doc); err != nil {
		return nil, err
	}
	job := g.attempt.Job
	entry, err := pick(doc["built_models"], job.Key)
	if err != nil {
		return nil, err
	}
	image, err := pick(doc["built_images"], job.Key)
	if err != nil {
		return nil, err
	}
	var model map[string]json.RawMessage
	if err := json.Unmarshal(entry, &model); err != nil {
		return nil, err
	}
	for _, block := range []string{"distributed", "slurm"} {
		if model[block], err = without(model[block], "nnodes", "nodes", "nodelist"); err != nil {
			return nil, err
		}
	}
	test := map[string]any{"key": job.Key, "name": job.Test, "variant": job.Variant, "duration": job.Policy.DurationSeconds}
	for _, v := range []struct {
		into  map[string]json.RawMessage
		name  string
		value any
	}{
		{model, "scope", "group"},
		{model, "retries", 0},
		{model, "thresholds", append([]threshold.Threshold{}, job.Expect.Thresholds...)},
		{doc, "built_models", map[string]any{job.Key: model}},
		{doc, "built_images", map[string]any{job.Key: image}},
		{doc, "suite", map[string]any{"name": "isolate " + g.Name(), "max_concurrent_nodes": "all", "tests": []any{test}}},
	} {
		if v.into[v.name], err = json.Marshal(v.value); err != nil {
			return nil, err
		}
	}
	return json.MarshalIndent(doc, "", "  ")
}

// Name is what people call the group: its test, or its key.
func (g *Group) Name() string {
	if g.Judged.Test != "" {
		return g.Judged.Test
	}
	return g.Judged.Key
}

// pick is a member of an object.
func pick(object json.RawMessage, key string) (json.RawMessage, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(object, &members); err != nil {
		return nil, err
	}
	if members[key] == nil {
		return nil, fmt.Errorf("it has no entry %q", key)
	}
	return members[key], nil
}

// without is an object that lacks some members; what is no object stays.
func without(object json.RawMessage, names ...string) (json.RawMessage, error) {
	var members map[string]json.RawMessage
	if len(object) == 0 || json.Unmarshal(object, &members) != nil || members == nil {
		return json.RawMessage("null"), nil
	}
	for _, n := range names {
		delete(members, n)
	}
	return json.Marshal(members)
}

// Answer is what the verdict on a group says of its nodes. What was not launched, was
// refused by a node, was cancelled, was ended by the scheduler for reasons of its own, or
// does not apply, says nothing; what began and did not end well is suspected.
func Answer(j report.Job) isolate.Answer {
	switch j.Verdict {
	case verdict.Pass:
		return isolate.Good
	case verdict.Fail:
		if !measuredShort(j) && endedForOthers(j) { // which is no ERROR under the benchmark contract
			return isolate.Unknown
		}
		return isolate.Bad
	case verdict.Error:
		if !endedForOthers(j) && slices.ContainsFunc(j.Ranks, brokeOff) {
			return isolate.Suspect
		}
	case verdict.Unknown, verdict.NoMetric, verdict.Skip, verdict.Pending:
	}
	return isolate.Unknown
}

// measuredShort says whether a measured value violates a threshold.
func measuredShort(j report.Job) bool {
	return slices.ContainsFunc(j.Violations, func(v threshold.Violation) bool { return v.Cause == threshold.CauseMeasurement })
}

// endedForOthers says whether something decided how a job ended that is not the
// workload: a person, what has to be there before the workload begins, or the scheduler.
func endedForOthers(j report.Job) bool {
	return slices.ContainsFunc(slices.Concat(j.Reasons, j.Warnings), func(r verdict.Reason) bool {
		switch r.Code {
		case verdict.CodeCancelled, verdict.CodeNotRun, verdict.CodeLaunchRefused, verdict.CodeLaunchUnknown, verdict.CodeImage, verdict.CodeEnvFile, verdict.CodeModule,
			verdict.CodePreScript, verdict.CodeRootEnded, verdict.CodeRootNotReady, verdict.CodeInternal:
			return true
		case verdict.CodeSchedState:
			return !saysOfRanks(j.Scheduler)
		}
		return false
	})
}

// saysOfRanks says whether the bad word of the target only repeats that ranks failed, or
// did not end in time.
func saysOfRanks(s *report.Scheduler) bool {
	if s == nil {
		return false
	}
	word, _, _ := strings.Cut(s.State, " ")
	switch word {
	case "FAILED", "TIMEOUT", "FailedIndexes", "MaxFailedIndexesExceeded", "BackoffLimitExceeded", "PodFailurePolicy", "DeadlineExceeded":
		return true
	}
	return false
}

// brokeOff says whether a rank began and did not end well.
func brokeOff(r report.Rank) bool {
	switch r.State {
	case evidence.RankLost, evidence.RankRunning:
		return true
	case evidence.RankEnded:
		return r.Signal != "" || r.ExitCode != nil && *r.ExitCode != 0
	case evidence.RankUnknown, evidence.RankNotStarted:
	}
	return false
}

// Value is what the job of a group measured of its metric; nil when it measured nothing
// of that name.
func (g *Group) Value(j report.Job) *float64 {
	for _, m := range j.Measurements {
		if report.IsMetric(m, g.Metric) {
			return m.Value
		}
	}
	return nil
}
