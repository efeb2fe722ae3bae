package slurm

import (
	"context"
	"errors"

	"assay/pkg/batch"
	"assay/pkg/plan"
)

// alloc is the allocation that this process runs inside of.
type alloc struct {
	id    string
	nodes string // as SLURM writes host lists
}

// allocation says whether this process runs inside an allocation, where jobs are
// steps of it.
func allocation(env []string) (alloc, bool) {
	a := alloc{id: lookupEnv(env, "SLURM_JOB_ID"), nodes: lookupEnv(env, "SLURM_JOB_NODELIST")}
	return a, a.id != ""
}

// inPlace reports whether a job runs inside an allocation that was there before.
func inPlace(r batch.Ref) bool { return r.More["allocation"] != "" }

func (s *scheduler) submitInPlace(_ context.Context, _ plan.Attempt, _ alloc) (batch.Ref, error) {
	return batch.Ref{}, errors.New("not built yet")
}

func (s *scheduler) findInPlace(_ plan.Attempt, _ alloc) (batch.Ref, bool, error) {
	return batch.Ref{}, false, errors.New("not built yet")
}

func (s *scheduler) cancelInPlace(_ batch.Ref) error { return errors.New("not built yet") }

func (s *scheduler) inPlaceAnswer(_ batch.Ref) batch.Answer { return batch.Answer{} }
