// Package models holds no code, only the cards that assay ships. These tests keep
// the promises that the cards make.
package models_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"assay/pkg/card"
	"assay/pkg/document"
	"assay/pkg/lint"
)

// shipped is a card with the file it comes from and its comment.
type shipped struct {
	card.Card
	file  string
	About string `json:"_about"`
}

// cards reads all cards of this directory.
func cards(t *testing.T) []shipped {
	t.Helper()
	files, err := filepath.Glob("*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no card files: %v", err)
	}
	var all []shipped
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		doc, problems := document.Parse(file, data)
		if len(problems) > 0 {
			t.Fatalf("%s: %v", file, problems)
		}
		raw := doc.JSON()
		var several []json.RawMessage
		if json.Unmarshal(raw, &several) != nil {
			several = []json.RawMessage{raw}
		}
		for _, one := range several {
			s := shipped{file: file}
			if err := json.Unmarshal(one, &s.Card); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			var comment struct {
				About string `json:"_about"`
			}
			if err := json.Unmarshal(one, &comment); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			s.About = comment.About
			all = append(all, s)
		}
	}
	return all
}

func TestCardsLintClean(t *testing.T) {
	files, err := filepath.Glob("*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no card files: %v", err)
	}
	for _, file := range files {
		for _, f := range lint.File(file, lint.Options{}).Findings {
			t.Errorf("%s:%d:%d: %s: %s", f.File, f.Line, f.Column, f.Code, f.Message)
		}
	}
}

func TestCardsSayWhatTheyMeasure(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range cards(t) {
		if seen[c.Name] {
			t.Errorf("%s: the name %s is taken twice", c.file, c.Name)
		}
		seen[c.Name] = true
		failing := slices.Contains(c.Tags, "demo-fail") || slices.Contains(c.Tags, "acceptance-fail")
		if !failing && len(c.Metrics) == 0 {
			t.Errorf("%s: %s names no metric", c.file, c.Name)
		}
		for _, m := range c.Metrics {
			count := strings.HasSuffix(m.Name, "Errors") || strings.HasSuffix(m.Name, "Count") // of things, without a unit
			if m.Unit == "" && !count || m.Help == "" || (m.Better != "higher" && m.Better != "lower") {
				t.Errorf("%s: %s: the metric %s lacks unit, direction or help", c.file, c.Name, m.Name)
			}
		}
		if failing {
			verdict, _, _ := strings.Cut(strings.Replace(c.About, ".", " ", 1), " ")
			if !slices.Contains([]string{"PASS", "FAIL", "NO_METRIC", "ERROR", "SKIP"}, verdict) {
				t.Errorf("%s: %s does not say which verdict it must give: %q", c.file, c.Name, c.About)
			}
		}
		if !c.Timeout.Set || c.Timeout.Value <= 0 || c.Timeout.Value > 600 {
			t.Errorf("%s: %s needs a time limit of ten minutes at most", c.file, c.Name)
		}
	}
}

func TestScriptsOfCardsCanRun(t *testing.T) {
	for _, c := range cards(t) {
		if c.Scripts == "" {
			continue
		}
		info, err := os.Stat(filepath.Join("..", c.Scripts, "run.sh"))
		if err != nil {
			t.Errorf("%s: %s: %v", c.file, c.Name, err)
		} else if info.Mode()&0o111 == 0 {
			t.Errorf("%s: %s: %s/run.sh is not executable", c.file, c.Name, c.Scripts)
		}
	}
}

func TestScriptsPassShellcheck(t *testing.T) {
	if _, err := exec.LookPath("shellcheck"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("shellcheck is not installed")
		}
		t.Skip("shellcheck is not installed")
	}
	scripts, err := filepath.Glob("scripts/*/*.sh")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	if out, err := exec.CommandContext(t.Context(), "shellcheck", scripts...).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// A card whose tool is missing must say so and fail: it must never pass, nor look
// like a run that measured nothing.
func TestScriptsNameTheirMissingTool(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range []string{"hpcc", "stress-ng", "fio"} {
		out, err := run(t.Context(), bash, "scripts/"+tool+"/run.sh", "PATH="+t.TempDir())
		if err == nil || !strings.Contains(out, "is not installed; on Debian: apt-get install") {
			t.Errorf("%s without its tool: %v\n%s", tool, err, out)
		}
	}
	for _, probe := range []string{"triad", "allreduce"} {
		out, err := run(t.Context(), bash, "scripts/"+probe+"/run.sh", "PATH="+os.Getenv("PATH"))
		if err == nil || !strings.Contains(out, "ASSAY_BIN") {
			t.Errorf("%s without ASSAY_BIN: %v\n%s", probe, err, out)
		}
	}
}

func run(ctx context.Context, bash, script string, env ...string) (string, error) {
	cmd := exec.CommandContext(ctx, bash, script)
	cmd.Env = env
	out, err := cmd.CombinedOutput()
	return string(out), err
}
