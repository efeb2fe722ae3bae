//go:build k8s

package main

import (
	"encoding/csv"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"assay/pkg/report"
	"assay/pkg/verdict"
)

// k8sCase is a case of testdata/k8s/verdicts, where its fields are described.
type k8sCase struct {
	Name       string
	Ranks      int
	Run        string
	Model      map[string]any
	K8s        map[string]any
	Deployment map[string]any
	Context    map[string]any
	Files      map[string]string
	Objects    string
	Args       []string
	Want       struct {
		Exit      int
		Verdict   string
		Reasons   []string
		Warnings  []string
		Ranks     []string
		Scheduler string
		Attempts  int
		Perf      map[string]string
		Says      []string
		Files     map[string]string
		Left      []string
	}
}

// TestK8sVerdicts runs the cases of testdata/k8s/verdicts.
func TestK8sVerdicts(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("..", "..", "testdata", "k8s", "verdicts", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			t.Parallel()
			for _, c := range readK8sCases(t, file) {
				t.Run(c.Name, func(t *testing.T) {
					t.Parallel()
					c.check(newK8sSite(t))
				})
			}
		})
	}
}

func readK8sCases(t *testing.T, file string) []k8sCase {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var cases []k8sCase
	d := yaml.NewDecoder(f)
	d.KnownFields(true)
	if err := d.Decode(&cases); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return cases
}

func (c k8sCase) check(s *k8sSite) {
	s.t.Helper()
	c.prepare(s)
	r := s.runJSON(c.Args...)
	w := c.Want
	if r.code != w.Exit || len(r.Jobs) == 0 && w.Verdict != "" {
		s.t.Fatalf("exit code %d, want %d\n%s\n%s", r.code, w.Exit, r.stdout, r.stderr)
	}
	for _, pattern := range w.Says {
		if !regexp.MustCompile(s.filled(pattern)).MatchString(r.stderr) {
			s.t.Errorf("it did not say %q\n%s", pattern, r.stderr)
		}
	}
	if w.Verdict != "" {
		c.judged(s, r)
	}
	if s.t.Failed() {
		s.t.Logf("%s\n%s", r.stdout, r.stderr)
	}
}

// prepare lays what a case needs.
func (c k8sCase) prepare(s *k8sSite) {
	s.t.Helper()
	for name, text := range c.Files {
		path := filepath.Join(s.dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			s.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(s.filled(text)), 0o644); err != nil {
			s.t.Fatal(err)
		}
	}
	if c.Objects != "" {
		s.Apply(s.namespace, s.filled(c.Objects))
	}
	maps.Copy(s.context, c.Context)
	maps.Copy(s.extra, c.Deployment)
	s.manifest(c.K8s, max(c.Ranks, 1), workload{name: "job", script: c.Run, model: c.Model})
	path := filepath.Join(s.dir, "m.json")
	data, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, []byte(s.filled(string(data))), 0o600)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// filled replaces what differs from run to run.
func (s *k8sSite) filled(text string) string {
	return strings.NewReplacer("{dir}", s.dir, "{namespace}", s.namespace).Replace(text)
}

// judged checks what was printed, and what was left.
func (c k8sCase) judged(s *k8sSite, r judged) {
	s.t.Helper()
	w, j := c.Want, r.Jobs[0]
	s.same("verdict", []string{j.Verdict.String() + " " + j.Rule}, []string{w.Verdict})
	s.same("reasons", saidBy(j.Reasons), w.Reasons)
	s.same("warnings", saidBy(j.Warnings), w.Warnings)
	if w.Ranks != nil {
		s.same("ranks", endsOf(s.t, j), w.Ranks)
	}
	if w.Scheduler != "" {
		s.same("the scheduler's last word", []string{j.Scheduler.State + ": " + j.Scheduler.Detail}, []string{w.Scheduler})
	}
	if j.Attempts != max(w.Attempts, 1) {
		s.t.Errorf("%d attempts, want %d", j.Attempts, max(w.Attempts, 1))
	}
	row := s.perf()[0]
	for column, want := range w.Perf {
		s.same("column "+column+" of perf.csv", []string{row[column]}, []string{want})
	}
	for name, want := range w.Files {
		data, err := os.ReadFile(s.filled(strings.ReplaceAll(name, "{attempt}", filepath.Join(r.Dir, j.Directory))))
		if err != nil {
			s.t.Error(err)
			continue
		}
		s.same(name, []string{string(data)}, []string{want})
	}
	if w.Left != nil {
		s.left(w.Left...)
	}
}

// left waits until the objects in the namespace are the wanted ones, as
// KIND/NAME, sorted.
func (s *k8sSite) left(want ...string) {
	s.t.Helper()
	var got []string
	ok := func() bool {
		got = strings.Fields(s.kubectl("get", "jobs,pods,configmaps,secrets,services", "--output", "name"))
		got = slices.DeleteFunc(got, func(name string) bool { return name == "configmap/kube-root-ca.crt" })
		slices.Sort(got)
		return fits(got, want)
	}
	for end := time.Now().Add(20 * time.Second); !ok(); time.Sleep(200 * time.Millisecond) {
		if time.Now().After(end) {
			s.t.Errorf("in the namespace there is\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
			return
		}
	}
}

// perf are the rows of perf.csv, by column.
func (s *k8sSite) perf() []map[string]string {
	s.t.Helper()
	f, err := os.Open(filepath.Join(s.dir, "perf.csv"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer f.Close()
	lines, err := csv.NewReader(f).ReadAll()
	if err != nil || len(lines) < 2 {
		s.t.Fatalf("perf.csv: %v, %d lines", err, len(lines))
	}
	var rows []map[string]string
	for _, line := range lines[1:] {
		row := map[string]string{}
		for i, name := range lines[0] {
			row[name] = line[i]
		}
		rows = append(rows, row)
	}
	return rows
}

// saidBy spells reasons, as "CODE subject: message".
func saidBy(reasons []verdict.Reason) []string {
	var lines []string
	for _, r := range reasons {
		lines = append(lines, fmt.Sprintf("%s %s: %s", r.Code, r.Subject, r.Message))
	}
	return lines
}

// endsOf spells how ranks ended: "0 node1 ended 3", "1 node1 ended 143 SIGTERM".
func endsOf(t *testing.T, j report.Job) []string {
	t.Helper()
	var lines []string
	for _, k := range j.Ranks {
		state, err := k.State.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		line := fmt.Sprintf("%d %s %s", k.Rank, k.Node, state)
		if k.ExitCode != nil {
			line += fmt.Sprint(" ", *k.ExitCode)
		}
		if k.Signal != "" {
			line += " " + k.Signal
		}
		lines = append(lines, line)
	}
	return lines
}

// same fails the test unless the texts match the regular expressions, in order.
func (s *k8sSite) same(what string, got, want []string) {
	s.t.Helper()
	filled := make([]string, len(want))
	for i, w := range want {
		filled[i] = s.filled(w)
	}
	if !fits(got, filled) {
		s.t.Errorf("%s:\n\t%s\nwant\n\t%s", what, strings.Join(got, "\n\t"), strings.Join(filled, "\n\t"))
	}
}

// fits reports whether texts match regular expressions, in order.
func fits(got, want []string) bool {
	ok := len(got) == len(want)
	for i := 0; ok && i < len(got); i++ {
		ok = regexp.MustCompile("^(?s:" + want[i] + ")$").MatchString(got[i])
	}
	return ok
}
