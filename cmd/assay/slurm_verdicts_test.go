//go:build slurm

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// verdictCase is a case of testdata/slurm/verdicts.yaml, where its fields are
// described.
type verdictCase struct {
	Name       string
	Nodes      int
	Run        string
	Model      object
	Slurm      object
	Deployment object
	Files      map[string]string
	Copy       []string          // files of testdata/slurm that lie beside the manifest too
	Env        map[string]string // paths in the session's directory
	Args       []string
	Script     map[string]string // what is replaced in the batch script, in a directory of templates
	Needs      string            // a Debian package
	Want       struct {
		Exit      int
		Verdict   string
		Reasons   []string
		Warnings  []string
		Ranks     []string
		Scheduler string
		Perf      map[string]string
	}
}

// verdictCases runs the cases of testdata/slurm/verdicts.yaml.
func verdictCases(t *testing.T, bin string) {
	data, err := os.ReadFile(filepath.Join(slurmData(), "verdicts.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var cases []verdictCase
	d := yaml.NewDecoder(strings.NewReader(string(data)))
	d.KnownFields(true)
	if err := d.Decode(&cases); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			c.check(newSession(t, bin))
		})
	}
}

func slurmData() string { return filepath.Join("..", "..", "testdata", "slurm") }

func (c verdictCase) check(s *session) {
	c.prepare(s)
	nodes := c.Nodes
	if nodes == 0 {
		nodes = 2
	}
	model := entry(c.Run)
	if c.Run == "" {
		model = object{}
	}
	m := oneJob(nodes, merge(model, c.Model), c.Slurm)
	m["deployment_config"] = merge(m["deployment_config"].(object), c.Deployment)
	r := s.run(m, c.Args...)

	r.is(c.Want.Exit, c.Want.Verdict).reasons(c.Want.Reasons...).warnings(c.Want.Warnings...)
	if c.Want.Ranks != nil {
		r.ranks(c.Want.Ranks...)
	}
	if c.Want.Scheduler != "" {
		s.match("the scheduler's last word", s.last("1"), c.Want.Scheduler)
	}
	row := s.row()
	for column, want := range c.Want.Perf {
		s.match("column "+column+" of perf.csv", row[column], want)
	}
}

// prepare lays what a case needs.
func (c verdictCase) prepare(s *session) {
	s.Helper()
	if c.Needs != "" && exec.Command("dpkg-query", "-W", c.Needs).Run() != nil {
		s.Fatalf("the Debian package %s is missing; install it with: apt-get install --no-install-recommends %[1]s", c.Needs)
	}
	for name, text := range c.Files {
		s.write(name, text)
	}
	for _, name := range c.Copy {
		data, err := os.ReadFile(filepath.Join(slurmData(), name))
		if err != nil {
			s.Fatal(err)
		}
		s.write(name, string(data))
	}
	for name, path := range c.Env {
		s.env = append(s.env, name+"="+filepath.Join(s.dir, path))
	}
	if c.Script != nil {
		s.changeScript(c.Script)
	}
}

// changeScript makes a directory of templates whose batch script differs from
// assay's own.
func (s *session) changeScript(replace map[string]string) {
	s.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "templates", "slurm", "job.sh.tmpl"))
	if err != nil {
		s.Fatal(err)
	}
	text := string(data)
	for old, instead := range replace {
		if !strings.Contains(text, old) {
			s.Fatalf("the template has no %q", old)
		}
		text = strings.ReplaceAll(text, old, instead)
	}
	s.write("templates/slurm/job.sh.tmpl", text)
}

// queued lists the jobs of the run that are in the queue.
func (s *session) queued() string {
	s.Helper()
	var mine []string
	for line := range strings.Lines(s.Squeue("--Format=JobID:20,State:20,Name:160,Comment:4096")) {
		if strings.Contains(line, "dir="+s.dir+"/") {
			mine = append(mine, regexp.MustCompile(` +`).ReplaceAllString(line, " "))
		}
	}
	return strings.Join(mine, "")
}
