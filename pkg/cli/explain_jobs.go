package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"assay/pkg/exitcode"
	"assay/pkg/report"
	"assay/pkg/spelling"
)

// chooseJobs keeps the jobs that somebody means by a name: the one of that id, else those
// of that key, test or card, else the one that the table prints so; all when it is empty.
func chooseJobs(rep report.Run, name string) ([]report.Job, error) {
	if name == "" {
		return rep.Jobs, nil
	}
	printed := report.Names(rep)
	for _, is := range []func(i int, j report.Job) bool{
		func(_ int, j report.Job) bool { return name == j.ID },
		func(_ int, j report.Job) bool { return name == j.Key || name == j.Name || name == j.Test },
		func(i int, _ report.Job) bool { return plainName(name) == plainName(printed[i]) },
	} {
		var kept []report.Job
		for i, j := range rep.Jobs {
			if is(i, j) {
				kept = append(kept, j)
			}
		}
		if len(kept) > 0 {
			return kept, nil
		}
	}
	return nil, exitcode.Errorf(exitcode.Invalid, "the run has no job %q; it has: %s", name, candidates(rep.Jobs, printed, name))
}

// plainName is a name without what the table says of the job behind it, and with a dash
// that every keyboard has.
func plainName(name string) string {
	for _, mark := range []string{" (baseline)", " (optional)", " (baseline, optional)"} {
		name = strings.TrimSuffix(name, mark)
	}
	return strings.ReplaceAll(name, "–", "-")
}

// candidatesShown bounds the ids of jobs that a refusal lists.
const candidatesShown = 8

// candidates are ids of jobs, those that are most like a name first.
func candidates(jobs []report.Job, printed []string, name string) string {
	type candidate struct {
		id   string
		away int
	}
	const limit = 64 // more letters than anybody misspells
	list := make([]candidate, len(jobs))
	for i, j := range jobs {
		list[i] = candidate{j.ID, limit}
		for _, known := range []string{j.ID, j.Key, j.Name, printed[i]} {
			list[i].away = min(list[i].away, spelling.Distance(name, known, limit))
		}
	}
	slices.SortStableFunc(list, func(a, b candidate) int { return cmp.Compare(a.away, b.away) })
	var ids []string
	for _, c := range list[:min(candidatesShown, len(list))] {
		ids = append(ids, c.id)
	}
	text := strings.Join(ids, ", ")
	if more := len(list) - len(ids); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
