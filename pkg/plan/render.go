package plan

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"assay/pkg/metric"
	"assay/pkg/phrase"
	"assay/pkg/threshold"
)

// hidden stands for a value that is not shown.
const hidden = "<set, not shown>"

// Describe says for people exactly what a job would run. The same job gives the
// same text. Values whose name looks like a secret's are not shown.
func Describe(j Job) string {
	var d description
	d.line("job", j.ID)
	if j.Key != j.ID {
		d.line("key", strconv.Quote(j.Key))
	}
	d.line("model", j.Model)
	d.line("target", j.Deployment)
	d.line("scope", j.Scope)
	d.placement(j)
	where := fmt.Sprintf("%s × %s a node", phrase.Count(j.NNodes, "node"), phrase.Count(j.RanksPerNode, "rank"))
	if j.WorldSize < j.NNodes {
		where = fmt.Sprintf("on the first of %s", phrase.Count(j.NNodes, "node"))
	}
	d.line("ranks", fmt.Sprintf("%d (%s)", j.WorldSize, where))
	d.launcher(j)
	d.program(j)
	if j.Image != "" {
		d.line("image", j.Image)
	}
	if c := j.Container; c != nil {
		d.line("container", c.words())
	}
	d.line("gpus a node", gpus(j.GPUsPerNode, j.GPUVendor))
	d.line("timeout", timeout(j.TimeoutSeconds))
	d.policy(j)
	d.readiness(j.Ready)
	d.environment(j)
	d.expectation(j)
	return d.String()
}

// description is a text of named lines.
type description struct{ strings.Builder }

// line writes a name and its value in two columns.
func (d *description) line(name, value string) {
	indent := "  "
	if name == "job" {
		indent = ""
	}
	fmt.Fprintf(d, "%-16s%s\n", indent+name, phrase.Escape(value))
}

func (d *description) launcher(j Job) {
	text := j.Launcher
	if j.Launcher != "none" {
		text += ", " + phrase.Count(j.NProcPerNode, "process") + " a node"
	}
	if j.Backend != "" {
		text += ", backend " + j.Backend
	}
	d.line("launcher", text)
	if j.Runner != "" {
		d.line("runner", j.Runner)
	}
	for _, name := range slices.Sorted(maps.Keys(j.LauncherEnv)) {
		d.line("launcher env", name+"="+j.LauncherEnv[name])
	}
	if j.MasterPort > 0 {
		d.line("master port", strconv.Itoa(j.MasterPort))
	} else {
		d.line("master port", "a free one, chosen when the job starts")
	}
}

func (d *description) program(j Job) {
	for _, s := range j.PreScripts {
		d.line("before", words(s.Path, s.Args))
	}
	p := j.Program
	if len(p.Command) > 0 {
		d.line("runs", words(p.Command[0], p.Command[1:]))
	} else {
		d.line("runs", words("", append(append(slices.Clone(p.Encapsulate), p.Script), p.Args...)))
	}
	for _, s := range j.PostScripts {
		d.line("after", words(s.Path, s.Args))
	}
	d.line("found in", quote(j.ModelDir)+", or MODEL_DIR where that is set")
	d.line("runs in", "a work directory of each rank, with the files beside the program linked into it")
}

func (d *description) environment(j Job) {
	for i, name := range slices.Sorted(maps.Keys(j.Env)) {
		label := ""
		if i == 0 {
			label = "environment"
		}
		value := quote(j.Env[name])
		if LooksSecret(name) {
			value = hidden
		}
		d.line(label, quote(name)+"="+value)
	}
	if f := j.EnvFile; f != nil {
		d.line("env file", fmt.Sprintf("%s (%s, read when the job starts; values are not shown)", quote(f.Path), f.Format))
	}
}

func (d *description) expectation(j Job) {
	x := j.Expect
	text := x.Contract
	if x.RanksPolicy == "all" {
		text += ", every rank must succeed"
	}
	if x.Strict {
		text += ", warnings fail"
	}
	d.line("contract", text)
	for _, m := range x.Metrics {
		d.line("metric", metricText(m))
	}
	for _, t := range x.Thresholds {
		d.line("threshold", thresholdText(t))
	}
	if x.MultipleResults != "" {
		d.line("results file", quote(x.MultipleResults))
	}
	if j.SkipMetrics {
		d.line("metrics", "not collected (skip_perf_collection)")
	}
}

func metricText(m metric.Spec) string {
	text := m.Name
	if m.Unit != "" {
		text += " [" + m.Unit + "]"
	}
	if m.Better != "" {
		text += ", " + m.Better + " is better"
	}
	if m.Aggregate != "" {
		text += ", " + m.Aggregate + " of the ranks"
	}
	if m.Required {
		text += ", required"
	}
	return text
}

func thresholdText(t threshold.Threshold) string {
	var bounds []string
	for _, b := range []struct {
		sign  string
		bound *float64
	}{{">=", t.Min}, {"<=", t.Max}, {"==", t.Equal}, {"!=", t.NotEqual}} {
		if b.bound != nil {
			bounds = append(bounds, b.sign+" "+strconv.FormatFloat(*b.bound, 'g', -1, 64))
		}
	}
	text := t.Metric + " " + strings.Join(bounds, " and ")
	if t.RequiredIfMeasurable {
		text += ", if it can be measured"
	}
	return text
}

func gpus(n int, vendor string) string {
	if vendor != "" {
		vendor = " (" + vendor + ")"
	}
	switch n {
	case 0:
		return "none asked for"
	case -1:
		return "all" + vendor
	}
	return strconv.Itoa(n) + vendor
}

func timeout(seconds int) string {
	if seconds == 0 {
		return "none"
	}
	return strconv.Itoa(seconds) + " s"
}

// words gives a program and its arguments as a shell would read them.
func words(program string, args []string) string {
	var quoted []string
	if program != "" {
		quoted = append(quoted, quote(program))
	}
	for _, a := range args {
		quoted = append(quoted, quote(a))
	}
	return strings.Join(quoted, " ")
}

// quote gives a word as bash would read it.
func quote(s string) string {
	q, err := syntax.Quote(s, syntax.LangBash)
	if err != nil { // a NUL, which no shell can be given
		return strconv.Quote(s)
	}
	return q
}

// LooksSecret says whether the value of a variable should not be shown. It is asked
// of the name only, and rather hides too much.
func LooksSecret(name string) bool {
	name = strings.ToUpper(name)
	if name == "PWD" || name == "OLDPWD" {
		return false // directories
	}
	return slices.ContainsFunc([]string{"TOKEN", "SECRET", "PASS", "PWD", "KEY", "CRED", "AUTH"}, func(part string) bool {
		return strings.Contains(name, part)
	})
}
