package slurm

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"assay/deploy"
	"assay/pkg/hostlist"
	"assay/pkg/phrase"
	"assay/pkg/spelling"
)

// namedNodes is the subject of findings about the nodes that a run names.
const namedNodes = "nodes"

// nodeFindings say whether the partitions and nodes that some entries ask for
// exist and are enough.
func nodeFindings(w wish, st site) []deploy.Finding {
	var found []deploy.Finding
	if st.partitions.err != nil {
		found = append(found, unknown("partition", st.partitions.err))
	} else {
		found = append(found, partitionFindings(w, st.partitions.value, st.groups.value)...)
	}
	if st.groups.err != nil {
		return append(found, unknown("nodes", st.groups.err))
	}
	found = append(found, listed("nodelist", w.Nodelist, w, st.groups.value)...)
	if len(w.named) > 0 {
		found = append(found, present(namedNodes, "--nodes", w.named, w, st.groups.value)...)
	}
	return append(found, listed("exclude", w.Exclude, w, st.groups.value)...)
}

// partitionFindings are about the partitions of a wish. A job may run in any one
// of several, so that what speaks against one is no more than a warning while
// another is left.
func partitionFindings(w wish, all []partition, groups []nodeGroup) []deploy.Finding {
	wanted := strings.Split(w.Partition, ",")
	if w.Partition == "" {
		i := slices.IndexFunc(all, func(p partition) bool { return p.byDefault })
		if i < 0 {
			return []deploy.Finding{fault("partition", w.who()+" names no partition, and the site has no default", "set slurm.partition to one of: "+nameList(all))}
		}
		wanted = []string{all[i].name}
	}
	var found []deploy.Finding
	fits := false
	for _, name := range wanted {
		subject := "partition " + name
		i := slices.IndexFunc(all, func(p partition) bool { return p.name == name })
		if i < 0 {
			fix := "there are: " + nameList(all)
			if near := spelling.Nearest(name, nameSlice(all)); near != "" {
				fix = fmt.Sprintf("did you mean %q?", near)
			}
			return []deploy.Finding{fault(subject, fmt.Sprintf("%s: there is no partition %q", w.who(), name), fix)}
		}
		against := append(all[i].against(w, subject), enough(w, all[i].name, subject, groups)...)
		fits = fits || !hasProblem(against)
		if len(against) == 0 {
			against = append(against, ok(subject, "is %s with %s, and takes %s of %s", all[i].state, phrase.Count(all[i].total, "node"), phrase.Count(w.nodes, "node"), w.who()))
		}
		found = append(found, against...)
	}
	for i := range found {
		if fits && found[i].State == deploy.FindingProblem {
			found[i].State = deploy.FindingWarning
		}
	}
	return found
}

func nameSlice(all []partition) []string {
	names := make([]string, len(all))
	for i, p := range all {
		names[i] = p.name
	}
	return names
}

func nameList(all []partition) string { return strings.Join(nameSlice(all), ", ") }

// against says what of a partition's settings speaks against a wish.
func (p partition) against(w wish, subject string) []deploy.Finding {
	var found []deploy.Finding
	if p.state != "UP" {
		found = append(found, outage(subject, fmt.Sprintf("partition %s is %s: it starts no jobs", p.name, p.state), "choose another one, or wait until it is opened"))
	}
	// A QOS may lift the limits of a partition.
	limit := func(message, fix string) {
		f := fault(subject, w.who()+" "+message, fix)
		if w.QOS != "" {
			f.State = deploy.FindingWarning
			f.Message += fmt.Sprintf(", unless QOS %s lifts that", w.QOS)
		}
		found = append(found, f)
	}
	if asked, limited, valid := timeLimit(w.Time); w.Time != "" && valid && p.maxTime != unlimited && (!limited || asked > p.maxTime) {
		limit(fmt.Sprintf("asks for a time of %s, and partition %s allows %s", w.Time, p.name, phrase.Seconds(float64(p.maxTime))), "lower slurm.time, or choose another partition")
	}
	if p.maxNodes != unlimited && w.nodes > p.maxNodes {
		limit(fmt.Sprintf("asks for %s, and partition %s allows %d a job", phrase.Count(w.nodes, "node"), p.name, p.maxNodes), "lower slurm.nodes, or choose another partition")
	}
	if p.total != unlimited && w.nodes > p.total {
		found = append(found, fault(subject, fmt.Sprintf("%s asks for %s, and partition %s has %d", w.who(), phrase.Count(w.nodes, "node"), p.name, p.total), "lower slurm.nodes, or choose another partition"))
	}
	if w.Account != "" && (len(p.allowAccounts) > 0 && !slices.Contains(p.allowAccounts, w.Account) || slices.Contains(p.denied, w.Account)) {
		found = append(found, fault(subject, fmt.Sprintf("%s: partition %s does not let account %s in", w.who(), p.name, w.Account), "choose another account or partition"))
	}
	if w.QOS != "" && len(p.allowQOS) > 0 && !slices.Contains(p.allowQOS, w.QOS) {
		found = append(found, fault(subject, fmt.Sprintf("%s: partition %s does not allow QOS %s", w.who(), p.name, w.QOS), "choose one of: "+strings.Join(p.allowQOS, ", ")))
	}
	return found
}

// enough says whether a partition has the nodes that a wish can use: with as much
// memory and as many GPUs as it asks for, and in a state to take jobs.
func enough(w wish, partition, subject string, groups []nodeGroup) []deploy.Finding {
	excluded := hostSet(w.Exclude)
	mem := askedMemory(w.Mem)
	total, left, able, ready := 0, 0, 0, 0
	states := map[string]int{}
	for _, g := range groups {
		if g.partition != partition {
			continue
		}
		n := 0
		for _, h := range g.hosts {
			if !excluded[h] {
				n++
			}
		}
		total, left = total+len(g.hosts), left+n
		if g.mem > 0 && mem > g.mem || w.GPUsPerNode > g.gpus || g.cpus > 0 && w.ranks > g.cpus {
			continue
		}
		able += n
		if usable(g.state) {
			ready += n
		} else {
			states[g.state] += n
		}
	}
	switch {
	case total < w.nodes: // which its own settings say
		return nil
	case left < w.nodes:
		message := fmt.Sprintf("%s asks for %s, and slurm.exclude leaves %d of partition %s", w.who(), phrase.Count(w.nodes, "node"), left, partition)
		return []deploy.Finding{fault(subject, message, "exclude fewer, or lower slurm.nodes")}
	case able < w.nodes:
		message := fmt.Sprintf("%s asks for %s with %s, and %d of the %d of partition %s have that", w.who(), phrase.Count(w.nodes, "node"), w.demand(), able, left, partition)
		fix := "ask for less"
		if w.GPUsPerNode > 0 {
			fix = "ask for less, or set slurm.skip_gpus_directive where GPUs are not asked for"
		}
		return []deploy.Finding{fault(subject, message, fix)}
	case ready < w.nodes:
		return []deploy.Finding{warning(subject, fmt.Sprintf("%s asks for %s, and %d of partition %s can take jobs now (%s): it would wait", w.who(), phrase.Count(w.nodes, "node"), ready, partition, counts(states)), "wait, ask for fewer, or choose another partition")}
	case len(states) > 0:
		f := ok(subject, "%d of %s can take jobs (%s)", ready, phrase.Count(able, "node"), counts(states))
		return []deploy.Finding{f}
	}
	return nil
}

// demand is what a wish asks of each node, in words.
func (w wish) demand() string {
	var parts []string
	if w.Mem != "" {
		parts = append(parts, w.Mem+" of memory")
	}
	if w.GPUsPerNode > 0 {
		parts = append(parts, phrase.Count(w.GPUsPerNode, "GPU"))
	}
	if w.ranks > 1 {
		parts = append(parts, "CPUs for "+phrase.Count(w.ranks, "rank"))
	}
	return strings.Join(parts, " and ")
}

// counts writes numbers of nodes by state.
func counts(states map[string]int) string {
	var parts []string
	for state, n := range states {
		parts = append(parts, fmt.Sprintf("%d %s", n, state))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

// askedMemory reads an amount of memory as sbatch does: 0 when none, or all of the
// node's, is asked for, or it is no amount. It is in MB.
func askedMemory(mem string) int {
	if mem == "" {
		return 0
	}
	scale, number := 1.0, mem
	switch mem[len(mem)-1] {
	case 'K', 'k':
		scale = 1.0 / 1024
	case 'G', 'g':
		scale = 1024
	case 'T', 't':
		scale = 1024 * 1024
	case 'M', 'm':
	default:
		number += "M"
	}
	n, err := strconv.Atoi(number[:len(number)-1])
	if err != nil {
		return 0
	}
	return int(float64(n) * scale)
}

// hostSet is a list of hosts as a set; one that cannot be read is empty.
func hostSet(list string) map[string]bool {
	hosts, _ := hostlist.Expand(list) // listed says what is wrong with it
	set := make(map[string]bool, len(hosts))
	for _, h := range hosts {
		set[h] = true
	}
	return set
}

// listed says whether the nodes that are named exist, and take jobs where that
// matters.
func listed(field, list string, w wish, groups []nodeGroup) []deploy.Finding {
	if list == "" || strings.Contains(list, "/") { // the latter is a file that sbatch reads
		return nil
	}
	hosts, err := hostlist.Expand(list)
	if err != nil {
		return []deploy.Finding{fault(field, fmt.Sprintf("%s: slurm.%s: %v", w.who(), field, err), "write it as scontrol show hostlist does")}
	}
	found := present(field, "slurm."+field, hosts, w, groups)
	if len(found) == 0 {
		found = append(found, ok(field, "%s exist", list))
	}
	return found
}

// present says which of some hosts, which what names, do not exist or take no jobs now.
func present(field, what string, hosts []string, w wish, groups []nodeGroup) []deploy.Finding {
	state, in := map[string]string{}, map[string]bool{}
	wanted := strings.Split(w.Partition, ",")
	for _, g := range groups {
		for _, h := range g.hosts {
			state[h] = g.state
			in[h] = in[h] || w.Partition == "" || slices.Contains(wanted, g.partition)
		}
	}
	var absent, elsewhere, away []string
	for _, h := range hosts {
		switch s, known := state[h]; {
		case !known:
			absent = append(absent, h)
		case !in[h] && field != "exclude":
			elsewhere = append(elsewhere, h)
		case !usable(s) && field != "exclude":
			away = append(away, fmt.Sprintf("%s (%s)", h, strings.TrimSuffix(s, "*")))
		}
	}
	var found []deploy.Finding
	if len(absent) > 0 {
		found = append(found, fault(field, fmt.Sprintf("%s: %s names %s, which no partition has", w.who(), what, hostlist.Compress(absent)), "sinfo -N lists the nodes"))
	}
	if len(elsewhere) > 0 {
		found = append(found, fault(field, fmt.Sprintf("%s: %s names %s, which partition %s does not have", w.who(), what, hostlist.Compress(elsewhere), w.Partition), "sinfo -N lists the nodes"))
	}
	if len(away) > 0 {
		says := fmt.Sprintf("%s: %s names %s, which take no jobs now", w.who(), what, strings.Join(away, ", "))
		if field == namedNodes && w.Reservation == "" { // a reservation for maintenance lets in who has it
			found = append(found, fault(field, says, "leave them out, or bring them back: sinfo -R says why they are away"))
		} else {
			found = append(found, warning(field, says+": it would wait", "choose others"))
		}
	}
	return found
}

// advice is what sbatch --test-only says.
func advice(w wish, said told[string]) []deploy.Finding {
	const subject = "sbatch --test-only"
	const both = "; that is a guess, which can be wrong both ways"
	switch f, isFailure := asFailure(said.err); {
	case isFailure && !f.late && f.code > 0 && f.said != "":
		return []deploy.Finding{warning(subject, fmt.Sprintf("of the script of %s it says: %s%s", w.who(), f.said, both), "")}
	case said.err != nil:
		return []deploy.Finding{unknown(subject, said.err)}
	}
	words := phrase.Line(strings.TrimPrefix(strings.TrimSpace(said.value), "sbatch: "))
	return []deploy.Finding{ok(subject, "of the script of %s it says: %s%s", w.who(), words, both)}
}
