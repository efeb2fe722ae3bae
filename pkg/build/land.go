package build

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"

	"assay/pkg/document"
	"assay/pkg/exitcode"
)

// blocks is what the schema of the manifest says about its keys.
type blocks struct {
	context, deployment []string            // the keys of the two blocks that additional context lands in
	nested              map[string][]string // the keys of each block of the deployment
	manifest            []string            // the other keys of the manifest
}

// manifestBlocks reads them from the schema of the manifest.
func manifestBlocks(s *document.Schema) blocks {
	top := s.Shape()
	b := blocks{top.Properties["context"].Keys, top.Properties["deployment_config"].Keys, map[string][]string{}, nil}
	for name, block := range top.Properties["deployment_config"].Properties {
		b.nested[name] = block.Keys
	}
	for _, k := range top.Keys {
		if k != "context" && k != "deployment_config" && !slices.Contains(b.deployment, k) {
			b.manifest = append(b.manifest, k)
		}
	}
	return b
}

// deploys says whether a key lands under deployment_config: it is known there
// and not under context. The block of the vllm launcher, which manifests also
// have beside distributed, belongs there too.
func (b blocks) deploys(key string) bool {
	return key == "vllm" || slices.Contains(b.deployment, key) && !slices.Contains(b.context, key)
}

// landing is additional context taken apart into the blocks of a manifest.
type landing struct {
	context, deployment map[string]any
	warnings            []string
	suspects            []string // keys of the top level that have been warned about
}

// landContext puts each key where the manifest keeps it, deployment over that of a
// suite. Unknown keys stay under context.
func landContext(additional, deployment map[string]any) (landing, error) {
	schema, err := manifestSchema()
	if err != nil {
		return landing{}, err
	}
	known := manifestBlocks(schema)
	l := landing{deployment: map[string]any{}, context: map[string]any{
		"docker_env_vars": map[string]any{}, "docker_mounts": map[string]any{}, "docker_build_arg": map[string]any{},
	}}
	for _, k := range sortedKeys(additional) {
		v := additional[k]
		switch {
		case k == "context" || k == "deployment_config": // nested as in a manifest; see below
		case k == "deploy":
			if _, both := additional["target"]; !both {
				l.deployment["target"] = v
			}
		case known.deploys(k):
			l.deployment[k] = v
		case slices.Contains(known.manifest, k):
			l.warnings = append(l.warnings, fmt.Sprintf("additional context: %s is not used: build writes the manifest's own", k))
		default:
			l.suspect(k, known)
			l.context[k] = v
		}
	}
	// What names its block is more explicit, and wins.
	err = errors.Join(
		l.nest("context", additional["context"], l.context),
		l.nest("deployment_config", additional["deployment_config"], l.deployment),
	)
	if err != nil {
		return landing{}, exitcode.With(exitcode.Invalid, err)
	}
	if err := l.misspelt(schema); err != nil {
		return landing{}, err
	}
	sort.Strings(l.warnings)
	if len(deployment) > 0 {
		l.deployment, _ = merge(deployment, l.deployment).(map[string]any)
	}
	return l, l.chooseTarget()
}

// nest merges a block that is given under its own name.
func (l *landing) nest(block string, v any, into map[string]any) error {
	if v == nil {
		return nil
	}
	m, ok := v.(map[string]any)
	if !ok {
		return fmt.Errorf("additional context: %s: an object is expected", block)
	}
	for k, value := range m {
		was, both := into[k]
		if both && !empty(was) && !isObject(was, value) {
			l.warnings = append(l.warnings, fmt.Sprintf("additional context: %s at the top level is ignored: %s has it too", k, block))
		}
		into[k] = merge(was, value)
	}
	return nil
}

// chooseTarget settles deployment_config.target: what is named, else what the
// blocks imply, else local.
func (l *landing) chooseTarget() error {
	switch target := l.deployment["target"].(type) {
	case string:
		if target != "" {
			return nil
		}
	case nil:
	default:
		return exitcode.Errorf(exitcode.Invalid, "additional context: target: a string is expected")
	}
	var implied []string
	for _, t := range []struct{ block, target string }{
		{"k8s", "k8s"},
		{"kubernetes", "k8s"},
		{"slurm", "slurm"},
		{"pbs", "pbs"},
	} {
		if _, given := l.deployment[t.block].(map[string]any); given && !slices.Contains(implied, t.target) {
			implied = append(implied, t.target)
		}
	}
	switch len(implied) {
	case 0:
		l.deployment["target"] = "local"
	case 1:
		l.deployment["target"] = implied[0]
	default:
		return exitcode.Errorf(exitcode.Invalid,
			"additional context has blocks for several targets, %s: say which with \"target\"", strings.Join(implied, " and "))
	}
	return nil
}

// merge lays over over under: objects key by key, everything else as a whole.
// Its arguments are not changed.
func merge(under, over any) any {
	a, okA := under.(map[string]any)
	b, okB := over.(map[string]any)
	if !okA || !okB {
		return over
	}
	out := maps.Clone(a)
	for k, v := range b {
		if was, both := out[k]; both {
			v = merge(was, v)
		}
		out[k] = v
	}
	return out
}

func isObject(values ...any) bool {
	for _, v := range values {
		if _, ok := v.(map[string]any); !ok {
			return false
		}
	}
	return true
}

func empty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case map[string]any:
		return len(v) == 0
	}
	return false
}

func sortedKeys(m map[string]any) []string {
	return slices.Sorted(maps.Keys(m))
}
