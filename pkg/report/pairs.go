package report

import (
	"maps"
	"math"
	"slices"

	"assay/pkg/metric"
	"assay/pkg/pairwise"
	"assay/pkg/threshold"
	"assay/pkg/verdict"
)

// Pairs is what the links of a test of scope pair say of nodes and links.
type Pairs struct {
	Test    string            `json:"test"` // or the key of its entry, where there is no suite
	Variant map[string]string `json:"variant,omitempty"`
	Metric  string            `json:"metric"` // that is compared; empty: the card declares none
	Unit    string            `json:"unit"`
	Better  string            `json:"better"` // "higher", "lower", or empty: nothing is ranked
	Nodes   []string          `json:"nodes"`  // of the rows and columns of the matrices below, which are symmetric
	Cells   [][]*float64      `json:"cells"`  // null: no value
	Words   [][]string        `json:"words"`  // verdicts; empty: no such link was chosen
	Rounds  [][]int           `json:"rounds"` // in which a link was measured, from 1; 0: there were no rounds

	NodeRanking []PairNode `json:"node_ranking"` // the worst first
	LinkRanking []PairLink `json:"link_ranking"` // the worst first
	NotMeasured int        `json:"not_measured"` // links that were chosen and of which nothing is known
	Findings    []string   `json:"findings"`     // what to look at, a sentence each
	Facts       []Fact     `json:"-"`            // the findings in words for people; empty: it was read from a file
}

// PairNode is the rank of a node by its links.
type PairNode struct {
	Node        string   `json:"node"`
	Score       *float64 `json:"score"`        // the upper median of its links; null when it has none, or its links failed
	Ratio       *float64 `json:"ratio"`        // to the median of all nodes
	Links       int      `json:"links"`        // measured or failed
	Slow        int      `json:"slow_links"`   // of these
	NotMeasured int      `json:"not_measured"` // links
	Suspect     bool     `json:"suspect"`
	Unclear     bool     `json:"unclear,omitempty"` // it may be to blame, which cannot be told
}

// PairLink is the rank of a link.
type PairLink struct {
	Nodes   [2]string    `json:"nodes"` // the server and the client
	Job     string       `json:"job"`   // its id
	Verdict verdict.Word `json:"verdict"`
	Value   *float64     `json:"value"`
	Ratio   *float64     `json:"ratio"` // to the median of all links
	Suspect bool         `json:"suspect"`
	Unclear bool         `json:"unclear,omitempty"` // it may be to blame, which cannot be told
}

// NewPairs compares the links of each test of scope pair that has several, in the order
// of the jobs. nodes are those of the run in their order. expect says what a job, by its
// id, is expected to give.
func NewPairs(jobs []Job, nodes []string, expect func(id string) verdict.Expectation) []Pairs {
	var out []Pairs
	for _, links := range pairTests(jobs) {
		if len(links) > 1 {
			out = append(out, comparePairs(links, nodes, expect(links[0].ID)))
		}
	}
	return out
}

// pairTests puts the jobs of scope pair together by their entries, in the order of the
// first of each.
func pairTests(jobs []Job) [][]Job {
	var out [][]Job
	at := map[string]int{}
	for _, j := range jobs {
		if j.Scope != "pair" || len(j.Nodes) != 2 {
			continue
		}
		i, known := at[j.Key]
		if !known {
			i = len(out)
			at[j.Key] = i
			out = append(out, nil)
		}
		out[i] = append(out[i], j)
	}
	return out
}

func comparePairs(jobs []Job, nodes []string, x verdict.Expectation) Pairs {
	p := Pairs{Test: jobs[0].Test, Variant: jobs[0].Variant}
	if p.Test == "" {
		p.Test = jobs[0].Key
	}
	p.Metric, p.Unit, p.Better = compared(x)
	p.layOut(jobs, nodes)
	links := make([]pairwise.Link, len(jobs))
	ids := map[[2]string]Job{}
	for i, j := range jobs {
		links[i] = p.link(j)
		ids[[2]string{links[i].A, links[i].B}] = j
	}
	better := map[string]pairwise.Better{"higher": pairwise.Higher, "lower": pairwise.Lower}[p.Better]
	a := pairwise.Analyse(links, better)
	p.NotMeasured = a.NotMeasured
	for _, n := range a.Nodes {
		p.NodeRanking = append(p.NodeRanking, PairNode{
			Node: n.Node, Score: finite(n.Score), Ratio: finite(n.Ratio), Links: n.Links, Slow: n.Slow, NotMeasured: n.NotMeasured,
			Suspect: n.Standing == pairwise.Suspect, Unclear: n.Standing == pairwise.Unclear,
		})
	}
	for _, l := range a.Links {
		j := ids[[2]string{l.A, l.B}]
		r := PairLink{
			Nodes: [2]string{l.A, l.B}, Job: j.ID, Verdict: j.Verdict, Ratio: finite(l.Ratio),
			Suspect: l.Standing == pairwise.Suspect, Unclear: l.Standing == pairwise.Unclear,
		}
		if l.Outcome == pairwise.Measured {
			r.Value = finite(l.Value)
		}
		p.LinkRanking = append(p.LinkRanking, r)
	}
	if p.Metric == "" {
		p.countNotJudged(jobs)
	}
	p.find(a)
	return p
}

// countNotJudged counts the links whose verdict says nothing of them, where there is no
// metric to measure.
func (p *Pairs) countNotJudged(jobs []Job) {
	of := map[string]int{}
	p.NotMeasured = 0
	for _, j := range jobs {
		if j.Verdict != verdict.Pass && j.Verdict != verdict.Fail {
			p.NotMeasured++
			of[j.Nodes[0]]++
			of[j.Nodes[1]]++
		}
	}
	for i, n := range p.NodeRanking {
		p.NodeRanking[i].NotMeasured = of[n.Node]
	}
}

// layOut makes the matrices.
func (p *Pairs) layOut(jobs []Job, nodes []string) {
	used := map[string]bool{}
	for _, j := range jobs {
		used[j.Nodes[0]], used[j.Nodes[1]] = true, true
	}
	for _, n := range slices.Concat(nodes, slices.Sorted(maps.Keys(used))) {
		if used[n] && !slices.Contains(p.Nodes, n) {
			p.Nodes = append(p.Nodes, n)
		}
	}
	place := map[string]int{}
	for i, n := range p.Nodes {
		place[n] = i
		p.Cells = append(p.Cells, make([]*float64, len(p.Nodes)))
		p.Words = append(p.Words, make([]string, len(p.Nodes)))
		p.Rounds = append(p.Rounds, make([]int, len(p.Nodes)))
	}
	for _, j := range jobs {
		for _, at := range [][2]int{{place[j.Nodes[0]], place[j.Nodes[1]]}, {place[j.Nodes[1]], place[j.Nodes[0]]}} {
			if l := p.link(j); l.Outcome == pairwise.Measured {
				p.Cells[at[0]][at[1]] = &l.Value
			}
			p.Words[at[0]][at[1]] = j.Verdict.String()
			p.Rounds[at[0]][at[1]] = j.Round
		}
	}
}

// link is what a job says of its link. An ERROR says nothing of it, whatever was
// printed before.
func (p *Pairs) link(j Job) pairwise.Link {
	l := pairwise.Link{A: j.Nodes[0], B: j.Nodes[1]}
	if j.Verdict != verdict.Pass && j.Verdict != verdict.Fail {
		return l
	}
	for _, m := range j.Measurements {
		if p.Metric != "" && m.Value != nil && IsMetric(m, p.Metric) {
			if p.Unit == "" {
				p.Unit = m.Unit
			}
			l.Outcome, l.Value = pairwise.Measured, *m.Value
			return l
		}
	}
	if j.Verdict == verdict.Fail {
		l.Outcome = pairwise.Failed
	}
	return l
}

// IsMetric says whether a measurement is of the name that cards gate it by.
func IsMetric(m Measurement, name string) bool {
	switch {
	case metric.IsPerformance(m.Source):
		return name == "performance" || name == m.Model+"/performance" || name == m.Name
	case m.Model != "":
		return name == m.Model+"/"+m.Name
	}
	return name == m.Name
}

// compared is the metric that links are compared by: the first that the card declares
// with what is better, else the first that has a threshold to one side.
func compared(x verdict.Expectation) (name, unit, better string) {
	for _, s := range x.Metrics {
		if s.Better != "" && !s.Evidence {
			return s.Name, s.Unit, s.Better
		}
	}
	for _, t := range x.Thresholds {
		if side := sideOf(t); side != "" {
			return t.Metric, metric.SpecFor(x.Metrics, t.Metric, "").Unit, side
		}
	}
	for _, t := range x.Thresholds {
		return t.Metric, metric.SpecFor(x.Metrics, t.Metric, "").Unit, ""
	}
	for _, s := range x.Metrics {
		if !s.Evidence {
			return s.Name, s.Unit, ""
		}
	}
	return "", "", ""
}

func sideOf(t threshold.Threshold) string {
	switch {
	case t.Min != nil && t.Max == nil:
		return "higher"
	case t.Max != nil && t.Min == nil:
		return "lower"
	}
	return ""
}

// finite is nil for what is no number.
func finite(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}
