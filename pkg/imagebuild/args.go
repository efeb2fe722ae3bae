package imagebuild

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"assay/pkg/build"
	"assay/pkg/card"
	"assay/pkg/environ"
	"assay/pkg/plan"
)

var argName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// buildArgs gathers the build arguments: docker_build_arg of the context, and over
// them the variables of env that fromEnv names.
func buildArgs(context map[string]any, fromEnv, env []string) (map[string]string, error) {
	out := map[string]string{}
	var errs []error
	declared, _ := context["docker_build_arg"].(map[string]any)
	for name, v := range declared {
		if card.IsRemark(name, isScalar(v)) {
			continue
		}
		switch v := v.(type) {
		case string:
			out[name] = v
		case json.Number:
			out[name] = v.String()
		case bool:
			out[name] = fmt.Sprint(v)
		default:
			errs = append(errs, fmt.Errorf("docker_build_arg: the value of %s is neither a text nor a number nor true or false", name))
		}
	}
	for _, name := range fromEnv {
		if !slices.ContainsFunc(env, func(kv string) bool { return strings.HasPrefix(kv, name+"=") }) {
			errs = append(errs, fmt.Errorf("--build-arg %s: the environment has no such variable", name))
			continue
		}
		out[name] = environ.Get(env, name)
	}
	for name := range out {
		if !argName.MatchString(name) {
			errs = append(errs, fmt.Errorf("%q is no name of a build argument", name))
		}
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return out, errors.Join(errs...)
}

func isScalar(v any) bool {
	switch v.(type) {
	case map[string]any, []any:
		return false
	}
	return true
}

// steers says whether a variable would change what the engine's command does, so that
// it cannot carry the value of a build argument.
func steers(name string) bool {
	if slices.Contains([]string{"PATH", "HOME", "USER", "TMPDIR", "GODEBUG", "REGISTRY_AUTH_FILE", "STORAGE_DRIVER", "STORAGE_OPTS"}, name) {
		return true
	}
	return slices.ContainsFunc([]string{"LD_", "DOCKER_", "BUILDKIT_", "BUILDX_", "CONTAINER_", "CONTAINERS_", "BUILDAH_", "XDG_", "SSL_CERT_"},
		func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// passArgs returns the options and the additions to the environment that hand build
// arguments to a build. Values travel in the environment, where other users do not
// see them.
func passArgs(args map[string]string) (options, env []string) {
	for _, name := range sortedKeys(args) {
		if steers(name) {
			options = append(options, "--build-arg", name+"="+args[name])
			continue
		}
		options = append(options, "--build-arg", name)
		env = append(env, name+"="+args[name])
	}
	return options, env
}

func sortedKeys(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// private lists the values that no log may show: those that come from the
// environment and those whose names look like a secret's.
func (b *Builder) private(args map[string]string) []string {
	var out []string
	for name, value := range args {
		if plan.LooksSecret(name) || slices.Contains(b.o.EnvArgs, name) {
			out = append(out, value)
		}
	}
	if b.o.Login != nil {
		out = append(out, b.o.Login.Password)
	}
	return out
}

// minPrivate is the length from which a line of a value is looked for, in bytes: a
// shorter one is part of other words.
const minPrivate = 4

// masker writes lines with *** for private values.
type masker struct {
	w       io.Writer
	values  [][]byte // longest first
	pending []byte   // a line that has not ended
}

func newMasker(w io.Writer, values []string) *masker {
	m := &masker{w: w}
	for _, v := range values {
		for line := range strings.Lines(v) {
			if line = strings.TrimSpace(line); len(line) >= minPrivate {
				m.values = append(m.values, []byte(line))
			}
		}
	}
	slices.SortFunc(m.values, func(a, b []byte) int { return len(b) - len(a) })
	return m
}

func (m *masker) Write(p []byte) (int, error) {
	m.pending = append(m.pending, p...)
	end := bytes.LastIndexAny(m.pending, "\r\n") + 1
	if end == 0 {
		return len(p), nil
	}
	_, err := m.w.Write(m.mask(m.pending[:end]))
	m.pending = slices.Clone(m.pending[end:])
	return len(p), err
}

// flush writes what is left.
func (m *masker) flush() error {
	_, err := m.w.Write(m.mask(m.pending))
	m.pending = nil
	return err
}

func (m *masker) mask(b []byte) []byte {
	for _, v := range m.values {
		b = bytes.ReplaceAll(b, v, []byte("***"))
	}
	return b
}

// contextDir is the directory that a card's image is built from: the one that every
// image is built from when the user named it, else dockercontext of the card, else
// docker below the models root, else the directory of the Dockerfile.
func (b *Builder) contextDir(r build.ImageRequest, file dockerfile) (string, error) {
	asked := strings.TrimSpace(r.Card.Card.DockerContext)
	dir := filepath.Join(r.Root, asked)
	switch {
	case b.o.BuildContext != "":
		dir, asked = b.o.BuildContext, b.o.BuildContext
	case filepath.IsAbs(asked):
		dir = asked
	case asked == "":
		dir = filepath.Join(r.Root, "docker")
		if !isDir(dir) {
			dir = filepath.Dir(file.path)
		}
	}
	if !isDir(dir) {
		return "", fmt.Errorf("the build context %s is no directory", asked)
	}
	return filepath.Abs(dir)
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
