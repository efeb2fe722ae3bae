package rank_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// sharing gives two jobs of one model directory that run at the same time, and
// waits for both.
func sharing(t *testing.T, declared, first, second string) (a, b *fixture) {
	t.Helper()
	a, b = newFixture(t, first), newFixture(t, second)
	b.model = a.model
	var commands []*exec.Cmd
	for _, f := range []*fixture{a, b} {
		f.file("s/run.sh", "exec bash -c \"$SCRIPT\"", 0o755)
		f.attempt.Job.Env = map[string]string{"SCRIPT": f.attempt.Job.Program.Command[2], "SHARED": f.model, "CSV": goodCSV}
		f.attempt.Job.Program.Command, f.attempt.Job.Program.Script = nil, "s/run.sh"
		f.attempt.Job.ModelDir = f.model
		f.attempt.Job.Expect.MultipleResults = declared
		commands = append(commands, f.command())
	}
	for _, cmd := range commands {
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		waitFor(t, filepath.Join(a.model, "up"))
	}
	for _, cmd := range commands {
		_ = cmd.Wait()
	}
	return a, b
}

// Of two jobs that may write one file at the same time, none is given it.
func TestResultsOfAnotherJob(t *testing.T) {
	for name, declared := range map[string]string{
		"scripts directory":       "r.csv",
		"absolute":                filepath.Join(t.TempDir(), "abs.csv"),
		"absolute, not there yet": filepath.Join(t.TempDir(), "d/e/abs.csv"),
	} {
		t.Run(name, func(t *testing.T) {
			write := `mkdir -p "$(dirname ` + declared + `)"; printf %s "$CSV" > ` + declared
			if !filepath.IsAbs(declared) {
				write = `printf %s "$CSV" > "$SHARED/s/r.csv"`
			}
			first, second := sharing(t, declared, `echo up > "$SHARED/up"; sleep 1`, write+`; sleep 1`)
			for i, f := range []*fixture{first, second} {
				if r := f.end().Results; r.File != "" || len(r.Refused) != 1 || !strings.Contains(r.Refused[0], "MAD_OUTPUT_CSV") {
					t.Errorf("job %d: %+v", i, r)
				}
			}
		})
	}
}

// The claim of one job does not keep another from its own files.
func TestOwnResultsBesideAnotherJob(t *testing.T) {
	first, second := sharing(t, "r.csv", `echo up > "$SHARED/up"; printf %s "$CSV" > r.csv; sleep 0.5`, `printf %s "$CSV" > "$MAD_OUTPUT_CSV"`)
	for i, f := range []*fixture{first, second} {
		if r := f.end().Results; r.File != "r.csv" {
			t.Errorf("job %d: %+v", i, r)
		}
	}
}

// One job after the other may write the same file, each its own rows.
func TestResultsOfJobsInTurn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "abs.csv")
	for _, tt := range []struct{ write, want string }{
		{`printf %s "$CSV" > "$OUT"`, goodCSV},
		{`echo m,2,x >> "$OUT"`, "model,performance,metric\nm,2,x\n"},
		{`touch "$OUT"`, ""},
		{`cp "$OUT" t; cat t > "$OUT"`, ""},
		{`printf 'model,performance,metric\nm,3,x\n' > "$OUT"`, "model,performance,metric\nm,3,x\n"},
		{`rm "$OUT"`, ""},
	} {
		f := newFixture(t, tt.write)
		f.attempt.Job.Env = map[string]string{"CSV": goodCSV, "OUT": path}
		f.attempt.Job.Expect.MultipleResults = path
		_, end := f.run()
		got := ""
		if end.Results.File != "" {
			got = f.read("results/" + end.Results.File)
		}
		if got != tt.want {
			t.Errorf("%s: kept %q, want %q; %+v", tt.write, got, tt.want, end.Results)
		}
	}
}

// What every rank of a job can write counts for none of them.
func TestSharedResultsOfSeveralRanks(t *testing.T) {
	for name, declared := range map[string]string{
		"absolute": filepath.Join(t.TempDir(), "abs.csv"),
		"parent":   "../../r.csv",
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, `printf %s "$CSV" > "$OUT"`)
			f.attempt.Job.Env = map[string]string{"CSV": goodCSV, "OUT": declared}
			f.attempt.Job.WorldSize = 2
			f.attempt.Job.Expect.MultipleResults = declared
			if _, end := f.run(); end.Results.File != "" || len(end.Results.Refused) != 1 {
				t.Errorf("%+v", end.Results)
			}
		})
	}
}

// A path that a pre-script leads out of the directory of the rank is claimed too.
func TestLinkOutOfTheRank(t *testing.T) {
	f := newFixture(t, `echo m,2,x >> out/r.csv`)
	shared := t.TempDir()
	if err := os.WriteFile(filepath.Join(shared, "r.csv"), []byte(goodCSV), 0o600); err != nil {
		t.Fatal(err)
	}
	f.file("pre.sh", "ln -s "+shared+" out", 0o644)
	f.attempt.Job.PreScripts = append(f.attempt.Job.PreScripts, script("pre.sh"))
	f.attempt.Job.Expect.MultipleResults = "out/r.csv"
	if _, end := f.run(); end.Results.File == "" || f.read("results/r.csv") != "model,performance,metric\nm,2,x\n" {
		t.Errorf("%+v", end.Results)
	}
	f.attempt.Job.WorldSize = 2
	f.attempt.Nonce = "n2"
	if _, end := f.run(); end.Results.File != "" || len(end.Results.Refused) != 1 {
		t.Errorf("of several ranks: %+v", end.Results)
	}
}
