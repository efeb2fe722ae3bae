package slurm

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"assay/pkg/plan"
)

// fields are the properties of a job, as one version of the API calls them.
type fields map[string]any

// set is a number that is given, as versions from v0.0.40 write it.
type set struct {
	Set      bool  `json:"set"`
	Infinite bool  `json:"infinite"`
	Number   int64 `json:"number"`
}

// submission is the body of a submission: the options that the batch script has as
// directives, which slurmrestd does not read, and the script.
func submission(version int, a plan.Attempt, script string, environment []variable) (fields, error) {
	given, err := directives(a)
	if err != nil {
		return nil, err
	}
	if err := unread(script, given); err != nil {
		return nil, err
	}
	env := map[string]string{"PATH": "/usr/local/bin:/usr/bin:/bin"} // it must have one entry at least
	for _, v := range environment {
		env[v.Name] = v.Value
	}
	older := version < 40
	// sbatch works out the number of tasks itself.
	job := fields{"tasks": a.Job.NNodes * a.Job.RanksPerNode}
	if older {
		job["environment"] = env
	} else {
		list := make([]string, 0, len(env))
		for _, name := range slices.Sorted(maps.Keys(env)) {
			list = append(list, name+"="+env[name])
		}
		job["environment"] = list
		job["script"] = script
	}
	for _, d := range given {
		write := newer
		if older {
			write = v38
		}
		if err := write(job, d); err != nil {
			return nil, fmt.Errorf("slurm: --%s=%s cannot be given through slurmrestd: %w", d.Name, d.Value, err)
		}
	}
	if older {
		return fields{"script": script, "job": job}, nil
	}
	return fields{"job": job}, nil
}

// unread refuses options in a batch script that are not sent as fields: a template
// of the site's own may have some, and slurmrestd does not look for them.
func unread(script string, given []directive) error {
	for line := range strings.Lines(script) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "#") {
			return nil // sbatch reads no further either
		}
		option, isOption := strings.CutPrefix(line, "#SBATCH")
		if !isOption {
			continue
		}
		name, _, _ := strings.Cut(strings.TrimSpace(option), "=")
		if !slices.ContainsFunc(given, func(d directive) bool { return "--"+d.Name == name }) {
			return fmt.Errorf("the batch script has %q, which slurmrestd does not read: give it in the manifest, or use slurm.api cli", line)
		}
	}
	return nil
}

// errNoField says that an option has no place in the API.
var errNoField = errors.New("it has no such field that is known; use slurm.api cli")

// sameNames are the options that are strings under one name in every version.
func sameNames() map[string]string {
	return map[string]string{
		"job-name": "name", "comment": "comment", "chdir": "current_working_directory", "output": "standard_output",
		"partition": "partition", "account": "account", "qos": "qos", "reservation": "reservation", "constraint": "constraints",
		"mail-user": "mail_user",
	}
}

// v38 writes an option for v0.0.38, which reads most values as sbatch does.
func v38(job fields, d directive) error {
	if name := sameNames()[d.Name]; name != "" {
		job[name] = d.Value
		return nil
	}
	switch d.Name {
	case "open-mode":
		job["open_mode"] = d.Value
	case "nodes": // as a list, which its description asks for, it is read as 1
		return count(job, "nodes", d.Value)
	case "ntasks-per-node":
		return count(job, "tasks_per_node", d.Value)
	case "nodelist":
		job["nodelist"] = d.Value
	case "exclude":
		job["exclude_nodes"] = d.Value
	case "gpus-per-node":
		job["gpus_per_node"] = d.Value
	case "time":
		job["time_limit"] = d.Value
	case "mem":
		job["memory_per_node"] = d.Value
	case "exclusive": // "true", which its description has, is refused
		job["exclusive"] = "exclusive"
	case "requeue":
		job["requeue"] = true
	case "no-requeue": // requeue false is read as true
		job["no_requeue"] = true
	case "mail-type":
		job["mail_type"] = d.Value
	default:
		return errNoField
	}
	return nil
}

// newer writes an option for the versions from v0.0.40 on, which are typed.
func newer(job fields, d directive) error {
	if name := sameNames()[d.Name]; name != "" {
		job[name] = d.Value
		return nil
	}
	switch d.Name {
	case "open-mode":
		job["open_mode"] = []string{strings.ToUpper(d.Value)}
	case "nodes":
		job["nodes"] = d.Value
		return count(job, "minimum_nodes", d.Value)
	case "ntasks-per-node":
		return count(job, "tasks_per_node", d.Value)
	case "nodelist":
		job["required_nodes"] = []string{d.Value}
	case "exclude":
		job["excluded_nodes"] = []string{d.Value}
	case "gpus-per-node":
		job["tres_per_node"] = "gres/gpu:" + d.Value
	case "time":
		return writeTime(job, d.Value)
	case "mem":
		return writeMemory(job, d.Value)
	case "exclusive":
		job["shared"] = []string{"none"}
	case "requeue":
		job["requeue"] = true
	case "no-requeue":
		job["requeue"] = false
	case "mail-type":
		return mailTypes(job, d.Value)
	default:
		return errNoField
	}
	return nil
}

func count(job fields, name, value string) error {
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 {
		return fmt.Errorf("%q is no number", value)
	}
	job[name] = n
	return nil
}

// writeTime writes a time limit. SLURM rounds up what is no whole minute.
func writeTime(job fields, value string) error {
	switch strings.ToUpper(value) {
	case "UNLIMITED", "INFINITE", "-1", "0":
		job["time_limit"] = set{Set: true, Infinite: true}
		return nil
	}
	days, clock, dashed := strings.Cut(value, "-")
	if !dashed {
		days, clock = "0", value
	}
	parts := strings.Split(clock, ":")
	var weights []int64 // of the parts, in seconds
	switch {
	case dashed && len(parts) <= 3:
		weights = []int64{3600, 60, 1}
	case len(parts) == 3:
		weights = []int64{3600, 60, 1}
	case len(parts) <= 2:
		weights = []int64{60, 1}
	default:
		return fmt.Errorf("%q is no time limit", value)
	}
	total := int64(0)
	for i, part := range append([]string{days}, parts...) {
		n, err := strconv.ParseUint(part, 10, 24)
		if err != nil {
			return fmt.Errorf("%q is no time limit", value)
		}
		weight := int64(24 * 3600)
		if i > 0 {
			weight = weights[i-1]
		}
		total += int64(n) * weight
	}
	job["time_limit"] = set{Set: true, Number: (total + 59) / 60}
	return nil
}

// writeMemory writes an amount of memory a node.
func writeMemory(job fields, value string) error {
	digits := strings.TrimRight(strings.TrimSuffix(strings.ToUpper(value), "B"), "KMGT")
	n, err := strconv.ParseUint(digits, 10, 40)
	if err != nil {
		return fmt.Errorf("%q is no amount of memory", value)
	}
	mb := int64(n)
	switch unit := strings.TrimSuffix(strings.ToUpper(value)[len(digits):], "B"); unit {
	case "", "M":
	case "K":
		mb = (mb + 1023) / 1024
	case "G":
		mb *= 1 << 10
	case "T":
		mb *= 1 << 20
	default:
		return fmt.Errorf("%q is no amount of memory", value)
	}
	job["memory_per_node"] = set{Set: true, Number: min(mb, math.MaxInt32)}
	return nil
}

// mailTypes writes the occasions for a mail.
func mailTypes(job fields, value string) error {
	var types []string
	for word := range strings.SplitSeq(strings.ToUpper(value), ",") {
		switch word = strings.TrimSpace(word); word {
		case "NONE":
		case "ALL":
			types = append(types, "BEGIN", "END", "FAIL", "REQUEUE", "STAGE_OUT", "INVALID_DEPENDENCY")
		case "BEGIN", "END", "FAIL", "REQUEUE", "STAGE_OUT", "ARRAY_TASKS":
			types = append(types, word)
		case "INVALID_DEPEND":
			types = append(types, "INVALID_DEPENDENCY")
		case "TIME_LIMIT":
			types = append(types, "TIME=100%")
		case "TIME_LIMIT_90", "TIME_LIMIT_80", "TIME_LIMIT_50":
			types = append(types, "TIME="+strings.TrimPrefix(word, "TIME_LIMIT_")+"%")
		default:
			return fmt.Errorf("%q is no occasion for a mail that is known", word)
		}
	}
	job["mail_type"] = types
	return nil
}
