package lint_test

import (
	"fmt"
	"strings"
	"testing"

	"assay/pkg/lint"
	"assay/pkg/manifest"
	"assay/pkg/plan"
)

// planned says whether a manifest can be decoded and planned.
func planned(data string) error {
	m, err := manifest.Decode([]byte(data))
	if err != nil {
		return err
	}
	_, _, err = plan.Jobs(m, plan.Options{ManifestDir: "/m"})
	return err
}

// TestLintAndPlanAgreeOnNumbers: what lint lets pass is not refused when a run
// starts, and the other way round.
func TestLintAndPlanAgreeOnNumbers(t *testing.T) {
	const model = `{"built_images": {"a": {}}, "built_models": {"a": {"name": "a", "command": ["true"], %s}}, "context": {}}`
	const deployment = `{"built_images": {"a": {}}, "built_models": {"a": {"name": "a", "command": ["true"]}}, "context": {}, "deployment_config": {"env_file_format": "dotenv", %s}}`
	count := []string{
		"1", "2.0", "16384", "65536", "!65537", "!99999", "!100000", "!4294967296", "!9223372036854775807", "!9223372036854775808",
		"!99999999999999999999", "!123456789012345678901234567890", "!1e30", "!1e300", "!-2", "!1.5",
	}
	for _, c := range []struct {
		frame, field string
		values       []string
	}{
		{model, `"timeout": %s`, []string{
			"-1", "0", "600", "3153600000", `"-1"`, `""`, `"600"`, `"0600"`, `"3153600000"`, `"3153599999"`, "null",
			"!3153600001", `!"3153600001"`, `!"3160000000"`, `!"4000000000"`, "!9223372037", `!"9223372037"`, `!"99999999999999999999"`,
			"!123456789012345678901234567890", `!"123456789012345678901234567890"`, "!1e12", "!1e300", "!-2", `!"-2"`, "!1.5", `!"soon"`,
		}},
		{model, `"n_gpus": %s`, append(count, "-1", "0", `"8"`, `"65536"`, `!"65537"`, `!"66000"`, `!"70000"`, `!"100000"`, `!"99999999999999999999"`)},
		{model, `"slurm": {"nodes": %s}`, append(count, "!0", "!-1")},
		{model, `"slurm": {"gpus_per_node": %s}`, append(count, "0")},
		{model, `"distributed": {"launcher": "torchrun", "nnodes": %s}`, append(count, "!0")},
		{model, `"distributed": {"launcher": "torchrun", "nproc_per_node": %s}`, append(count, "!0")},
		{model, `"distributed": {"port": %s}`, []string{"1", "65535", "!0", "!65536", "!99999999999999999999"}},
		{deployment, `"gpus_per_node": %s`, append(count, "0")},
		{deployment, `"slurm": {"nodes": %s}`, append(count, "!0")},
		{deployment, `"distributed": {"nnodes": %s}`, append(count, "!0")},
		{deployment, `"env_file": "/dev/null", "env_file_timeout": %s`, []string{"0", "30", `"30"`, "3153600000", "!3153600001", `!"3153600001"`, `!"99999999999999999999"`, "!-1"}},
	} {
		for _, v := range c.values {
			v, refused := strings.CutPrefix(v, "!")
			data := fmt.Sprintf(c.frame, fmt.Sprintf(c.field, v))
			err := planned(data)
			r := lint.Bytes("m.json", []byte(data), lint.Options{})
			var places []string
			for _, f := range r.Findings {
				if f.Severity == lint.Error && !strings.Contains(f.Code, "ENV_FILE") {
					places = append(places, fmt.Sprintf("%d:%d %s", f.Line, f.Column, f.Message))
				}
			}
			if (err != nil) != refused || (len(places) > 0) != refused {
				t.Errorf("%s: refused %v\nlint: %v\nplan: %v", fmt.Sprintf(c.field, v), refused, places, err)
			}
			if want := fmt.Sprintf("1:%d ", strings.LastIndex(data, v)+1); refused && len(places) > 0 && !strings.HasPrefix(places[0], want) {
				t.Errorf("%s: lint says %v, not %s", fmt.Sprintf(c.field, v), places, want)
			}
		}
	}
}

// TestRemarksAmongVariables: comments may stand between environment variables.
func TestRemarksAmongVariables(t *testing.T) {
	const env = `{"A": 1, "_comment": "why", "_doc": ["a", 1], "_group": {"B": null}, "_JAVA_OPTIONS": "-Xmx1g"%s}`
	for more, refused := range map[string]bool{"": false, `, "B": {}`: true, `, "B": null`: true, `, "_b": null`: true, `, "_b=c": 1`: true, `, "_b=c": []`: false, `, "B": [1]`: true} {
		block := fmt.Sprintf(env, more)
		data := `{"built_images": {"a": {}}, "built_models": {"a": {"name": "a", "command": ["true"], "env_vars": ` + block + `}},
			"context": {"docker_env_vars": ` + block + `}, "deployment_config": {"env_vars": ` + block + `}}`
		r := lint.Bytes("m.json", []byte(data), lint.Options{})
		if err := planned(data); (err != nil) != refused || r.HasErrors() != refused {
			t.Errorf("%s: lint %v, plan %v", more, r.Findings, err)
		}
		if !refused && len(r.Findings) > 0 {
			t.Errorf("%s: %v", more, r.Findings)
		}
	}
	m, err := manifest.Decode(fmt.Appendf(nil, `{"built_images": {"a": {}}, "built_models": {"a": {"name": "a", "command": ["true"], "env_vars": %s}}, "context": {}}`, fmt.Sprintf(env, "")))
	if err != nil {
		t.Fatal(err)
	}
	jobs, _, err := plan.Jobs(m, plan.Options{ManifestDir: "/m"})
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(jobs[0].Env); got != "map[A:1 _JAVA_OPTIONS:-Xmx1g]" {
		t.Errorf("the job gets %s", got)
	}
}
