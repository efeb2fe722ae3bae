package cli

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strconv"

	"assay/pkg/container"
	"assay/pkg/evidence"
	"assay/pkg/plan"
	"assay/pkg/run"
	"assay/pkg/rundir"
)

// tellKept says how to enter the containers that a run leaves running.
func (a *app) tellKept(ctx context.Context, r *rundir.Run, jobs []plan.Job) {
	kept := map[string]string{} // engine by id of the job
	for _, j := range jobs {
		if c := j.Container; c != nil && c.KeepAlive {
			kept[j.ID] = c.Runtime
		}
	}
	if len(kept) == 0 {
		return
	}
	for _, j := range run.Judge(r).Jobs {
		engine, ok := kept[j.ID]
		attempt, err := strconv.Atoi(path.Base(j.Directory))
		if !ok || err != nil {
			continue
		}
		if engine == plan.RuntimeAuto {
			engine = plan.RuntimeDocker
			if cli, err := container.Find(ctx, a.Env, plan.RuntimeAuto); err == nil {
				engine = cli.Name
			}
		}
		for _, k := range j.Ranks {
			name := container.Name(r.Ledger.Nonce, j.ID, attempt, k.Rank)
			if k.State == evidence.RankEnded && (r.Ledger.Target != "local" || a.mayBeThere(ctx, engine, name)) {
				a.notice(fmt.Sprintf("rank %d on %s: %s", k.Rank, k.Node, container.HowToEnter(engine, name)))
			}
		}
	}
}

// mayBeThere reports whether a container of this machine is there; it says no only
// when it is sure.
func (a *app) mayBeThere(ctx context.Context, engine, name string) bool {
	cli, err := container.Find(ctx, a.Env, engine)
	if err != nil {
		return true
	}
	_, err = cli.State(ctx, name)
	return !errors.Is(err, container.ErrGone)
}
