package deploytest

import (
	"os"
	"strings"
	"testing"

	"assay/deploy"
	"assay/pkg/plan"
)

// A case that is not run is declared, with a reason; nothing else is.
func TestChoose(t *testing.T) {
	all := []testCase{
		{name: "always"},
		{name: "waits", hook: func(h Harness) bool { return h.Waiting != nil }},
	}
	waiting := func(_ *testing.T, j plan.Job) (deploy.Target, plan.Job) { return nil, j }
	for name, c := range map[string]struct {
		h    Harness
		have string
		says string // part of the only problem; "": none
	}{
		"has all":           {Harness{Waiting: waiting}, "always waits", ""},
		"declared":          {Harness{Cannot: map[string]string{"waits": "no queue"}}, "always", ""},
		"undeclared":        {Harness{}, "always", "no hook"},
		"without a reason":  {Harness{Cannot: map[string]string{"waits": ""}}, "always", "no reason"},
		"not hindered":      {Harness{Waiting: waiting, Cannot: map[string]string{"waits": "lazy"}}, "always", "nothing hinders"},
		"cannot be refused": {Harness{Waiting: waiting, Cannot: map[string]string{"always": "lazy"}}, "waits", "nothing hinders"},
		"no such case":      {Harness{Waiting: waiting, Cannot: map[string]string{"wait": "typo"}}, "always waits", "no such case"},
		"queue":             {Harness{queues: true, Cannot: map[string]string{"waits": "no queue"}}, "always", "has a queue"},
	} {
		have, problems := c.h.choose(all)
		var names []string
		for _, h := range have {
			names = append(names, h.name)
		}
		if got := strings.Join(names, " "); got != c.have {
			t.Errorf("%s: the cases are %q, want %q", name, got, c.have)
		}
		switch {
		case c.says == "" && len(problems) > 0:
			t.Errorf("%s: problems %q", name, problems)
		case c.says != "" && (len(problems) != 1 || !strings.Contains(problems[0], c.says)):
			t.Errorf("%s: problems %q, want one that says %q", name, problems, c.says)
		}
	}
}

// The table in the docs has every case, and no other.
func TestCasesAreDocumented(t *testing.T) {
	text := documented(t)
	for _, c := range cases() {
		if !strings.Contains(text, "\n| "+c.name+" |") {
			t.Errorf("%s has no row for the case %q", docs, c.name)
		}
	}
	_, table, _ := strings.Cut(text, "\n| case |")
	table, _, _ = strings.Cut(table, "\n\n")
	rows := strings.Count(table, "\n| ")
	if rows != len(cases()) {
		t.Errorf("the table in %s has %d rows, and there are %d cases", docs, rows, len(cases()))
	}
}

const docs = "../../docs/adding-a-target.md"

func documented(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(docs)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(data), "\n| case |") {
		t.Fatalf("%s has no table of cases", docs)
	}
	return string(data)
}
