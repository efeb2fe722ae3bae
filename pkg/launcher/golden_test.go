package launcher_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay/pkg/launcher"
)

// describe is all that a launcher decides, for a person to read.
func describe(l launcher.Launcher, s launcher.Setup) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d × %d\n", s.NNodes, s.NProc)
	fmt.Fprintf(&b, "ranks    %d a node, %d in all\n", l.RanksPerNode(s.NProc), l.WorldSize(s.NNodes, s.NProc))
	fmt.Fprintf(&b, "runner   %s\n", l.Runner(s.NNodes, s.NProc))
	env := l.Env(s)
	for _, name := range slices.Sorted(maps.Keys(env)) {
		fmt.Fprintf(&b, "env      %s=%s\n", name, env[name])
	}
	return regexp.MustCompile(`(?m) +$`).ReplaceAllString(b.String(), "")
}

// TestGolden compares what every launcher decides with testdata/; UPDATE=1
// writes it anew.
func TestGolden(t *testing.T) {
	want := map[string]bool{}
	for _, name := range launcher.Names() {
		l, err := launcher.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		got := describe(l, launcher.Setup{NNodes: 1, NProc: 8}) + "\n" + describe(l, launcher.Setup{NNodes: 4, NProc: 8})
		path := filepath.Join("testdata", name+".golden")
		want[path] = true
		if os.Getenv("UPDATE") != "" {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(string(data), got); d != "" {
			t.Errorf("%s (-want +got):\n%s", path, d)
		}
	}
	files, err := filepath.Glob("testdata/*.golden")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		if !want[path] {
			t.Errorf("%s is of no launcher", path)
		}
	}
}

func TestEnvFollowsTheSetup(t *testing.T) {
	for _, c := range []struct {
		launcher string
		setup    launcher.Setup
		want     map[string]string // "" means not set
	}{
		{"sglang-disagg", launcher.Setup{NNodes: 6, NProc: 4}, map[string]string{"SGLANG_DISAGG_PREFILL_NODES": "2", "SGLANG_DISAGG_DECODE_NODES": "3", "SGLANG_TP_SIZE": "4"}},
		{"sglang-disagg", launcher.Setup{NNodes: 6, NProc: 4, Disagg: launcher.Disagg{PrefillNodes: 4, DecodeNodes: 1}}, map[string]string{"SGLANG_DISAGG_PREFILL_NODES": "4", "SGLANG_DISAGG_DECODE_NODES": "1"}},
		{"sglang-disagg", launcher.Setup{NNodes: 2, NProc: 4}, map[string]string{"SGLANG_DISAGG_MODE": "", "RAY_DEDUP_LOGS": "0"}},
		{"megatron", launcher.Setup{NNodes: 1, NProc: 16}, map[string]string{"TENSOR_MODEL_PARALLEL_SIZE": "8"}},
		{"primus", launcher.Setup{Primus: launcher.Primus{ConfigPath: "a b.yaml", Backend: "megatron"}}, map[string]string{"PRIMUS_CONFIG_PATH": "a b.yaml", "BACKEND": "megatron", "PRIMUS_CLI_EXTRA": ""}},
		{"none", launcher.Setup{NNodes: 2, NProc: 2}, map[string]string{"RAY_DEDUP_LOGS": ""}},
	} {
		l, err := launcher.Find(c.launcher)
		if err != nil {
			t.Fatal(err)
		}
		env := l.Env(c.setup)
		for name, want := range c.want {
			if got, set := env[name]; got != want || set != (want != "") {
				t.Errorf("%s, %+v: %s is %q, want %q", c.launcher, c.setup, name, got, want)
			}
		}
	}
}

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		launcher        string
		nnodes          int
		prefill, decode int
		want            string
	}{
		{"sglang-disagg", 4, 0, 0, ""},
		{"sglang-disagg", 1, 0, 0, ""},
		{"sglang-disagg", 4, 2, 1, ""},
		{"sglang-disagg", 4, 2, 2, "1 proxy, 2 prefill and 2 decode nodes do not make 4 nodes"},
		{"sglang-disagg", 4, 3, 0, "at least 1 of each"},
		{"sglang-disagg", 4, 4, -1, "at least 1 of each"},
		{"vllm", 4, 9, 9, ""},
	} {
		l, err := launcher.Find(c.launcher)
		if err != nil {
			t.Fatal(err)
		}
		err = l.Check(launcher.Setup{NNodes: c.nnodes, NProc: 8, Disagg: launcher.Disagg{PrefillNodes: c.prefill, DecodeNodes: c.decode}})
		if (err == nil) != (c.want == "") || (err != nil && !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// Names of the network belong to the deployment, and those of GPUs to the rank.
func TestEnvStaysOutOfOthersBusiness(t *testing.T) {
	for _, name := range launcher.Names() {
		l, err := launcher.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		for v := range l.Env(launcher.Setup{NNodes: 4, NProc: 8}) {
			for _, taboo := range []string{"NCCL_", "GLOO_", "_VISIBLE_DEVICES", "MASTER_", "MAD_"} {
				if strings.Contains(v, taboo) {
					t.Errorf("%s sets %s", name, v)
				}
			}
		}
	}
}
