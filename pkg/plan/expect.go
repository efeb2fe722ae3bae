package plan

import (
	"slices"

	"assay/pkg/manifest"
	"assay/pkg/verdict"
)

// expect fills what the job will be judged by.
func (p *planner) expect(e manifest.Entry, t test, job *Job) verdict.Expectation {
	c := e.Card
	contract := c.Contract
	if contract == "" {
		contract = "benchmark"
	}
	if !slices.Contains([]string{"benchmark", "acceptance"}, contract) {
		p.refuse(e.Pointer("contract"), "unknown contract %q (known: benchmark, acceptance)", contract)
	}
	policy := c.RanksPolicy
	if policy == "any" {
		policy = ""
	}
	if !slices.Contains([]string{"", "all"}, policy) {
		p.refuse(e.Pointer("ranks_policy"), "unknown ranks_policy %q (known: any, all)", policy)
	}
	thresholds, gates := p.judgedBy(e, t)
	job.Gates = gates
	return verdict.Expectation{
		Contract:        contract,
		Scope:           judged(job.Scope),
		Baseline:        t.baseline,
		RanksPolicy:     policy,
		WorldSize:       job.WorldSize,
		Metrics:         c.Metrics,
		Thresholds:      thresholds,
		MultipleResults: c.MultipleResults,
		Strict:          p.opt.Strict,
		TimeoutSeconds:  job.TimeoutSeconds,
		SkipMetrics:     job.SkipMetrics,
	}
}

// judged is the scope as an expectation has it.
func judged(scope string) string {
	if scope == scopeJob {
		return ""
	}
	return scope
}
