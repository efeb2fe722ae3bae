//go:build docker

package main

import (
	"maps"
	"testing"

	"assay/pkg/verdict"
)

// TestDockerRunAcceptance judges runners in containers by what they print and how they
// end, as it does those on the host.
func TestDockerRunAcceptance(t *testing.T) {
	gate := []map[string]any{{"metric": "copyGBs", "min": 10}}
	for name, c := range map[string]struct {
		script string
		more   map[string]any
		want   verdict.Word
		code   string // of the first reason
	}{
		"passes":         {"echo copyGBs=1; echo copyGBs=12.5; echo gpuName=box", nil, verdict.Pass, ""},
		"falls short":    {"echo copyGBs=3", nil, verdict.Fail, "THRESHOLD"},
		"says so itself": {"echo copyGBs=12; exit 1", nil, verdict.Fail, "RANK_EXIT"},
		"skips":          {"echo BOX_SKIP: no such device; exit 2", nil, verdict.Skip, "SKIP_DECLARED"},
		"crashes":        {"echo copyGBs=12; exit 2", nil, verdict.Error, "SKIP_UNDECLARED"},
		"says nothing":   {"true", nil, verdict.Error, "NOTHING_MEASURED"},
		"out of memory":  {"exec tail /dev/zero", map[string]any{"additional_docker_run_options": "--memory 64m --memory-swap 64m"}, verdict.Error, "RANK_SIGNAL"},
		"second try":     {`[ "$ASSAY_ATTEMPT" != 1 ] || exit 3; echo copyGBs=12`, map[string]any{"retries": 1}, verdict.Pass, ""},
		"pair": {
			`if [ "$ASSAY_ROLE" = server ]; then sleep 1; echo up; sleep 600; fi; echo copyGBs=12`,
			map[string]any{"scope": "pair", "ready": "line:^up$", "distributed": map[string]any{"nnodes": 2}},
			verdict.Pass, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newDockerSite(t)
			model := map[string]any{"contract": "acceptance", "thresholds": gate}
			maps.Copy(model, c.more)
			s.box(nil, workload{"m", c.script, model})
			res := s.runJSON().want(c.want)
			if c.code != "" && (len(res.Jobs[0].Reasons) == 0 || res.Jobs[0].Reasons[0].Code != c.code) {
				t.Errorf("reasons %+v, want %s first", res.Jobs[0].Reasons, c.code)
			}
		})
	}
}
