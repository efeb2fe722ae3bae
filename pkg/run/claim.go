package run

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"assay/pkg/exitcode"
	"assay/pkg/hostlist"
	"assay/pkg/rundir"
	"assay/pkg/verdict"
)

// claimWait is how long other processes may hold the claims, which takes each of them
// far less than a second.
const claimWait = time.Minute

// Claims are the nodes of the runs below a directory. While it is held no other
// process can claim any.
type Claims struct {
	claims *rundir.Claims
}

// HoldClaims takes hold of the claims of a directory of runs. The caller releases it
// once its run is there.
func HoldClaims(ctx context.Context, runs string) (*Claims, error) {
	c, err := rundir.HoldClaims(ctx, runs, claimWait)
	if errors.Is(err, rundir.ErrClaimsHeld) {
		err = fmt.Errorf("%w for %v already; find it, for example with fuser, and let it go on or end it", err, claimWait)
	}
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
// uses are refused, unless force says that the person knows; then the directories of
// these runs are returned.
func (c *Claims) Claim(mine rundir.Claim, force bool) (forced []string, err error) {
	rivals, err := c.rivals(mine)
	if err != nil {
		return nil, exitcode.With(exitcode.Error, fmt.Errorf("the nodes of other runs cannot be looked at: %w", err))
	}
	var uses []string
	for _, r := range rivals {
		forced = append(forced, c.claims.Dir(r.Claim))
		uses = append(uses, r.String())
	}
	if len(rivals) > 0 && !force {
		return nil, exitcode.Errorf(exitcode.Invalid,
			"two runs never share a node, and %s; wait for it (if its process has ended: assay attach %[2]s), end it with: assay cancel %[2]s, or go on all the same with --force",
			strings.Join(uses, ", "), rivals[0].Name)
	}
	if err := c.claims.Add(mine); err != nil {
		return nil, exitcode.With(exitcode.Error, fmt.Errorf("the nodes of the run cannot be claimed: %w", err))
	}
	for _, dir := range forced {
		_ = rundir.NoteShared(dir, mine.RunID) // it may be somebody else's; this run records it too
	}
	return forced, nil
}

// rival is an active run that uses nodes of another one.
type rival struct {
	rundir.Claim
	shared []string
	why    error // why it is not known whether it still does; nil: it does
}

func (r rival) String() string {
	switch {
	case r.Unreadable != nil:
		return fmt.Sprintf("run %s may use any node (its claim cannot be read: %v)", r.Name, r.Unreadable)
	case r.why != nil:
		return fmt.Sprintf("run %s uses %s (whether it has ended cannot be seen: %v)", r.Name, hostlist.Compress(r.shared), r.why)
	}
	return fmt.Sprintf("run %s uses %s", r.Name, hostlist.Compress(r.shared))
}

// rivals are the active runs that use some of the nodes. Claims of those that have ended
// are dropped; no other is looked at.
func (c *Claims) rivals(mine rundir.Claim) ([]rival, error) {
	all, err := c.claims.List()
	if err != nil {
		return nil, err
	}
	var out []rival
	for _, o := range all {
		r := rival{Claim: o, shared: slices.DeleteFunc(slices.Clone(o.Nodes), func(n string) bool { return !slices.Contains(mine.Nodes, n) })}
		if o.Name == mine.Name || o.Unreadable == nil && (o.Target != mine.Target || len(r.shared) == 0) {
			continue
		}
		var ended bool
		if ended, r.why = over(c.claims.Dir(o)); ended {
			_ = c.claims.Drop(o.Name) // one that may not be removed is found to be over each time
			continue
		}
		out = append(out, r)
	}
	return out, nil
}

// over says whether a run has ended, or never was. What cannot be seen has not; why says
// so. The caller holds the claims, and a run is claimed and gets its ledger while they are
// held, so that one without a ledger is none: its process was killed in between. One that
// a process drives is active whatever its verdicts are: it may be about to make attempts
// that replace them.
func over(dir string) (ended bool, why error) {
	driven, err := rundir.Driven(dir)
	if driven || err != nil {
		return false, err
	}
	r, err := rundir.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	rep := Judge(r)
	for _, j := range rep.Jobs {
		if j.Rule == verdict.RuleUnreadable && len(j.Reasons) > 0 {
			return false, errors.New(j.Reasons[0].Message)
		}
	}
	return rep.Pending() == 0, nil
}

// claimOf is the claim of a run, and the directory of runs that it is made in: where the
// run directory really is, by whatever name it was opened.
func claimOf(r *rundir.Run) (runs string, c rundir.Claim, err error) {
	dir, err := filepath.EvalSymlinks(r.Dir)
	if err != nil {
		return "", c, err
	}
	return filepath.Dir(dir), rundir.Claim{
		Name: filepath.Base(dir), RunID: r.Ledger.RunID, Target: r.Ledger.Target, Nodes: r.Ledger.Nodes,
	}, nil
}

// claim notes which nodes a run is going to use, and returns those active runs that it
// was forced to share some with. The caller releases the claims once that shows in the
// run directory. A run without named nodes has none to claim.
func claim(ctx context.Context, r *rundir.Run, force bool) (_ *Claims, forced []string, err error) {
	if len(r.Ledger.Nodes) == 0 {
		return nil, nil, nil
	}
	runs, mine, err := claimOf(r)
	if err != nil {
		return nil, nil, exitcode.With(exitcode.Error, err)
	}
	claims, err := HoldClaims(ctx, runs)
	if err != nil {
		return nil, nil, err
	}
	if forced, err = claims.Claim(mine, force); err != nil {
		claims.Release()
		return nil, nil, err
	}
	return claims, forced, nil
}

// reclaim claims the nodes of a run again. The caller holds the run's lock, and releases
// the claims once the attempts are there that make the run an active one.
func reclaim(ctx context.Context, r *rundir.Run, force bool) (*Claims, []string, error) {
	claims, forced, err := claim(ctx, r, force)
	forced = slices.DeleteFunc(forced, func(dir string) bool { return slices.Contains(r.Ledger.Forced, dir) })
	if err != nil || len(forced) == 0 {
		return claims, forced, err
	}
	r.Ledger.Forced = append(r.Ledger.Forced, forced...)
	if err := r.Commit(); err != nil {
		claims.Release()
		return nil, nil, exitcode.With(exitcode.Error, err)
	}
	return claims, forced, nil
}

// Unclaim gives the nodes of a run that has ended free for others. The caller holds the
// run's lock, so that nobody claims them for it again meanwhile. That needs no hold of the
// claims: whoever has it would find that the run has ended.
func Unclaim(r *rundir.Run) error {
	if len(r.Ledger.Nodes) == 0 {
		return nil
	}
	runs, mine, err := claimOf(r)
	if err != nil {
		return err
	}
	return rundir.DropClaim(runs, mine.Name)
}
