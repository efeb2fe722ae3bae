package run

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"assay/pkg/exitcode"
	"assay/pkg/hostlist"
	"assay/pkg/rundir"
)

// Claims are the nodes of the runs below a directory. While it is held no other
// process can claim any.
type Claims struct {
	claims *rundir.Claims
}

// HoldClaims takes hold of the claims of a directory of runs. The caller releases it
// once its run is there.
func HoldClaims(runs string) (*Claims, error) {
	c, err := rundir.HoldClaims(runs)
	if err != nil {
		return nil, exitcode.With(exitcode.Error, fmt.Errorf("the nodes of other runs cannot be looked at: %w", err))
	}
	return &Claims{c}, nil
}

// Release lets other processes claim nodes again.
func (c *Claims) Release() {
	if c != nil {
		c.claims.Release()
	}
}

// Claim notes that a run is going to use nodes of a target. Those that an active run
// uses are refused, unless force says that the person knows; then these runs are
// returned.
func (c *Claims) Claim(target, runID string, nodes []string, force bool) (forced []string, err error) {
	others, err := c.active(target, runID)
	if err != nil {
		return nil, err
	}
	var overlaps []string
	var first string
	for _, o := range others {
		shared := slices.DeleteFunc(slices.Clone(o.Nodes), func(n string) bool { return !slices.Contains(nodes, n) })
		if len(shared) == 0 {
			continue
		}
		first = cmp.Or(first, o.RunID)
		forced = append(forced, o.Dir)
		overlaps = append(overlaps, fmt.Sprintf("run %s uses %s", o.RunID, hostlist.Compress(shared)))
	}
	if len(overlaps) > 0 && !force {
		return nil, exitcode.Errorf(exitcode.Invalid,
			"two runs never share a node, and %s; wait for it, end it with: assay cancel %s, or go on all the same with --force",
			strings.Join(overlaps, ", "), first)
	}
	return forced, c.claims.Add(rundir.Claim{RunID: runID, Target: target, Nodes: nodes})
}

// active are the claims of other runs that have not ended. Those of runs that have
// are dropped.
func (c *Claims) active(target, runID string) ([]rundir.Claim, error) {
	var out []rundir.Claim
	all, err := c.claims.List()
	if err != nil {
		return nil, exitcode.With(exitcode.Error, fmt.Errorf("the nodes of other runs cannot be looked at: %w", err))
	}
	for _, o := range all {
		switch over, err := over(o.Dir); {
		case o.RunID == runID:
		case err != nil:
			return nil, exitcode.With(exitcode.Error, fmt.Errorf("whether run %s still uses its nodes cannot be seen: %w; if it does not, remove %s", o.RunID, err, c.claims.File(o.RunID)))
		case over:
			if err := c.claims.Drop(o.RunID); err != nil {
				return nil, err
			}
		case o.Target == target:
			out = append(out, o)
		}
	}
	return out, nil
}

// over says whether a run has ended, or never was: a process that was killed while it
// made its run directory left no ledger.
func over(dir string) (bool, error) {
	r, err := rundir.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	return Judge(r).Pending() == 0, nil
}

// Unclaim gives the nodes of a run that has ended free for others.
func Unclaim(r *rundir.Run) error {
	if len(r.Ledger.Nodes) == 0 {
		return nil
	}
	c, err := rundir.HoldClaims(runsOf(r))
	if err != nil {
		return err
	}
	defer c.Release()
	if err := c.Drop(r.Ledger.RunID); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
