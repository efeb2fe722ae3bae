package perfcsv

import (
	"strconv"
	"strings"

	"assay/pkg/card"
	"assay/pkg/plan"
	"assay/pkg/report"
	"assay/pkg/verdict"

	"mvdan.cc/sh/v3/syntax"
)

// Facts are the cells of a job's rows that do not come from its verdict: what
// the manifest and its surroundings say.
type Facts struct {
	NGPUs                      string
	NNodes                     int
	GPUsPerNode                int
	TrainingPrecision          string
	Pipeline                   string // `pipeline` in the environment of the run
	Args                       string
	Tags                       []string
	DockerFile                 string
	BaseDocker                 string
	DockerSHA                  string
	DockerImage                string
	GitCommit                  string
	Launcher                   string
	BuildDuration              Number // seconds
	DataName                   string
	BuildNumber                string // `BUILD_NUMBER` in the environment of the run
	AdditionalDockerRunOptions string
}

// FactsOf fills in what a card and its planned job say. What the image and the
// surroundings say (docker_file, base_docker, docker_sha, git_commit, pipeline,
// build_number, durations) is left to the caller.
func FactsOf(c card.Card, j plan.Job) Facts {
	f := Facts{
		NNodes: j.NNodes, GPUsPerNode: j.GPUsPerNode,
		TrainingPrecision: c.TrainingPrecision, Args: argsText(c.Args), Tags: c.Tags,
		DockerFile: c.Dockerfile, DockerImage: j.Image, Launcher: j.Launcher,
		DataName: c.Data, AdditionalDockerRunOptions: c.AdditionalDockerRunOptions,
	}
	if c.NGPUs.Set {
		f.NGPUs = strconv.Itoa(c.NGPUs.Value)
	}
	return f
}

// argsText is the text of args, a list quoted so that a shell would give it back.
func argsText(a card.Args) string {
	if !a.IsList {
		return a.Text
	}
	words := make([]string, len(a.List))
	for i, w := range a.List {
		quoted, err := syntax.Quote(w, syntax.LangBash)
		if err != nil { // a NUL, which no argument can hold
			quoted = w
		}
		words[i] = quoted
	}
	return strings.Join(words, " ")
}

// Rows returns the rows of one attempt of a job: one for each measurement, else
// a single one without a number. A job that has not ended gives none. The
// attempt is job.Attempts, the newest.
func Rows(run report.Run, job report.Job, facts Facts) []Row {
	if job.Verdict == verdict.Unknown || job.Verdict == verdict.Pending {
		return nil
	}
	base := baseRow(run, job, facts)
	rows := make([]Row, 0, len(job.Measurements))
	for _, m := range job.Measurements {
		if m.Value != nil || m.NotApplicable { // a label is no number for a column of numbers
			rows = append(rows, measured(base, job.Verdict, m))
		}
	}
	if len(rows) == 0 {
		base.Status = status(job.Verdict, false)
		return []Row{base}
	}
	return rows
}

// measured is base with one measurement.
func measured(base Row, word verdict.Word, m report.Measurement) Row {
	row := base
	row.Metric = m.Name
	if m.Model != "" {
		row.Model = base.Model + "_" + m.Model
	}
	if m.Value != nil {
		row.Performance = NumberOf(*m.Value, m.Text)
	}
	row.Status = status(word, row.Performance != "")
	if m.NotApplicable && (word == verdict.Pass || word == verdict.Skip) {
		row.Status = StatusSkipped
		if row.Reason == "" {
			row.Reason = "the workload reported that " + m.Name + " is not applicable here"
		}
	}
	return row
}

// status reduces a verdict to the three words of the status column.
func status(word verdict.Word, number bool) string {
	switch {
	case word == verdict.Skip:
		return StatusSkipped
	case word == verdict.Pass && number:
		return StatusSuccess
	case word == verdict.Pass: // a success without a number is none to those who read the column
		return StatusSkipped
	}
	return StatusFailure
}

func baseRow(run report.Run, job report.Job, f Facts) Row {
	row := Row{
		Model: job.Name, NGPUs: f.NGPUs, NNodes: f.NNodes, GPUsPerNode: f.GPUsPerNode,
		TrainingPrecision: f.TrainingPrecision, Pipeline: f.Pipeline,
		Args: f.Args, Tags: strings.Join(f.Tags, ","),
		DockerFile: f.DockerFile, BaseDocker: f.BaseDocker, DockerSHA: f.DockerSHA, DockerImage: f.DockerImage,
		GitCommit: f.GitCommit, DeploymentType: run.Target, Launcher: f.Launcher,
		BuildDuration: f.BuildDuration, DataName: f.DataName,
		BuildNumber: f.BuildNumber, AdditionalDockerRunOptions: f.AdditionalDockerRunOptions,
		Verdict: job.Verdict.String(), RunID: run.RunID, Attempt: job.Attempts,
		Scope: job.Scope, Nodes: strings.Join(job.Nodes, " "),
		StartedAt: job.StartedAt.String(), FinishedAt: job.FinishedAt.String(),
	}
	if job.Test != "" { // tests of one card, and its variants, are told apart
		row.Model = job.Key
	}
	if job.ElapsedSeconds > 0 {
		row.TestDuration = NumberOf(job.ElapsedSeconds, "")
	}
	if len(job.Nodes) > 0 {
		row.MachineName = job.Nodes[0]
	}
	if len(job.Reasons) > 0 {
		row.Reason = job.Reasons[0].Message
	} else if job.Baseline {
		row.Reason = "a baseline: nothing was gated"
	}
	return row
}
