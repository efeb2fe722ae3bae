package lint_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"assay/pkg/document"
	"assay/pkg/exitcode"
	"assay/pkg/lint"
)

const yamlHead = "built_images: {a: {}}\nbuilt_models: {a: {name: a, command: [\"true\"]}}\n"

func TestFixedYAML(t *testing.T) {
	for _, c := range []struct{ name, data, want string }{
		{
			"an anchor stays before its alias",
			"slurm: &s {partition: p}\nbuilt_images: {a: {}}\nbuilt_models: {a: {name: a, command: [\"true\"], slurm: *s}}\ncontext: {}\n",
			"deployment_config:\n  slurm: &s {partition: p}\nbuilt_images: {a: {}}\nbuilt_models: {a: {name: a, command: [\"true\"], slurm: *s}}\ncontext: {}\n",
		},
		{
			"an anchor of a merge, and a deployment_config that uses it",
			yamlHead + "slurm:\n    <<: &p {partition: p}\ndeployment_config:\n    target: slurm\n    distributed:\n        _p: *p\ncontext: {}\n",
			yamlHead + "deployment_config:\n    slurm:\n        <<: &p {partition: p}\n    target: slurm\n    distributed:\n        _p: *p\ncontext: {}\n",
		},
		{
			"CRLF, empty lines, remarks, escapes and four spaces",
			strings.ReplaceAll(yamlHead+"\n# queue\nslurm:   # c\n    partition: \"\\u00e9\"\n\n    nodes: 1\n\n\ncontext: {}\n\ndeployment_config: {}  # x\n", "\n", "\r\n"),
			strings.ReplaceAll(yamlHead+"\n\n\ncontext: {}\n\ndeployment_config:   # x\n  # queue\n  slurm:   # c\n      partition: \"\\u00e9\"\n\n      nodes: 1\n", "\n", "\r\n"),
		},
		{
			"null in its place, and no line end at the end",
			yamlHead + "slurm:\n  nodes: 1\ndeployment_config:\n  slurm: ~\n  target: slurm\n\ncontext: {}",
			yamlHead + "deployment_config:\n  target: slurm\n  slurm:\n    nodes: 1\n\ncontext: {}",
		},
		{
			"deployment_config is null",
			yamlHead + "context: {}\nslurm:\n  modules:\n  - a\n# about the deployment\ndeployment_config: ~ # none\n",
			yamlHead + "context: {}\n# about the deployment\ndeployment_config:  # none\n  slurm:\n    modules:\n    - a\n",
		},
		{
			"several blocks, one of text whose last empty line counts",
			yamlHead + "slurm:\n  nodes: 1\ncontext: {}\n# d\ndistributed:\n  nnodes: 1\n  _x: |+\n    text\n\n",
			yamlHead + "context: {}\ndeployment_config:\n  slurm:\n    nodes: 1\n  # d\n  distributed:\n    nnodes: 1\n    _x: |+\n      text\n\n",
		},
		{
			"marks around the document, braces over several lines",
			"---\nslurm: {nodes: 1,\n partition: x\n}\n" + yamlHead + "context: {}\n...\n",
			"---\ndeployment_config:\n  slurm: {nodes: 1,\n   partition: x\n  }\n" + yamlHead + "context: {}\n...\n",
		},
		{
			"an indented root and quoted text over several lines",
			"  built_images: {a: {}}\n  slurm:\n    partition: \"a\n\n    b\\\n     c\"\n  built_models: {a: {name: a, command: [\"true\"]}}\n  context: {}\n",
			"  built_images: {a: {}}\n  deployment_config:\n    slurm:\n      partition: \"a\n\n      b\\\n       c\"\n  built_models: {a: {name: a, command: [\"true\"]}}\n  context: {}\n",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := lint.Fixed("m.yaml", []byte(c.data))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, string(got)); diff != "" {
				t.Fatalf("(-want +got)\n%s", diff)
			}
			if again, err := lint.Fixed("m.yaml", got); err != nil || string(again) != string(got) {
				t.Errorf("fixed twice: %v\n%s", err, again)
			}
		})
	}
}

func TestFixRefusesYAML(t *testing.T) {
	for data, want := range map[string]string{
		"slurm: &s {partition: p}\n" + yamlHead + "context: {s: *s}\ndeployment_config:\n  target: slurm\n": "slurm cannot be moved without changing what the file says (the alias *s has no anchor &s before it); move it by hand",
		"<<: &p {slurm: {partition: p}}\n" + yamlHead + "context: *p\n":                                     "slurm comes from a merge (<<); move slurm under deployment_config by hand",
		"{built_images: {}, built_models: {}, slurm: {}}\n":                                                 "line 1: the file is not written as one key a line; move the blocks by hand",
		yamlHead + "slurm: {}\ndeployment_config: {target: slurm}\n":                                        "line 4: deployment_config is written in braces; write it as a block of lines, or put slurm into it by hand",
		yamlHead + "context: &c {}\nslurm: {}\ndeployment_config: *c\n":                                     "line 5: deployment_config is an alias; write it out first",
		yamlHead + "? slurm\n: {}\n":                                                                        "line 3: slurm does not begin its line; move slurm under deployment_config by hand",
		yamlHead + "slurm: {}\ndeployment_config: &d {}\ncontext: *d\n":                                     "line 4: deployment_config has an anchor, a tag or several lines although it is empty",
		strings.ReplaceAll(yamlHead+"slurm: {}\n", "\n", "\r"):                                              "line ends other than LF and CRLF",
	} {
		got, err := lint.Fixed("m.yaml", []byte(data))
		if err == nil || !strings.Contains(err.Error(), want) || exitcode.Of(err) != exitcode.Invalid {
			t.Errorf("%s: %v (exit %d)\n%s", data, err, exitcode.Of(err), got)
		}
	}
}

// TestFixedYAMLMovesLines makes manifests of many layouts: every line is still
// there, those that were not moved as they were and in their order.
func TestFixedYAMLMovesLines(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		newline := rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "line end")
		pieces := []string{"built_images: { a: {} }", "built_models:\n    a: {name: a, command: [\"true\"],\n        _x: \"\\u00e9\"}\n", "context:\n\n   x: [1,  2] # two"}
		for _, m := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"slurm", "pbs", "distributed"}), 1, 3, rapid.ID[string]).Draw(t, "blocks") {
			pieces = append(pieces, m+rapid.SampledFrom([]string{": {}", ":\n  nodes: 2", ":   # c\n     _a: >-\n        x\n\n         y\n     # d\n     _b: [\n 1]", ":\n _l:\n - 'q\n\n   r'"}).Draw(t, "block"))
		}
		if config := rapid.SampledFrom([]string{"", " null", "", " {} # x", "\n   debug: true\n   # e", "\n target:\n  local\n"}).Draw(t, "config"); config != "" {
			pieces = append(pieces, "deployment_config:"+config)
		}
		var b strings.Builder
		for _, p := range rapid.Permutation(pieces).Draw(t, "order") {
			b.WriteString(p + "\n" + rapid.SampledFrom([]string{"", "\n", "# remark\n", "\n# remark\n\n"}).Draw(t, "between"))
		}
		data := strings.ReplaceAll(b.String(), "\n", newline)
		out, err := lint.Fixed("m.yaml", []byte(data))
		if err != nil {
			t.Fatalf("%v\n%s", err, data)
		}
		count := map[string]int{}
		for line := range strings.Lines(data) {
			count[strings.TrimLeft(line, " ")]++
		}
		for line := range strings.Lines(string(out)) {
			count[strings.TrimLeft(line, " ")]--
		}
		for line, n := range count {
			if n != 0 && !strings.HasPrefix(line, "deployment_config:") {
				t.Fatalf("%q is there %d times less\n%s\n=>\n%s", line, n, data, out)
			}
		}
		if doc, problems := document.Parse("m.yaml", out); doc == nil || len(problems) > 0 {
			t.Fatalf("%v\n%s", problems, out)
		}
	})
}

func TestFixFollowsALink(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "real.json"), filepath.Join(dir, "link.json")
	if err := os.WriteFile(file, []byte(`{"built_images": {}, "built_models": {}, "context": {}, "slurm": {}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("real.json", link); err != nil {
		t.Fatal(err)
	}
	if _, changed, err := lint.Fix(link); err != nil || !changed {
		t.Fatalf("changed %v, %v", changed, err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is a file now: %v, %v", info.Mode(), err)
	}
	if data, err := os.ReadFile(file); err != nil || !strings.Contains(string(data), "deployment_config") {
		t.Errorf("the file was not fixed: %v\n%s", err, data)
	}
}
