// Package environ reads environments as processes have them.
package environ

import "strings"

// Get returns the last value of a variable in a list of KEY=VALUE, or "".
func Get(env []string, name string) string {
	for i := len(env) - 1; i >= 0; i-- {
		if value, ok := strings.CutPrefix(env[i], name+"="); ok {
			return value
		}
	}
	return ""
}
