package slurm

import (
	"fmt"
	"slices"
	"strings"

	"assay/deploy"
	"assay/pkg/hostlist"
	"assay/pkg/phrase"
)

// insideFindings are about jobs that run in place, inside an allocation.
func insideFindings(al alloc, ws []wish, state told[string]) []deploy.Finding {
	subject := "allocation " + al.id
	const leave = "unset SLURM_JOB_ID to submit jobs instead"
	word := firstWord(strings.TrimSpace(state.value))
	f, failed := asFailure(state.err)
	switch {
	case failed && says(f, "Invalid job id"), state.err == nil && word != "RUNNING":
		if word == "" {
			word = "gone"
		}
		return []deploy.Finding{outage(subject, fmt.Sprintf("SLURM_JOB_ID names allocation %s, which is %s", al.id, word), leave)}
	case state.err != nil:
		return []deploy.Finding{unknown(subject, state.err)}
	}
	hosts, err := hostlist.Expand(al.nodes)
	if err != nil || len(hosts) == 0 {
		return []deploy.Finding{fault(subject, fmt.Sprintf("SLURM_JOB_NODELIST=%q names no nodes", al.nodes), leave)}
	}
	found := []deploy.Finding{ok(subject, "jobs run in place on its nodes (%s), one after the other", al.nodes)}
	for _, w := range ws {
		lacking := slices.DeleteFunc(slices.Clone(w.named), func(n string) bool { return slices.Contains(hosts, n) })
		switch {
		case len(lacking) > 0:
			found = append(found, fault(subject, fmt.Sprintf("%s: %s not in the allocation (%s)", w.who(), are(lacking), al.nodes), "ask salloc for them with --nodelist, name others, or "+leave))
		case len(w.named) > 0:
			found = append(found, ok(subject, "%s: the allocation has %s", w.who(), hostlist.Compress(w.named)))
		case w.nodes > len(hosts):
			found = append(found, fault(subject, fmt.Sprintf("%s asks for %s, and the allocation has %d (%s)", w.who(), phrase.Count(w.nodes, "node"), len(hosts), al.nodes), "ask salloc for as many, lower slurm.nodes, or "+leave))
		case w.nodes < len(hosts):
			found = append(found, warning(subject, fmt.Sprintf("%s uses %d of the %s of the allocation: %s", w.who(), w.nodes, phrase.Count(len(hosts), "node"), hostlist.Compress(hosts[:w.nodes])), ""))
		}
	}
	return append(found, withoutEffect(al, ws, leave)...)
}

// withoutEffect names the options of sbatch that a manifest gives and that an
// allocation has settled already.
func withoutEffect(al alloc, ws []wish, fix string) []deploy.Finding {
	var fields []string
	for _, w := range ws {
		settled := w.Slurm
		if len(w.named) > 0 { // which steps do heed
			settled.Nodelist = ""
		}
		for _, d := range given(&settled) {
			field := "slurm." + strings.ReplaceAll(strings.TrimPrefix(d.Name, "no-"), "-", "_")
			if !slices.Contains(fields, field) {
				fields = append(fields, field)
			}
		}
	}
	if len(fields) == 0 {
		return nil
	}
	verb := "have"
	if len(fields) == 1 {
		verb = "has"
	}
	return []deploy.Finding{warning("allocation "+al.id, fmt.Sprintf("%s %s no effect inside an allocation", strings.Join(fields, ", "), verb), fix)}
}
