package slurm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay/deploy"
	"assay/pkg/plan"
	"assay/templates"
)

// wantFindings compares findings, "state: text", with their beginnings.
func wantFindings(t *testing.T, found []deploy.Finding, want []string) {
	t.Helper()
	var got []string
	for _, f := range found {
		got = append(got, f.State.String()+": "+f.Text())
	}
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			t.Errorf("no %q", want[i])
		case i >= len(want):
			t.Errorf("more than was wanted: %q", got[i])
		case !strings.HasPrefix(got[i], want[i]):
			t.Errorf("%q\nwant %q", got[i], want[i])
		}
	}
}

func TestControl(t *testing.T) {
	for text, want := range map[string]string{
		"Slurmctld(primary) at vm is UP\n":                                                          "ok: ",
		"Slurmctld(primary) at a is DOWN\nSlurmctld(backup) at b is UP\n":                           "ok: Slurmctld(primary) at a is DOWN Slurmctld(backup) at b is UP",
		"Slurmctld(primary) at vm is DOWN\n****\n** RESTORE SLURMCTLD DAEMON TO SERVICE **\n****\n": "problem: no controller answers: Slurmctld(primary) at vm is DOWN RESTORE SLURMCTLD DAEMON TO SERVICE; try",
		"Slurmctld(primary) at vm is DOWN\n":                                                        "problem: no controller answers: Slurmctld(primary) at vm is DOWN",
		"":                                                                                          "problem: no controller answers: no such file",
	} {
		f := site{ping: told[string]{text, errors.New("no such file")}}.control()
		wantFindings(t, []deploy.Finding{f}, []string{want})
		if f.State == deploy.FindingProblem && !f.Unavailable {
			t.Error("a controller that is away is blamed on the manifest")
		}
	}
}

func TestDecideAccount(t *testing.T) {
	acc := accounting{
		accounts: told[[]string]{[]string{"root", "ml", "ops"}, nil}, mine: told[[]string]{[]string{"ml"}, nil}, qos: told[[]string]{[]string{"normal"}, nil},
	}
	for name, c := range map[string]struct {
		asked   plan.Slurm
		enforce string
		want    []string
	}{
		"known":                {plan.Slurm{Account: "ml", QOS: "normal"}, "none", []string{"ok: is known", "ok: is known"}},
		"known and enforced":   {plan.Slurm{Account: "ML", QOS: "normal"}, "associations,limits,qos,safe", []string{"ok: is known", "ok: is known"}},
		"unknown":              {plan.Slurm{Account: "x"}, "none", []string{`warning: entry "e": the accounting knows no account "x"; the site does not enforce it; there are: root, ml, ops`}},
		"unknown and enforced": {plan.Slurm{Account: "x"}, "associations", []string{`problem: entry "e": the accounting knows no account "x"`}},
		"of others":            {plan.Slurm{Account: "ops"}, "none", []string{"ok: is known"}},
		"of others, enforced":  {plan.Slurm{Account: "ops"}, "limits", []string{`problem: entry "e": this user may not use account "ops"; there are: ml`}},
		"qos":                  {plan.Slurm{QOS: "x"}, "associations", []string{`warning: entry "e": the accounting knows no qos "x"; the site does not enforce it`}},
		"qos enforced":         {plan.Slurm{QOS: "x"}, "associations, qos", []string{`problem: entry "e": the accounting knows no qos "x"`}},
	} {
		t.Run(name, func(t *testing.T) {
			wantFindings(t, decideAccount(wish{keys: []string{"e"}, Slurm: c.asked}, acc, c.enforce), c.want)
		})
	}
	wantFindings(t, decideAccount(wish{keys: []string{"e"}, Slurm: plan.Slurm{Account: "x"}}, accounting{accounts: told[[]string]{err: errors.New("slurmdbd is away")}}, "qos"),
		[]string{"unknown: could not be looked at: slurmdbd is away"})
}

func TestAdvice(t *testing.T) {
	w := wish{keys: []string{"a", "b", "c", "d", "e"}}
	wantFindings(t, advice(w, told[string]{"sbatch: Job 43 to start at 2026-01-01T00:00:00 using 2 processors on nodes node[1-2] in partition main\n", nil}),
		[]string{`ok: of the script of entries "a", "b", "c" and 2 more it says: Job 43 to start at 2026-01-01T00:00:00 using 2 processors on nodes node[1-2] in partition main; that is a guess, which can be wrong both ways`})
	wantFindings(t, advice(w, told[string]{"", &failure{command: "sbatch", code: 1, said: "allocation failure: Requested node configuration is not available"}}),
		[]string{`warning: of the script of entries "a", "b", "c" and 2 more it says: allocation failure: Requested node configuration is not available; that is a guess, which can be wrong both ways`})
	wantFindings(t, advice(w, told[string]{"", &failure{command: "sbatch", late: true, code: -1, limit: time.Second}}), []string{"unknown: "})
}

func TestInsideFindings(t *testing.T) {
	al := alloc{"41", "node[1-3]"}
	w := func(key string, nodes int, s plan.Slurm) wish {
		return wish{keys: []string{key}, nodes: nodes, Slurm: s}
	}
	wantFindings(t, insideFindings(al, []wish{w("a", 3, plan.Slurm{}), w("b", 4, plan.Slurm{Partition: "p", GPUsPerNode: 2}), w("c", 1, plan.Slurm{Partition: "q", Time: "5"})}, told[string]{"RUNNING   \n", nil}), []string{
		"ok: jobs run in place on its nodes (node[1-3]), one after the other",
		`problem: entry "b" asks for 4 nodes, and the allocation has 3 (node[1-3])`,
		`warning: entry "c" uses 1 of the 3 nodes of the allocation: node1`,
		"warning: slurm.partition, slurm.gpus_per_node, slurm.time have no effect inside an allocation",
	})
	for _, gone := range []told[string]{{"", nil}, {"COMPLETED\n", nil}, {"", &failure{said: "slurm_load_jobs error: Invalid job id specified", code: 1}}} {
		wantFindings(t, insideFindings(al, nil, gone), []string{"problem: SLURM_JOB_ID names allocation 41, which is "})
	}
	wantFindings(t, insideFindings(al, nil, told[string]{"", errors.New("away")}), []string{"unknown: "})
	wantFindings(t, insideFindings(alloc{"41", ""}, nil, told[string]{"RUNNING", nil}), []string{`problem: SLURM_JOB_NODELIST="" names no nodes`})
}

func TestGrace(t *testing.T) {
	for wait, want := range map[time.Duration]time.Duration{
		0: 100 * time.Millisecond, 2 * time.Second: time.Second, 10 * time.Second: 5 * time.Second, 14 * time.Second: 7 * time.Second, 15 * time.Second: 0, 30 * time.Second: 0,
	} {
		if got := grace(wait); got != want {
			t.Errorf("KillWait %s: grace %s, want %s", wait, got, want)
		}
	}
}

func TestWishes(t *testing.T) {
	job := func(key string, nodes int, s *plan.Slurm) plan.Job {
		return plan.Job{Key: key, NNodes: nodes, RanksPerNode: 1, Slurm: s}
	}
	no := false
	ws := wishes([]plan.Job{
		job("a", 2, &plan.Slurm{Partition: "p"}), job("b", 2, &plan.Slurm{Partition: "p", OutputDir: "/x"}), job("c", 1, &plan.Slurm{Partition: "p"}),
		job("d", 2, &plan.Slurm{Partition: "p", Requeue: &no}), job("f", 2, nil),
	})
	var got []string
	for _, w := range ws {
		got = append(got, w.who())
	}
	if d := cmp.Diff([]string{`entries "a", "b"`, `entry "c"`, `entry "d"`, `entry "f"`}, got); d != "" {
		t.Error(d)
	}
}

func TestRunsFindings(t *testing.T) {
	dir := t.TempDir()
	runs := filepath.Join(dir, "not", "yet")
	yes, no := func() bool { return true }, func() bool { return false }
	wantFindings(t, runsFindings(runs, yes), []string{"ok: can be written, and files appear there at once"})
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if _, err := os.Stat("/dev/shm"); err == nil {
		wantFindings(t, runsFindings("/dev/shm/assay-runs", no), []string{"warning: /dev/shm/assay-runs is on tmpfs of this machine, which other nodes do not see"})
		wantFindings(t, runsFindings("/dev/shm/assay-runs", yes), []string{"ok: "})
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	wantFindings(t, runsFindings(filepath.Join(file, "runs"), yes), []string{"problem: no run can be kept in " + file})
	wantFindings(t, runsFindings("/proc/self/assay-runs", yes), []string{"problem: no run can be kept in /proc/self/assay-runs"})
}

func TestBinaryFinding(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "assay")
	wantFindings(t, []deploy.Finding{binaryFinding(file)}, []string{"problem: the rank_binary cannot be looked at"})
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	wantFindings(t, []deploy.Finding{binaryFinding(file), binaryFinding(dir)}, []string{"problem: " + file + " is no program", "problem: " + dir + " is no program"})
	if err := os.Chmod(file, 0o755); err != nil {
		t.Fatal(err)
	}
	wantFindings(t, []deploy.Finding{binaryFinding(file)}, []string{"ok: "})
}

// checkWith runs Check where the commands of SLURM are scripts.
func checkWith(t *testing.T, commands map[string]string, jobs ...plan.Job) ([]deploy.Finding, string) {
	t.Helper()
	bin := t.TempDir()
	for name, text := range commands {
		text = "#!/bin/bash\necho " + name + ` "$*" >>` + bin + "/asked\n" + text
		if err := os.WriteFile(filepath.Join(bin, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	target := New(Options{Binary: "/bin/true", Env: []string{"PATH=" + bin + ":/usr/sbin"}, Templates: templates.Files()})
	found := target.Check(context.Background(), deploy.CheckRequest{Jobs: jobs, Runs: filepath.Join(t.TempDir(), "runs")})
	asked, err := os.ReadFile(filepath.Join(bin, "asked"))
	if err != nil && len(commands) > 0 {
		t.Fatal(err)
	}
	return found, string(asked)
}

// healthy are the commands of a site that is well.
func healthy() map[string]string {
	return map[string]string{
		"squeue": "", "scancel": "", "srun": "", "sacct": "",
		"sbatch": "cat >/dev/null; echo 'sbatch: Job 1 to start' >&2",
		"scontrol": `case "$*" in
ping) echo "Slurmctld(primary) at vm is UP" ;;
*config) printf '%s\n' "KillWait                = 30 sec" "AccountingStorageEnforce = none" ;;
*partition) printf '%s' "` + partitionsText + `" ;;
esac`,
		"sinfo": `printf '%s' "` + groupsText + `"`,
	}
}

func aJob(key, partition string) plan.Job {
	return plan.Job{Key: key, ID: key, NNodes: 2, RanksPerNode: 1, WorldSize: 2, Program: plan.Program{Command: []string{"true"}}, Slurm: &plan.Slurm{Partition: partition, Time: "5"}}
}

// TestByWay: inside an allocation nothing goes through slurmrestd.
func TestByWay(t *testing.T) {
	jobs := []plan.Job{aJob("a", "main"), aJob("b", "main")}
	jobs[1].Slurm.API = "rest"
	s := New(Options{}).s
	if command, rest := s.byWay(jobs); len(command) != 1 || len(rest) != 1 || rest[0].Key != "b" {
		t.Errorf("%v, %v", command, rest)
	}
	s.opt.Env = []string{"SLURM_JOB_ID=41"}
	if command, rest := s.byWay(jobs); len(command) != 2 || len(rest) != 0 {
		t.Errorf("inside an allocation %v, %v", command, rest)
	}
}

// TestCheckCost: each command is run once, however many entries there are, and
// sbatch once for each distinct set of options.
func TestCheckCost(t *testing.T) {
	var jobs []plan.Job
	for i := range 500 {
		jobs = append(jobs, aJob(fmt.Sprint("e", i), []string{"main", "short"}[i%2]))
	}
	found, asked := checkWith(t, healthy(), jobs...)
	if hasProblem(found) {
		t.Errorf("%v", found)
	}
	if n := strings.Count(asked, "sbatch --test-only\n"); n != 2 {
		t.Errorf("sbatch was asked %d times", n)
	}
	if n := strings.Count(asked, "\n"); n != 6 {
		t.Errorf("%d commands were run:\n%s", n, asked)
	}
}

func TestCheckWithoutCommands(t *testing.T) {
	commands := healthy()
	delete(commands, "scancel")
	delete(commands, "sacct")
	delete(commands, "squeue")
	commands["scontrol"] += "\n"
	target := New(Options{Env: []string{"PATH="}})
	found := target.Check(context.Background(), deploy.CheckRequest{Jobs: []plan.Job{aJob("e", "main")}, Runs: t.TempDir()})
	for _, name := range []string{"sbatch", "squeue", "scancel", "srun", "scontrol"} {
		if !strings.Contains(fmt.Sprint(found), "there is no "+name+" in PATH") {
			t.Errorf("%s is not missed: %v", name, found)
		}
	}
	for _, f := range found {
		if f.State == deploy.FindingProblem && !f.Unavailable {
			t.Errorf("%s is blamed on the manifest", f.Subject)
		}
		if f.Subject == "sacct" && f.State != deploy.FindingWarning {
			t.Errorf("sacct: %v", f)
		}
	}
}

func TestCheckOfControllerThatIsAway(t *testing.T) {
	commands := healthy()
	commands["scontrol"] = `case "$*" in
ping) echo "Slurmctld(primary) at vm is DOWN"; exit 1 ;;
*) exec sleep 300 ;;
esac`
	commands["sinfo"], commands["sbatch"] = "exec sleep 300", "exec sleep 300"
	found, _ := checkWith(t, commands, aJob("e", "main"))
	last := found[len(found)-1]
	if last.Subject != "slurmctld" || last.State != deploy.FindingProblem || !last.Unavailable {
		t.Errorf("%+v", last)
	}
}

// TestCheckAsksAccountsWhenInDoubt: only after sbatch refused.
func TestCheckAsksAccountsWhenInDoubt(t *testing.T) {
	j := aJob("e", "main")
	j.Slurm.Account = "nope"
	commands := healthy()
	commands["sacctmgr"] = "echo root"
	if _, asked := checkWith(t, commands, j); strings.Contains(asked, "sacctmgr") {
		t.Errorf("sbatch had no doubts, and sacctmgr was asked:\n%s", asked)
	}
	commands["sbatch"] = "echo 'allocation failure: Invalid account' >&2; exit 1"
	found, asked := checkWith(t, commands, j)
	if !strings.Contains(asked, "sacctmgr") || !strings.Contains(fmt.Sprint(found), `the accounting knows no account "nope"`) {
		t.Errorf("%v\n%s", found, asked)
	}
}

func TestNotRun(t *testing.T) {
	l := lookout{binary: "/runs/.assay/assay-1"}
	for said, want := range map[string]string{
		"srun: error: Unable to allocate resources: Requested nodes are busy":                  "unknown: no node was free within 20.0 s",
		"slurmstepd: error: execve(): /runs/.assay/assay-1: No such file or directory":         "problem: /runs/.assay/assay-1 cannot be executed on a node: ",
		"slurmstepd: error: execve(): /runs/.assay/assay-1: Permission denied":                 "problem: /runs/.assay/assay-1 cannot be executed on a node: ",
		"srun: error: Unable to allocate resources: Invalid account or account/partition comb": "problem: nothing could be run on a node: ",
	} {
		wantFindings(t, []deploy.Finding{notRun(l, &failure{command: "srun", code: 1, said: said})}, []string{want})
	}
	wantFindings(t, []deploy.Finding{notRun(l, &failure{command: "srun", code: -1, late: true})}, []string{"unknown: "})
}

func TestLookFromNode(t *testing.T) {
	dir := t.TempDir()
	there, absent := filepath.Join(dir, hereFile), filepath.Join(dir, "absent")
	l := lookout{dir: dir, name: "0", token: "abc", binary: "/a", choice: nodeChoice{programs: []string{there, absent}}}
	judge := func() []deploy.Finding {
		seen := LookFromNode(t.Context(), []string{"SLURMD_NODENAME=node7"}, dir, "0", l.choice.programs, l.choice.runtimes)
		back, err := os.ReadFile(filepath.Join(dir, thereFile+"0"))
		return judgeLook(l, seen, string(back), err)
	}
	wantFindings(t, judge(), []string{"problem: " + filepath.Dir(dir) + " is not the same there: open ", "problem: a program", "problem: a program"})
	if err := os.WriteFile(there, []byte("abc"), 0o600); err != nil {
		t.Fatal(err)
	}
	found := judge()
	wantFindings(t, found, []string{"ok: executes /a", "problem: a program of the manifest is not there: stat " + absent})
	if found[0].Subject != "node node7" {
		t.Errorf("subject %q", found[0].Subject)
	}
	l.token = "other"
	wantFindings(t, judge()[:1], []string{"problem: a file just written to " + filepath.Dir(dir) + " reads otherwise there"})
	l.token = "abc"
	wantFindings(t, judgeLook(l, NodeLook{Here: "abc"}, "", errors.New("no such file"))[:1], []string{"problem: a file that it renamed in "})
}

func TestNodeChoices(t *testing.T) {
	s := New(Options{}).s
	a, b, c := aJob("a", "main"), aJob("b", "main"), aJob("c", "short")
	b.Slurm.Time, b.Slurm.Nodelist = "9", "node1"
	a.Program, b.Program = plan.Program{Script: "/x/run.sh"}, plan.Program{Script: "run.sh"}
	b.ModelDir = "/m"
	want := []nodeChoice{{[]string{"--time=1", "--partition=main"}, []string{"/x/run.sh", "/m/run.sh"}, nil}, {[]string{"--time=1", "--partition=short"}, nil, nil}}
	if d := cmp.Diff(want, s.nodeChoices([]plan.Job{a, b, c}), cmp.AllowUnexported(nodeChoice{})); d != "" {
		t.Error(d)
	}
	s.opt.Env = []string{"SLURM_JOB_ID=41"}
	if got := s.nodeChoices([]plan.Job{a, c}); len(got) != 1 || got[0].options[0] != "--overlap" {
		t.Errorf("%v", got)
	}
}
