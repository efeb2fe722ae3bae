package verdict

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay/pkg/evidence"
	"assay/pkg/metric"
)

// evidenceCase is one file of testdata/evidence.
type evidenceCase struct {
	Note     string            `json:"note"`
	Expect   Expectation       `json:"expect"`
	Evidence evidence.Evidence `json:"evidence"`
	Want     wanted            `json:"want"`
}

type wanted struct {
	Word         Word     `json:"word"`
	Rule         string   `json:"rule"`
	Reasons      []Reason `json:"reasons,omitempty"`
	Warnings     []Reason `json:"warnings,omitempty"`
	Measurements []string `json:"measurements,omitempty"` // "model/name=value unit"
	Violations   []string `json:"violations,omitempty"`   // "cause: subject [bound] value unit by rank 1 (node)"
	NotEvaluated []string `json:"not_evaluated,omitempty"`
	Short        bool     `json:"short,omitempty"`
}

const casesDir = "../../testdata/evidence"

func loadCases(t testing.TB) map[string]evidenceCase {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(casesDir, "*.json"))
	if err != nil || len(files) < 40 {
		t.Fatalf("%d cases in %s, %v", len(files), casesDir, err)
	}
	cases := map[string]evidenceCase{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var c evidenceCase
		dec := json.NewDecoder(bytes.NewReader(data))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&c); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		cases[strings.TrimSuffix(filepath.Base(file), ".json")] = c
	}
	return cases
}

var update = flag.Bool("update", false, "write the reasons, warnings and measurements that Judge gives into the cases")

func TestCases(t *testing.T) {
	for name, c := range loadCases(t) {
		t.Run(name, func(t *testing.T) {
			got := summary(Judge(c.Expect, c.Evidence))
			if *update && got.Word == c.Want.Word && got.Rule == c.Want.Rule {
				rewrite(t, name, got)
				return
			}
			if diff := cmp.Diff(c.Want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.Note, diff)
			}
		})
	}
}

func summary(v Verdict) wanted {
	w := wanted{Word: v.Word, Rule: v.Rule, Reasons: v.Reasons, Warnings: v.Warnings, Short: v.Short}
	for _, m := range v.Measurements {
		text := m.Name + "=" + m.Text
		if m.Label {
			text = m.Name + "=" + strconv.Quote(m.Text)
		}
		if m.Model != "" {
			text = m.Model + "/" + text
		}
		w.Measurements = append(w.Measurements, strings.TrimSpace(text+" "+m.Unit))
	}
	for _, v := range v.Violations {
		text := fmt.Sprintf("%s: %s [%s]", v.Cause, v.Subject, v.Bound)
		if v.Metric != v.Subject {
			text += " of " + v.Metric
		}
		if v.Value != nil {
			text += fmt.Sprintf(" %v", *v.Value)
		} else if v.Text != "" {
			text += " " + strconv.Quote(v.Text)
		}
		text = strings.TrimSpace(text + " " + v.Unit)
		if v.Rank != nil {
			text += " by " + metric.Origin{Rank: *v.Rank, Node: v.Node}.String()
		}
		w.Violations = append(w.Violations, text)
	}
	for _, n := range v.NotEvaluated {
		w.NotEvaluated = append(w.NotEvaluated, fmt.Sprintf("%s [%s]: %s", n.Metric, n.Bound, n.Message))
	}
	return w
}

// rewrite replaces the want of a case and leaves the rest of its text alone.
func rewrite(t *testing.T, name string, w wanted) {
	t.Helper()
	path := filepath.Join(casesDir, name+".json")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const key = "\n  \"want\": "
	i := bytes.Index(data, []byte(key))
	var b bytes.Buffer
	b.Write(data[:i])
	b.WriteString(key)
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("  ", "  ")
	if err := enc.Encode(w); err != nil {
		t.Fatal(err)
	}
	b.WriteString("}\n")
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}
