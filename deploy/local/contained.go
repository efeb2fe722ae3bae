package local

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strconv"

	"assay/pkg/evidence"
	"assay/pkg/plan"
	"assay/pkg/procfs"
	"assay/pkg/regular"
	"assay/pkg/rundir"
)

// containedBy is the job file of a job whose ranks run in containers, else "".
func containedBy(a plan.Attempt) string {
	if !a.Job.Container.Wrapped() {
		return ""
	}
	return filepath.Join(a.Dir, rundir.JobFile)
}

// contained returns the running wrappers of a job file that are inside of containers:
// the process table of the host shows them as well. One that only keeps its container
// has ended.
func contained(jobFile string) ([]process, error) {
	found, err := ranksOf(jobFile, containedRank)
	return slices.DeleteFunc(found, func(p process) bool {
		args, err := procfs.Args(p.PID)
		return err != nil || slices.Contains(args, "--linger") && ended(filepath.Dir(jobFile), p.Rank)
	}), err
}

// containedRank says which rank of the job a process inside of a container wraps, if
// any.
func containedRank(pid int, jobFile string) (int, bool) {
	args, err := procfs.Args(pid)
	if err != nil || len(args) < 7 || args[1] != "rank" || args[2] != "--contained" || args[4] != jobFile {
		return 0, false
	}
	rank, err := strconv.Atoi(args[6])
	return rank, err == nil
}

// ended reports whether a rank left an end marker.
func ended(dir string, rank int) bool {
	data, err := regular.ReadFile(filepath.Join(rundir.RankDir(dir, rank), rundir.EndFile), maxMarker)
	var end evidence.End
	return err == nil && json.Unmarshal(data, &end) == nil && end.Rank == rank && end.Outcome != evidence.OutcomeUnknown
}
