package plan

import "maps"

// Redact returns a copy of a job in which values that should not be shown are
// replaced: those of env_vars whose name looks like a secret's.
func Redact(j Job) Job {
	j.Env = maps.Clone(j.Env)
	for name := range j.Env {
		if LooksSecret(name) {
			j.Env[name] = hidden
		}
	}
	return j
}
