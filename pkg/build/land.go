package build

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"

	"assay/pkg/discover"
	"assay/pkg/exitcode"
	"assay/schemas"
)

// blocks are the two blocks of a manifest that additional context lands in.
type blocks struct {
	context, deployment []string // the keys that the schema knows
}

// manifestBlocks reads them from the schema of the manifest.
func manifestBlocks() (blocks, error) {
	text, err := schemas.Read("manifest")
	if err != nil {
		return blocks{}, err
	}
	type block struct {
		Properties map[string]any `json:"properties"`
	}
	var manifest struct {
		Defs struct {
			Context    block `json:"context"`
			Deployment block `json:"deploymentConfig"`
		} `json:"$defs"`
	}
	if err := json.Unmarshal(text, &manifest); err != nil {
		return blocks{}, fmt.Errorf("the manifest's schema: %w", err)
	}
	return blocks{sortedKeys(manifest.Defs.Context.Properties), sortedKeys(manifest.Defs.Deployment.Properties)}, nil
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
}

// landContext puts each key where the manifest keeps it. Unknown keys stay under
// context.
func landContext(additional map[string]any) (landing, error) {
	known, err := manifestBlocks()
	if err != nil {
		return landing{}, err
	}
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
	sort.Strings(l.warnings)
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

// suspect warns about a key that is close to one with a meaning.
func (l *landing) suspect(key string, b blocks) {
	known := slices.Concat(b.context, b.deployment, []string{"deploy", "context", "deployment_config"})
	if strings.HasPrefix(key, "_") || slices.Contains(known, key) {
		return
	}
	if near := discover.Nearest(key, known, 1); len(near) > 0 {
		l.warnings = append(l.warnings, fmt.Sprintf("additional context: %s has no meaning; did you mean %s?", key, near[0]))
	}
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
