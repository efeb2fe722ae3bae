package deploy

import "assay/pkg/plan"

// OnePerEntry returns the first job of each entry of the manifest: those on other nodes
// differ in nothing that a target could object to, and there may be thousands.
func OnePerEntry(jobs []plan.Job) []plan.Job {
	var out []plan.Job
	seen := map[string]bool{}
	for _, j := range jobs {
		if !seen[j.Key] {
			seen[j.Key] = true
			out = append(out, j)
		}
	}
	return out
}
