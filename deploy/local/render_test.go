package local_test

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"

	"assay/deploy/local"
	"assay/pkg/plan"
)

// A shell reads from job.sh what Submit starts, whatever the directories are
// called.
func TestScriptSurvivesHostileDirectories(t *testing.T) {
	for _, name := range []string{
		"plain", "two words", "it's", `say "hi"`, "$HOME", "$(touch x)", "`id`", "a;b&c|d", "new\nline", "tab\t", "~", "-n", "#no", "{a,b}", "*?[x]",
		"back\\slash", "!history", "größe-温度", "\u202ereversed", "\x1b[2J", "(sub)", "<in>out",
	} {
		dir, binary := filepath.Join("/srv", name, "1"), filepath.Join("/opt", name, "assay")
		files, err := local.New(local.Options{Binary: binary}).Render(plan.Attempt{Dir: dir, Job: plan.Job{ID: "j", WorldSize: 2, MasterPort: 29500}})
		if err != nil {
			t.Errorf("%q: %v", name, err)
			continue
		}
		script := ""
		for _, f := range files {
			if f.Name == "job.sh" {
				script = string(f.Data)
			}
		}
		got := commands(t, script)
		want := [][]string{nil, nil, {"wait"}}
		for rank := range 2 {
			want[rank] = []string{
				binary, "rank", "--job", filepath.Join(dir, "job.json"), "--rank", strconv.Itoa(rank),
				"--master-addr", "127.0.0.1", "--master-port", "29500",
			}
		}
		if !slices.EqualFunc(got, want, slices.Equal) {
			t.Errorf("%q: a shell reads %q", name, got)
		}
	}
}

// The nodes that a run names are given to the ranks that stand for them.
func TestNamedNodes(t *testing.T) {
	a := plan.Attempt{Dir: "/d", Job: plan.Job{ID: "j", WorldSize: 4, RanksPerNode: 2, NNodes: 2, MasterPort: 29500, Nodes: []string{"node1", "it's"}}}
	files, err := local.New(local.Options{Binary: "/assay"}).Render(a)
	if err != nil {
		t.Fatal(err)
	}
	got := commands(t, string(files[1].Data))
	for rank, want := range []string{"node1", "node1", "it's", "it's"} {
		if words := got[rank]; !slices.Equal(words[len(words)-2:], []string{"--node", want}) {
			t.Errorf("rank %d is started by %q, want node %s", rank, words, want)
		}
	}
}

// A script that no shell could read is refused.
func TestScriptRefusesNUL(t *testing.T) {
	if _, err := local.New(local.Options{Binary: "/a\x00b"}).Render(plan.Attempt{Job: plan.Job{WorldSize: 1}}); err == nil {
		t.Error("a NUL was written into a script")
	}
}

// commands returns the words of each command of a script, which must be simple
// commands without redirections, assignments and substitutions.
func commands(t *testing.T, script string) [][]string {
	t.Helper()
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(script), "job.sh")
	if err != nil {
		t.Errorf("not a bash script: %v\n%s", err, script)
		return nil
	}
	var all [][]string
	for _, s := range file.Stmts {
		call, ok := s.Cmd.(*syntax.CallExpr)
		if !ok || len(call.Assigns) > 0 || len(s.Redirs) > 0 {
			t.Errorf("more than a simple command:\n%s", script)
			continue
		}
		words, err := expand.Fields(&expand.Config{Env: expand.FuncEnviron(func(string) string { return "expanded" })}, call.Args...)
		if err != nil {
			t.Errorf("%v\n%s", err, script)
		}
		all = append(all, words)
	}
	return all
}
