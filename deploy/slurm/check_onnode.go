package slurm

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"assay/deploy"
	"assay/pkg/container"
	"assay/pkg/environ"
	"assay/pkg/phrase"
	"assay/pkg/plan"
)

// nodePatience is how long a check waits for a free node.
const nodePatience = 20 * time.Second

// The names of files in the directory of a check: one that is written before the
// look from a node, and the beginning of those that the looks leave.
const (
	hereFile  = "here"
	thereFile = "there-"
)

// NodeLook is what a process on a node sees of the directory of a check.
type NodeLook struct {
	Node     string            `json:"node"`     // as SLURM names it
	Here     string            `json:"here"`     // what it read in the file that was just written
	Problem  string            `json:"problem"`  // why it could not, or could leave no file of its own
	Programs map[string]string `json:"programs"` // by path: what is wrong with it, "" when nothing is
	Runtimes map[string]string `json:"runtimes"` // by name of a container runtime: why it does not work, "" when it does
}

// LookFromNode looks at the directory of a check from a node: it reads the file
// that was just written there, and leaves one of its own, by rename.
func LookFromNode(ctx context.Context, env []string, dir, name string, programs, runtimes []string) NodeLook {
	look := NodeLook{Node: environ.Get(env, "SLURMD_NODENAME"), Programs: map[string]string{}, Runtimes: map[string]string{}}
	here, err := os.ReadFile(filepath.Join(dir, hereFile))
	look.Here = string(here)
	if err == nil {
		mine := filepath.Join(dir, thereFile+name)
		err = errors.Join(os.WriteFile(mine+".new", here, 0o600), os.Rename(mine+".new", mine)) //nolint:gosec // its user says where
	}
	if err != nil {
		look.Problem = err.Error()
	}
	for _, path := range programs {
		look.Programs[path] = ""
		if _, err := os.Stat(path); err != nil {
			look.Programs[path] = err.Error()
		}
	}
	for _, want := range runtimes {
		look.Runtimes[want] = ""
		if _, err := container.FindRunner(ctx, env, want); err != nil {
			look.Runtimes[want] = err.Error()
		}
	}
	return look
}

// onNode runs the assay that wraps ranks on a node for each distinct set of
// options that choose one, and looks at the directory of runs from there.
func (t *Target) onNode(ctx context.Context, req deploy.CheckRequest) []deploy.Finding {
	const subject = "node"
	if _, err := t.s.tools.find("srun"); err != nil { // slurmrestd cannot wait for what it starts
		return []deploy.Finding{unknown(subject, err)}
	}
	binary := req.RankBinary
	if binary == "" {
		var err error
		if binary, err = t.Stage(ctx, req.Runs); err != nil {
			return []deploy.Finding{outage(subject, fmt.Sprintf("the assay that wraps the ranks cannot be put below %s: %v", req.Runs, err), "")}
		}
	}
	dir, err := os.MkdirTemp(existing(req.Runs), ".assay-check-")
	if err != nil {
		return []deploy.Finding{outage(subject, err.Error(), "")}
	}
	defer func() { _ = os.RemoveAll(dir) }() // what is left is told apart by its name
	token := rand.Text()
	if err := os.WriteFile(filepath.Join(dir, hereFile), []byte(token), 0o600); err != nil {
		return []deploy.Finding{outage(subject, err.Error(), "")}
	}
	choices := t.s.nodeChoices(req.Jobs)
	found := make([][]deploy.Finding, len(choices))
	var wg sync.WaitGroup
	for i, c := range choices {
		wg.Go(func() {
			l := lookout{dir: dir, name: fmt.Sprint(i), token: token, binary: binary, choice: c}
			found[i] = t.s.look(ctx, l)
		})
	}
	wg.Wait()
	return slices.Concat(found...)
}

// nodeChoice is a set of options that choose nodes, and what is run there.
type nodeChoice struct {
	options  []string
	programs []string
	runtimes []string
}

// mostPrograms bounds the programs that are looked for on a node.
const mostPrograms = 100

// nodeChoices are the distinct sets of options that choose nodes. Inside an
// allocation the nodes are chosen.
func (s *scheduler) nodeChoices(jobs []plan.Job) []nodeChoice {
	_, inside := allocation(s.opt.Env)
	var choices []nodeChoice
	for _, j := range jobs {
		options := []string{"--overlap"}
		if !inside {
			options = chosenBy(j.Slurm)
		}
		i := slices.IndexFunc(choices, func(c nodeChoice) bool { return slices.Equal(c.options, options) })
		if i < 0 {
			i = len(choices)
			choices = append(choices, nodeChoice{options: options})
		}
		c := &choices[i]
		if path := program(j); path != "" && !slices.Contains(c.programs, path) && len(c.programs) < mostPrograms {
			c.programs = append(c.programs, path)
		}
		if k := j.Container; k.Wrapped() && !slices.Contains(c.runtimes, k.Runtime) {
			c.runtimes = append(c.runtimes, k.Runtime)
		}
	}
	return choices
}

// chosenBy are the options of a job that say which nodes it may get, and who asks.
func chosenBy(asked *plan.Slurm) []string {
	options := []string{"--time=1"}
	if asked == nil {
		return options
	}
	for _, d := range given(asked) {
		if slices.Contains([]string{"partition", "account", "qos", "reservation", "exclude", "constraint"}, d.Name) {
			options = append(options, "--"+d.Name+"="+d.Value)
		}
	}
	return options
}

// lookout is one look from a node.
type lookout struct {
	dir, name, token string
	binary           string
	choice           nodeChoice
}

// look runs one process on a node and judges what it saw.
func (s *scheduler) look(ctx context.Context, l lookout) []deploy.Finding {
	tools := s.tools
	tools.limit = nodePatience + commandLimit
	args := append([]string{
		"--nodes=1", "--ntasks=1", "--immediate=" + fmt.Sprint(int(nodePatience.Seconds())), "--input=none", "--job-name=check-assay",
		"--export=" + strings.Join(append([]string{"PATH", "HOME", "USER", "LANG"}, engineVariables()...), ","), "--kill-on-bad-exit=0", "--quiet",
	}, l.choice.options...)
	args = append(args, l.binary, "node-look", "--dir", l.dir, "--name", l.name)
	for _, p := range l.choice.programs {
		args = append(args, "--program", p)
	}
	for _, r := range l.choice.runtimes {
		args = append(args, "--runtime", r)
	}
	out, err := tools.run(ctx, append(s.inPlaceEnv(), s.engineEnv()...), "srun", args...)
	if err != nil {
		return []deploy.Finding{notRun(l, err)}
	}
	var seen NodeLook
	if err := json.Unmarshal([]byte(out), &seen); err != nil {
		return []deploy.Finding{outage("node", fmt.Sprintf("%s ran on a node and printed %q", l.binary, phrase.Clip(phrase.Line(out), 200)), "name an assay of this version as rank_binary, or none")}
	}
	back, err := os.ReadFile(filepath.Join(l.dir, thereFile+l.name))
	return judgeLook(l, seen, string(back), err)
}

// notRun says why nothing ran on a node.
func notRun(l lookout, err error) deploy.Finding {
	const subject = "node"
	f, failed := asFailure(err)
	switch {
	case failed && (f.late || says(f, "Requested nodes are busy", "Immediate execution impossible", "configuration not available now")):
		return deploy.Finding{
			Subject: subject, State: deploy.FindingUnknown,
			Message: fmt.Sprintf("no node was free within %s, so that nothing was looked at from one (%s)", phrase.Seconds(nodePatience.Seconds()), f.Error()),
			Fix:     "try again when there is one",
		}
	case failed && says(f, "execve", "No such file or directory", "Permission denied", "Exec format error"):
		return outage(subject, fmt.Sprintf("%s cannot be executed on a node: %s", l.binary, f.Error()), "name a directory with --runs that nodes see and may execute from, or a rank_binary that they have")
	}
	return outage(subject, "nothing could be run on a node: "+err.Error(), "")
}

// judgeLook compares what a node saw with what was there, and what it left with
// what is seen here.
func judgeLook(l lookout, seen NodeLook, back string, err error) []deploy.Finding {
	subject := "node " + seen.Node
	const fix = "name a directory with --runs, or slurm.shared_workspace in the manifest, on a filesystem that all nodes share"
	var found []deploy.Finding
	switch dir := filepath.Dir(l.dir); {
	case seen.Problem != "":
		found = append(found, outage(subject, fmt.Sprintf("%s is not the same there: %s", dir, seen.Problem), fix))
	case seen.Here != l.token:
		found = append(found, outage(subject, fmt.Sprintf("a file just written to %s reads otherwise there", dir), fix))
	case err != nil || back != l.token:
		found = append(found, outage(subject, fmt.Sprintf("a file that it renamed in %s is not seen here (%v)", dir, err), fix))
	default:
		found = append(found, ok(subject, "executes %s, sees what is written to %s, and is seen to rename there", l.binary, dir))
	}
	for _, path := range l.choice.programs {
		if why := seen.Programs[path]; why != "" {
			found = append(found, fault(subject, "a program of the manifest is not there: "+why, "put it, or MODEL_DIR, on a filesystem that all nodes share"))
		}
	}
	for _, want := range l.choice.runtimes {
		switch why, looked := seen.Runtimes[want]; {
		case !looked:
		case why != "":
			found = append(found, outage(subject, "it cannot run the containers of the manifest: "+why, "--bare runs the scripts directly on the nodes"))
		default:
			found = append(found, ok(subject, "has what runs containers (%s)", want))
		}
	}
	return found
}
