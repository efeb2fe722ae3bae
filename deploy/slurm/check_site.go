package slurm

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"assay/deploy"
	"assay/pkg/hostlist"
	"assay/pkg/plan"
	"assay/pkg/rundir"
)

// told is an answer of a command, or why there is none.
type told[T any] struct {
	value T
	err   error
}

// site is what SLURM says of itself.
type site struct {
	ping       told[string]
	config     told[map[string]string]
	partitions told[[]partition]
	groups     told[[]nodeGroup]
	allocation told[string]
	advice     []told[string] // of sbatch --test-only, a wish each
}

// checkLimit is how long a command may take that Check waits for.
const checkLimit = 20 * time.Second

// lookAround asks for everything at the same time. A controller that does not
// answer ends the other questions.
func (s *scheduler) lookAround(ctx context.Context, req deploy.CheckRequest, ws []wish, inside bool, al alloc) site {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	tools := s.tools
	tools.limit = checkLimit
	st := site{advice: make([]told[string], len(ws))}
	var wg sync.WaitGroup
	wg.Go(func() {
		st.ping.value, st.ping.err = tools.run(ctx, nil, "scontrol", "ping")
		alone := site{ping: st.ping} // the rest is being written
		if alone.control().State == deploy.FindingProblem {
			cancel()
		}
	})
	wg.Go(func() {
		out, err := tools.run(ctx, nil, "scontrol", "show", "config")
		st.config = told[map[string]string]{parseConfig(out), err}
	})
	if inside {
		wg.Go(func() {
			st.allocation.value, st.allocation.err = tools.run(ctx, nil, "squeue", "--noheader", "--jobs="+al.id, "--Format=State")
		})
		wg.Wait()
		return st
	}
	wg.Go(func() {
		out, err := tools.run(ctx, nil, "scontrol", "--all", "--oneliner", "show", "partition")
		st.partitions = told[[]partition]{parsePartitions(out), err}
	})
	wg.Go(func() {
		out, err := tools.run(ctx, nil, "sinfo", "--all", "--noheader", "--format=%R|%T|%m|%G|%N|%c")
		st.groups.value, st.groups.err = parseGroups(out)
		if err != nil {
			st.groups.err = err
		}
	})
	wg.Go(func() { s.testOnly(ctx, req, ws, st.advice) })
	wg.Wait()
	return st
}

// testsAtOnce bounds the scripts that sbatch is asked about at the same time.
const testsAtOnce = 8

// testOnly asks sbatch about the script of the first entry of each wish.
func (s *scheduler) testOnly(ctx context.Context, req deploy.CheckRequest, ws []wish, out []told[string]) {
	var wg sync.WaitGroup
	room := make(chan struct{}, testsAtOnce)
	for i, w := range ws {
		wg.Go(func() {
			room <- struct{}{}
			defer func() { <-room }()
			out[i].value, out[i].err = s.testScript(ctx, req, w.job)
		})
	}
	wg.Wait()
}

func (s *scheduler) testScript(ctx context.Context, req deploy.CheckRequest, j plan.Job) (string, error) {
	script, err := s.Script(plan.Attempt{
		Version: plan.AttemptVersion, RunID: "check", Nonce: strings.Repeat("0", nonceInName), Number: 1,
		Dir: rundir.AttemptDir(filepath.Join(req.Runs, "check"), j.ID, 1), Job: j, RankBinary: req.RankBinary,
	})
	if err != nil {
		return "", err
	}
	tools := s.tools
	tools.limit, tools.stdin, tools.both = checkLimit, script, true
	return tools.run(ctx, nil, "sbatch", "--test-only")
}

// control says whether a controller answers.
func (st site) control() deploy.Finding {
	const subject = "slurmctld"
	text := strings.Join(strings.FieldsFunc(st.ping.value, func(r rune) bool { return r == ' ' || r == '\n' || r == '*' }), " ")
	switch {
	case strings.Contains(text, " is UP"):
		return ok(subject, "%s", text)
	case text == "" && st.ping.err != nil:
		text = st.ping.err.Error()
	}
	return outage(subject, "no controller answers: "+text, "try again later, or look at SLURM_CONF")
}

// parseConfig reads scontrol show config.
func parseConfig(text string) map[string]string {
	values := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, found := strings.Cut(line, "="); found {
			values[strings.TrimSpace(name)] = strings.TrimSpace(value)
		}
	}
	return values
}

// configSeconds reads a time of the configuration: "30 sec".
func configSeconds(value string) (time.Duration, bool) {
	number, found := strings.CutSuffix(value, " sec")
	n, err := strconv.Atoi(number)
	return time.Duration(n) * time.Second, found && err == nil && n >= 0
}

// unlimited stands for a number without a bound.
const unlimited = -1

// partition is a partition as scontrol shows it.
type partition struct {
	name, state           string
	byDefault             bool
	maxTime               int // seconds
	maxNodes, total       int
	allowAccounts, denied []string // accounts; none: all, and none
	allowQOS              []string
}

// parsePartitions reads scontrol --oneliner show partition.
func parsePartitions(text string) []partition {
	var all []partition
	for line := range strings.Lines(text) {
		v := map[string]string{}
		for _, word := range strings.Fields(line) {
			if name, value, found := strings.Cut(word, "="); found {
				v[name] = value
			}
		}
		if v["PartitionName"] == "" {
			continue
		}
		p := partition{
			name: v["PartitionName"], state: v["State"], byDefault: v["Default"] == "YES",
			maxTime: unlimited, maxNodes: unlimited, total: unlimited,
			allowAccounts: names(v["AllowAccounts"]), denied: names(v["DenyAccounts"]), allowQOS: names(v["AllowQos"]),
		}
		if n, limited, valid := timeLimit(v["MaxTime"]); valid && limited {
			p.maxTime = n
		}
		if n, err := strconv.Atoi(v["MaxNodes"]); err == nil {
			p.maxNodes = n
		}
		if n, err := strconv.Atoi(v["TotalNodes"]); err == nil {
			p.total = n
		}
		all = append(all, p)
	}
	return all
}

// names reads a list of names; none when it stands for all.
func names(list string) []string {
	if list == "" || list == "ALL" || list == "(null)" {
		return nil
	}
	return strings.Split(list, ",")
}

// timeLimit reads a time limit as SLURM does: M, M:S, H:M:S, D-H, D-H:M, D-H:M:S,
// or a word for no limit. It is in seconds.
func timeLimit(text string) (seconds int, limited, valid bool) {
	switch strings.ToUpper(text) {
	case "UNLIMITED", "INFINITE", "-1", "0":
		return 0, false, true
	}
	m := regexp.MustCompile(`^(?:(\d{1,6})-)?(\d{1,9})(?::(\d{1,9}))?(?::(\d{1,9}))?$`).FindStringSubmatch(text)
	if m == nil {
		return 0, false, false
	}
	n := func(i int) int { v, _ := strconv.Atoi(m[i]); return v } // digits only, or nothing
	switch {
	case m[1] != "":
		return n(1)*86400 + n(2)*3600 + n(3)*60 + n(4), true, true
	case m[3] == "":
		return n(2) * 60, true, true
	case m[4] == "":
		return n(2)*60 + n(3), true, true
	}
	return n(2)*3600 + n(3)*60 + n(4), true, true
}

// nodeGroup is some nodes of a partition that are alike.
type nodeGroup struct {
	partition, state string
	mem              int // MB
	gpus             int
	hosts            []string
	cpus             int // 0 when it is not told
}

// parseGroups reads sinfo. A node of several partitions is in several groups.
func parseGroups(text string) ([]nodeGroup, error) {
	var groups []nodeGroup
	var errs []error
	for line := range strings.Lines(text) {
		f := strings.SplitN(strings.TrimSpace(line), "|", 6)
		if len(f) < 5 || f[4] == "" {
			continue
		}
		hosts, err := hostlist.Expand(f[4])
		if err != nil {
			errs = append(errs, fmt.Errorf("the nodes %q that sinfo lists: %w", f[4], err))
			continue
		}
		mem, _ := strconv.Atoi(strings.TrimSuffix(f[2], "+")) // 0 when it is not told
		cpus := 0
		if len(f) == 6 && !strings.HasSuffix(f[5], "+") { // "64+": and some have more
			cpus, _ = strconv.Atoi(f[5])
		}
		groups = append(groups, nodeGroup{f[0], f[1], mem, countGPUs(f[3]), hosts, cpus})
	}
	return groups, errors.Join(errs...)
}

// countGPUs counts the GPUs in the resources of a node: "gpu:8",
// "gpu:a100:4(S:0-1),nvme:2".
func countGPUs(gres string) int {
	total := 0
	for _, one := range strings.Split(regexp.MustCompile(`\([^)]*\)`).ReplaceAllString(gres, ""), ",") {
		f := strings.Split(one, ":")
		if f[0] != "gpu" {
			continue
		}
		n, err := strconv.Atoi(f[len(f)-1])
		if err != nil {
			n = 1
		}
		total += n
	}
	return total
}

// usable says whether a node in a state takes jobs, now or later by itself.
func usable(state string) bool {
	if strings.HasSuffix(state, "*") {
		return false // it does not respond
	}
	return !slices.Contains([]string{
		"down", "drained", "draining", "drain", "fail", "failing", "error", "unknown", "future", "maint", "inval", "blocked",
	}, firstWord(strings.ToLower(state)))
}
