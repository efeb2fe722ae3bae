package local

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"assay/deploy"
	"assay/pkg/evidence"
	"assay/pkg/plan"
	"assay/pkg/procfs"
	"assay/pkg/regular"
	"assay/pkg/rundir"
)

// Find implements deploy.Finder. A job whose submission was cut short has ranks
// that run, which the process table shows, or ranks that began, which left
// markers. With neither, none of its ranks was started.
func (t *Target) Find(_ context.Context, a plan.Attempt) (deploy.Handle, bool, error) {
	boot, err := procfs.BootID()
	if err != nil {
		return deploy.Handle{}, false, err
	}
	host, err := os.Hostname()
	if err != nil {
		return deploy.Handle{}, false, err
	}
	j := job{Host: host, Boot: boot, Contained: containedBy(a)}
	procs, err := wrappers(filepath.Join(a.Dir, rundir.JobFile))
	if err != nil {
		return deploy.Handle{}, false, err
	}
	j.Procs = procs
	started := began(a)
	for _, p := range append(j.alive(), procs...) {
		started[p.Rank] = true
	}
	if len(started) == 0 {
		return deploy.Handle{}, false, nil
	}
	h, err := j.handle()
	if n := len(started); err == nil && n < a.Job.WorldSize {
		err = fmt.Errorf("%w: the submission was cut short, and only %d of %d ranks were started; they were told to stop", deploy.ErrIncomplete, n, a.Job.WorldSize)
	}
	return h, true, err
}

// wrappers returns the running `assay rank` processes of a job file, outside of
// containers.
func wrappers(jobFile string) ([]process, error) { return ranksOf(jobFile, wrapperRank) }

// ranksOf returns the running processes that are ranks of a job file.
func ranksOf(jobFile string, rankOf func(pid int, jobFile string) (int, bool)) ([]process, error) {
	all, err := procfs.All()
	if err != nil {
		return nil, err
	}
	var found []process
	for _, p := range all {
		if p.Ended() {
			continue
		}
		if rank, ok := rankOf(p.PID, jobFile); ok {
			found = append(found, process{Rank: rank, Handle: p.Handle()})
		}
	}
	return found, nil
}

// wrapperRank says which rank of the job a process wraps, if any.
func wrapperRank(pid int, jobFile string) (int, bool) {
	args, err := procfs.Args(pid)
	if err != nil || len(args) < 6 || args[1] != "rank" || args[3] != jobFile {
		return 0, false
	}
	rank, err := strconv.Atoi(args[5])
	return rank, err == nil
}

// maxMarker is the largest begin marker that is read, in bytes.
const maxMarker = 1 << 20

// began lists the ranks of this very attempt that left a begin marker.
func began(a plan.Attempt) map[int]bool {
	ranks := map[int]bool{}
	for rank := range a.Job.WorldSize {
		data, err := regular.ReadFile(filepath.Join(rundir.RankDir(a.Dir, rank), rundir.BeginFile), maxMarker)
		if err != nil {
			continue
		}
		var b evidence.Begin
		if json.Unmarshal(data, &b) == nil && b.Identity == a.Identity(rank) {
			ranks[rank] = true
		}
	}
	return ranks
}
