package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"assay/deploy/local"
	"assay/pkg/exitcode"
	"assay/pkg/hostlist"
	"assay/pkg/manifest"
	"assay/pkg/phrase"
	"assay/pkg/run"
	"assay/pkg/rundir"
)

// nodeFlags say which nodes a run is about, and how its tests are spread over them.
type nodeFlags struct {
	nodes    string
	pairs    string
	hardware string
	maxNodes string
	duration int
	baseline bool
}

func addNodeFlags(c *cobra.Command, f *nodeFlags) {
	fl := c.Flags()
	fl.StringVar(&f.nodes, "nodes", "", "nodes to run on, as SLURM writes host lists (node[1-4],gpu7): tests of scope node run on each,\nof scope pair on links, of scope group on all; on target local they are names for parts of this machine")
	fl.StringVar(&f.pairs, "pairs", "", "links that tests of scope pair are about: all, ring, or a list (a:b,c:d)")
	fl.StringVar(&f.hardware, "hardware", "", "key of the suite's file of thresholds, such as the SKU of the nodes")
	fl.StringVar(&f.maxNodes, "max-concurrent-nodes", "", "nodes that may be under load at the same time, or \"all\" (default: as the suite says, which has 1 when it does not)")
	fl.IntVar(&f.duration, "duration", 0, "seconds that tests with a duration go on for, instead of their own")
	fl.BoolVar(&f.baseline, "baseline", false, "measure without gates: exit code 0 is then no acceptance")
}

// into adds what the flags say to the input of a run.
func (f nodeFlags) into(in *run.Input) error {
	if f.nodes != "" {
		nodes, err := hostlist.Expand(f.nodes)
		if err != nil {
			return exitcode.Errorf(exitcode.Invalid, "--nodes: %w", err)
		}
		in.Nodes = nodes
	}
	switch n, err := strconv.Atoi(f.maxNodes); {
	case f.maxNodes == "":
	case f.maxNodes == "all":
		in.MaxNodes = manifest.AllNodes
	case err != nil || n < 1:
		return exitcode.Errorf(exitcode.Invalid, "--max-concurrent-nodes %q: a number from 1, or all", f.maxNodes)
	default:
		in.MaxNodes = manifest.NodeLimit(n)
	}
	if f.duration < 0 {
		return exitcode.Errorf(exitcode.Invalid, "--duration %d: seconds must not be negative", f.duration)
	}
	if f.pairs != "" && f.nodes == "" {
		return exitcode.Errorf(exitcode.Invalid, "--pairs %s: which nodes the links are between is not said; name them with --nodes", f.pairs)
	}
	in.Pairs, in.Hardware, in.DurationSeconds, in.Baseline = f.pairs, f.hardware, f.duration, f.baseline
	return nil
}

// tellNodes says what the names of nodes are where there are no such nodes.
func (a *app) tellNodes(p *run.Prepared) {
	if len(p.Nodes) > 0 && p.Target == local.Name {
		a.log.Info("target local: " + namesOf(p.Nodes))
	}
}

// namesOf says that nodes are only names.
func namesOf(nodes []string) string {
	verb := "are names"
	if len(nodes) == 1 {
		verb = "is a name"
	}
	return fmt.Sprintf("%s (%s) %s for ranks on this one machine", phrase.Count(len(nodes), "node"), hostlist.Compress(nodes), verb)
}

// resume goes on with a run: what it has not judged is run.
func (a *app) resume(ctx context.Context, f runFlags) error {
	r, err := run.Open(a.runsDir(f.runs), f.resume)
	if err != nil {
		return err
	}
	t, err := a.target(r.Ledger.Target)
	if err != nil {
		return err
	}
	unlock, err := r.Lock()
	if errors.Is(err, rundir.ErrLocked) {
		return exitcode.Errorf(exitcode.Invalid, "run %s goes on in another process; watch it with: assay attach %s", r.Ledger.RunID, a.nameOf(r))
	}
	if err != nil {
		return err
	}
	defer unlock()
	jobs, err := run.Resume(ctx, r, t, f.force)
	if err != nil {
		return err
	}
	a.log.Info(fmt.Sprintf("run %s on %s: %s to run, the others have their verdicts", r.Ledger.RunID, t.Name(), phrase.Count(jobs, "job")))
	return a.drive(ctx, r, t, watchFlags{liveOutput: f.liveOutput, json: f.json})
}
