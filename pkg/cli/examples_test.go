package cli

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// exampleRun is the id that examples use for a run.
const exampleRun = "20260102-150405-a1b2c3"

// commands lists a command and all below it.
func commands(c *cobra.Command) []*cobra.Command {
	list := []*cobra.Command{c}
	for _, sub := range c.Commands() {
		list = append(list, commands(sub)...)
	}
	return list
}

func testRoot() *cobra.Command {
	a := &app{IO: IO{Out: io.Discard, Err: io.Discard}}
	return a.root()
}

func TestEveryCommandHasHelp(t *testing.T) {
	for _, c := range commands(testRoot()) {
		if c.Short == "" || c.Long == "" {
			t.Errorf("%s has no description", c.CommandPath())
		}
		if c.Runnable() && c.Example == "" {
			t.Errorf("%s has no example", c.CommandPath())
		}
	}
}

func TestEveryCommandHasJSON(t *testing.T) {
	without := map[string]bool{ // print nothing, or what they print is not a result
		"assay": true, "assay rank": true, "assay probe": true, "assay probe triad": true, "assay probe allreduce": true, "assay probe tcp": true,
		"assay perf": true, "assay docs": true, "assay completion": true, "assay help": true, "assay install": true,
	}
	for _, c := range commands(testRoot()) {
		if c.Runnable() && c.Flags().Lookup("json") == nil && !without[c.CommandPath()] {
			t.Errorf("%s has no --json", c.CommandPath())
		}
	}
}

// TestExamples runs every example of every command as it is printed, in a
// directory that holds the project's own models.
func TestExamples(t *testing.T) {
	dir := t.TempDir()
	bin := filepath.Join(dir, "bin")
	build := exec.Command("go", "build", "-o", filepath.Join(bin, "assay"), "assay/cmd/assay")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := os.CopyFS(filepath.Join(dir, "models"), os.DirFS(filepath.Join("..", "..", "models"))); err != nil {
		t.Fatal(err)
	}
	makeExecutable(t, filepath.Join(dir, "models", "scripts"))
	run := func(line string) (string, int) {
		cmd := exec.Command("bash", "-c", line)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		if err != nil && cmd.ProcessState == nil {
			t.Fatal(err)
		}
		return string(out), cmd.ProcessState.ExitCode()
	}
	prepare := []string{
		"assay build --tags demo",
		"assay run -q --run-id " + exampleRun,
		"mkdir results && cp perf.csv results",
	}
	for _, line := range prepare {
		if out, code := run(line); code != 0 {
			t.Fatalf("%s: exit code %d\n%s", line, code, out)
		}
	}
	for _, c := range commands(testRoot()) {
		for _, line := range strings.Split(c.Example, "\n") {
			if line = strings.TrimSpace(line); line == "" {
				continue
			}
			t.Run(line, func(t *testing.T) {
				if strings.HasPrefix(line, "assay place") {
					line = "SLURM_JOB_ID=7 SLURM_JOB_NODELIST=localhost " + line
				}
				if strings.HasPrefix(line, "assay rank") {
					// A rank starts once; this one has to be as if it never had.
					if err := os.RemoveAll(filepath.Join(dir, "runs", exampleRun, "jobs", "triad", "1", "ranks")); err != nil {
						t.Fatal(err)
					}
				}
				if strings.HasPrefix(line, "assay isolate") {
					writeGroup(t, filepath.Join(dir, "group.json"))
					if out, code := run("assay run -q -m group.json --nodes node[1-4]"); code != 3 {
						t.Fatalf("exit code %d\n%s", code, out)
					}
				}
				if out, code := run(line); code != 0 {
					t.Errorf("exit code %d\n%s", code, out)
				}
			})
		}
	}
}

// writeGroup writes the manifest of a group that one of its nodes makes slow.
func writeGroup(t *testing.T, path string) {
	t.Helper()
	text := `{"built_images": {"allreduce": {}}, "context": {}, "built_models": {"allreduce": {
		"name": "allreduce", "scope": "group", "distributed": {"nnodes": 4},
		"command": ["sh", "-c", "[ $ASSAY_NODE = node3 ] && echo busbwGBs=40 || echo busbwGBs=400"],
		"metrics": [{"name": "busbwGBs", "aggregate": "min"}], "thresholds": [{"metric": "busbwGBs", "min": 100}]}}}`
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func makeExecutable(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		return os.Chmod(path, 0o755)
	})
	if err != nil {
		t.Fatal(fmt.Errorf("%s: %w", dir, err))
	}
}
