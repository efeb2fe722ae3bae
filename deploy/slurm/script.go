package slurm

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"mvdan.cc/sh/v3/syntax"

	"assay/pkg/batch"
	"assay/pkg/environ"
	"assay/pkg/exitcode"
	"assay/pkg/hostlist"
	"assay/pkg/plan"
	"assay/pkg/rundir"
)

// templateFile is the batch script below the directory of templates.
const templateFile = "slurm/job.sh.tmpl"

// scriptData is what the template of the batch script is filled with.
type scriptData struct {
	Job, RunID    string
	Attempt       int
	Name          string // of the scheduler's job
	Directives    []directive
	Umask         string
	Environment   []variable // what is kept of the submitting environment
	ExportList    string     // the names of these, as srun --export takes them
	Assay         string     // absolute path of the wrapper of the ranks
	JobFile       string
	Nodes, Ranks  int
	RanksPerNode  int
	KillOnBadExit bool
	MPI           string   // of srun --mpi; empty: as the site does
	OwnSteps      bool     // the workload submits its own steps (slurm_multi)
	Container     []string // options of srun that make it run the ranks in a container
}

// directive is an option of sbatch. Without a value it is a flag.
type directive struct{ Name, Value string }

type variable struct{ Name, Value string }

// Script implements batch.Scheduler.
func (s *scheduler) Script(a plan.Attempt) ([]byte, error) {
	text, err := fs.ReadFile(s.opt.Templates, templateFile)
	if err != nil {
		return nil, fmt.Errorf("the template of the batch script cannot be read: %w", err)
	}
	t, err := template.New(templateFile).Option("missingkey=error").Funcs(template.FuncMap{
		"quote": quoteShell, "directive": quoteDirective, "comment": oneLine,
	}).Parse(string(text))
	if err != nil {
		return nil, fmt.Errorf("the template of the batch script: %w", err)
	}
	data, err := s.data(a)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := t.Execute(&out, data); err != nil {
		return nil, fmt.Errorf("the batch script of job %s: %w", a.Job.ID, err)
	}
	if _, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(bytes.NewReader(out.Bytes()), templateFile); err != nil {
		return nil, fmt.Errorf("the batch script of job %s is no shell script: %w", a.Job.ID, err)
	}
	name, err := quoteDirective(data.Name)
	if err != nil {
		return nil, err
	}
	if !strings.Contains(out.String(), "#SBATCH --job-name="+name+"\n") {
		return nil, exitcode.Errorf(exitcode.Invalid, "%s has no line #SBATCH --job-name={{directive .Name}}: a job without its name cannot be found again", templateFile)
	}
	return out.Bytes(), nil
}

func (s *scheduler) data(a plan.Attempt) (scriptData, error) {
	assay := a.RankBinary
	if assay == "" {
		assay = s.opt.Binary
	}
	for _, path := range []string{a.Dir, assay} {
		if strings.IndexFunc(path, control) >= 0 {
			return scriptData{}, fmt.Errorf("path %q has a control character, which sbatch cannot be given; use another directory", path)
		}
	}
	j := a.Job
	d := scriptData{
		Job: j.ID, RunID: a.RunID, Attempt: a.Number, Name: jobName(a), Umask: "077",
		Assay: assay, JobFile: filepath.Join(a.Dir, rundir.JobFile),
		Nodes: j.NNodes, Ranks: j.WorldSize, RanksPerNode: j.RanksPerNode, OwnSteps: ownSteps(j),
		Environment: s.environment(j),
	}
	if j.Slurm != nil {
		d.KillOnBadExit, d.MPI = j.Slurm.KillOnBadExit, j.Slurm.MPI
	}
	d.ExportList = exportList(j, d.Environment)
	var err error
	if d.Container, err = inContainer(a, assay); err != nil {
		return d, err
	}
	d.Directives, err = directives(a)
	return d, err
}

// exportList names what ranks get of the environment of the script.
func exportList(j plan.Job, kept []variable) string {
	var names []string
	for _, v := range kept {
		if !inPyxis(j) || slices.Contains([]string{"LANG", "LC_ALL", "TZ"}, v.Name) { // the rest is the image's to say
			names = append(names, v.Name)
		}
	}
	if len(names) == 0 {
		return "NONE"
	}
	return strings.Join(names, ",")
}

// ownSteps reports whether the workload submits its steps itself, so that its
// script takes the place of srun.
func ownSteps(j plan.Job) bool { return j.Launcher == "slurm_multi" }

// environment is what ranks get of the submitting environment: what finds
// programs and modules, and how people are spoken to. Everything else, tokens
// among it, has to be named in the manifest or an env_file.
func (s *scheduler) environment(j plan.Job) []variable {
	var kept []variable
	names := []string{
		"PATH", "LD_LIBRARY_PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "TZ",
		"MODULEPATH", "MODULESHOME", "MODULES_CMD", "LMOD_CMD", "LMOD_DIR", "LMOD_PKG",
	}
	if j.Container != nil {
		names = append(names, engineVariables()...)
	}
	for _, name := range names {
		if v := environ.Get(s.opt.Env, name); v != "" {
			kept = append(kept, variable{name, v})
		}
	}
	return kept
}

// directives are the options of a job, in the order of the docs. What the manifest
// does not give is left to the site.
func directives(a plan.Attempt) ([]directive, error) {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	j := a.Job
	d := []directive{
		{"job-name", jobName(a)},
		{"comment", jobComment(a, host)},
		{"chdir", a.Dir},
		{"output", pattern(outputPath(a, "%j"))},
		{"open-mode", "append"},
		{"nodes", strconv.Itoa(j.NNodes)},
		{"ntasks-per-node", strconv.Itoa(j.RanksPerNode)},
	}
	var s plan.Slurm
	if j.Slurm != nil {
		s = *j.Slurm
	}
	if len(j.Nodes) > 0 { // exactly these, for one number of nodes is the least and the most
		s.Nodelist = hostlist.Compress(j.Nodes)
	}
	d = append(d, given(&s)...)
	for _, v := range d {
		if i := strings.IndexFunc(v.Value, control); i >= 0 {
			return nil, fmt.Errorf("slurm: --%s=%q has a control character at byte %d, which sbatch cannot be given", v.Name, v.Value, i)
		}
	}
	return d, nil
}

// given are the options that the manifest gives.
func given(s *plan.Slurm) []directive {
	var d []directive
	add := func(name, value string) {
		if value != "" {
			d = append(d, directive{name, value})
		}
	}
	add("partition", s.Partition)
	add("account", s.Account)
	add("qos", s.QOS)
	add("reservation", s.Reservation)
	add("nodelist", s.Nodelist)
	add("exclude", s.Exclude)
	add("constraint", s.Constraint)
	if s.GPUsPerNode > 0 {
		add("gpus-per-node", strconv.Itoa(s.GPUsPerNode))
	}
	add("time", s.Time)
	add("mem", s.Mem)
	if s.Exclusive {
		d = append(d, directive{Name: "exclusive"})
	}
	switch {
	case s.Requeue == nil:
	case *s.Requeue:
		d = append(d, directive{Name: "requeue"})
	default:
		d = append(d, directive{Name: "no-requeue"})
	}
	add("mail-user", s.MailUser)
	add("mail-type", s.MailType)
	return d
}

// outputPath is where the batch script writes, for a job of a given id.
func outputPath(a plan.Attempt, id string) string {
	if s := a.Job.Slurm; s != nil && s.OutputDir != "" {
		if strings.Contains(s.OutputDir, `\`) { // sbatch would not put the id into it
			return filepath.Join(s.OutputDir, jobName(a)+".out")
		}
		return filepath.Join(s.OutputDir, jobName(a)+"-"+id+".out")
	}
	return filepath.Join(a.Dir, batch.OutputFile)
}

// pattern makes a path a file name pattern of sbatch's, in which only %j stands
// for something.
func pattern(path string) string {
	if strings.Contains(path, `\`) { // then nothing is replaced but pairs of them
		return strings.ReplaceAll(path, `\`, `\\`)
	}
	path, ours := strings.CutSuffix(path, "-%j.out")
	path = strings.ReplaceAll(path, "%", "%%")
	if ours {
		path += "-%j.out"
	}
	return path
}

// quoteShell writes a word for bash.
func quoteShell(word string) (string, error) {
	q, err := syntax.Quote(word, syntax.LangBash)
	if err != nil {
		return "", fmt.Errorf("%q cannot be written in a shell script: %w", word, err)
	}
	return q, nil
}

// quoteDirective writes a value for sbatch, which reads a line of options much as
// a shell does: a backslash keeps the next character, quotes keep spaces, and a #
// outside of them begins a comment.
func quoteDirective(value string) (string, error) {
	plain := func(r rune) bool {
		return r < 0x80 && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_./:,=@%+-[]", r))
	}
	if value == "" {
		return "", errors.New("an option without a value")
	}
	if strings.IndexFunc(value, func(r rune) bool { return !plain(r) }) < 0 {
		return value, nil
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(value) + `"`, nil
}

// oneLine is a value for a comment.
func oneLine(value string) string {
	return strings.Map(func(r rune) rune {
		if control(r) {
			return ' '
		}
		return r
	}, value)
}

func control(r rune) bool { return r < ' ' || r == 0x7f }
