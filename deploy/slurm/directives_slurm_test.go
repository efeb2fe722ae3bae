//go:build slurm

package slurm

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"assay/deploy/slurm/slurmtest"
	"assay/pkg/batch"
	"assay/pkg/plan"
	"assay/templates"
)

// scontrolField is a field of `scontrol show job`, which ends at the end of its
// line.
func scontrolField(text, name string) string {
	for line := range strings.Lines(text) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), name+"="); ok {
			return v
		}
	}
	return ""
}

// TestSlurmDirectives has sbatch itself read the options of a script, with values
// that hold whatever its reader of lines, the shell and its file name patterns
// treat specially.
func TestSlurmDirectives(t *testing.T) {
	t.Parallel()
	tools := tools{env: slurmtest.Open(t).Env()}
	for name, value := range map[string]string{
		"plain":          "plain",
		"space":          "two  words",
		"single_quote":   "it's",
		"double_quotes":  `say "hi" now`,
		"substitution":   "$(touch pwned) ${HOME} `id`",
		"backslash":      `a\b\\c \" d`,
		"last_backslash": `ends\`,
		"hash":           "#first a #b c#d",
		"percent":        "%j %u %% %N %j.out",
		"dash":           "--partition=nope -n",
		"utf8":           "naïve 漢字 🎉",
		"signs":          "a;b&c|d<e>f(g)h[i]j{k}l*m?n!o~p^q",
		"long":           strings.Repeat("0123456789 ", 20) + ".",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			dir, out := filepath.Join(base, "run "+value), filepath.Join(base, "out "+value)
			for _, d := range []string{dir, out} {
				if err := os.MkdirAll(d, 0o700); err != nil {
					t.Fatal(err)
				}
			}
			a := plan.Attempt{
				RunID: "20260101-000000-abcdef", Nonce: "00112233445566778899aabbccddeeff", Number: 1, Dir: dir, RankBinary: "/nonexistent/assay",
				Job: plan.Job{ID: "m", NNodes: 1, RanksPerNode: 1, WorldSize: 1, Slurm: &plan.Slurm{OutputDir: out, MailUser: value, MailType: "ALL", Time: "1"}},
			}
			s := &scheduler{opt: Options{Templates: templates.Files(), Env: tools.env}, tools: tools, submitted: map[string]string{}}
			script, err := s.Script(a)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, batch.ScriptFile), script, 0o700); err != nil {
				t.Fatal(err)
			}
			ref, err := s.Submit(t.Context(), a)
			if err != nil {
				t.Fatalf("%v\n%s", err, script)
			}
			defer s.Cancel(t.Context(), ref)
			text, err := tools.run(t.Context(), nil, "scontrol", "show", "job", ref.ID)
			if err != nil {
				t.Fatal(err)
			}
			host, _ := os.Hostname()
			for field, want := range map[string]string{"Comment": jobComment(a, host), "MailUser": value, "WorkDir": dir} {
				got := scontrolField(text, field)
				got, _, _ = strings.Cut(got, " MailType=")
				if got != want {
					t.Errorf("%s is\n%q, want\n%q", field, got, want)
				}
			}
			for end := time.Now().Add(15 * time.Second); ; time.Sleep(100 * time.Millisecond) {
				if data, err := os.ReadFile(ref.Output); err == nil && len(data) > 0 {
					break
				}
				if time.Now().After(end) {
					found, _ := filepath.Glob(base + "/*/*")
					t.Fatalf("the batch script did not write to %q; there are %q; StdOut=%s", ref.Output, found, scontrolField(text, "StdOut"))
				}
			}
		})
	}
}
