package container

import (
	"encoding/csv"
	"slices"
	"strings"
)

// Inside is where the assay binary lies in a container.
const Inside = "/.assay/assay"

// Spec is a container that is to be created. It becomes words of a command; nothing
// in it is a value of the environment.
type Spec struct {
	Name     string
	Image    string // id or name, which the engine has
	Labels   []Label
	EnvFile  string   // file of NAME=value lines; empty: none
	EnvNames []string // names whose values are in the environment of the command
	Mounts   []Mount
	User     string   // "uid:gid"; empty: the image's
	Groups   []string // supplementary groups, as numbers
	GPUs     GPUs
	Rootless bool     // podman without root: the user is itself in the container
	Options  []string // the user's, after ours
	Command  []string // arguments of the entry point
}

// Label is a name and its value.
type Label struct{ Name, Value string }

// Mount is a directory or a file of the host in a container.
type Mount struct {
	Source, Target string // absolute
	ReadOnly       bool
}

// Create gives the arguments that create the container, for docker or podman.
func (s Spec) Create(engine string) []string {
	args := []string{"create", "--name", s.Name}
	for _, l := range s.Labels {
		args = append(args, "--label", l.Name+"="+l.Value)
	}
	// A restart by the engine would run the rank twice.
	args = append(args, "--pull", "never", "--restart", "no", "--entrypoint", Inside)
	if !s.gives("--network", "--net") {
		args = append(args, "--network", "host")
	}
	if !s.gives("--ipc") {
		args = append(args, "--ipc", "host")
	}
	args = append(args, s.user(engine)...)
	if s.EnvFile != "" {
		args = append(args, "--env-file", s.EnvFile)
	}
	for _, name := range s.EnvNames {
		args = append(args, "--env", name)
	}
	for _, m := range s.Mounts {
		args = append(args, "--mount", m.words())
	}
	if !s.gives("--gpus") {
		args = append(args, s.GPUs.args(engine)...)
	}
	args = append(args, s.Options...)
	return append(append(args, s.Image), s.Command...)
}

// user makes the container run as the user who runs assay, so that what ranks write
// is theirs.
func (s Spec) user(engine string) []string {
	if s.User == "" || s.gives("--user", "-u") {
		return nil
	}
	args := []string{"--user", s.User}
	if engine == "podman" && s.Rootless {
		if !s.gives("--userns") {
			args = append(args, "--userns", "keep-id")
		}
		return append(args, "--group-add", "keep-groups")
	}
	for _, g := range s.Groups {
		args = append(args, "--group-add", g)
	}
	return args
}

// gives reports whether the user's options have one of these.
func (s Spec) gives(names ...string) bool {
	return slices.ContainsFunc(s.Options, func(word string) bool {
		name, _, _ := strings.Cut(word, "=")
		return slices.ContainsFunc(names, func(n string) bool {
			return name == n || !strings.HasPrefix(n, "--") && !strings.HasPrefix(word, "--") && strings.HasPrefix(word, n)
		})
	})
}

// words is the mount as --mount takes it: a row of CSV.
func (m Mount) words() string {
	fields := []string{"type=bind", "source=" + m.Source, "target=" + m.Target}
	if m.ReadOnly {
		fields = append(fields, "readonly")
	}
	return row(fields)
}

// row is a row of CSV without its end.
func row(fields []string) string {
	var b strings.Builder
	w := csv.NewWriter(&b)
	_ = w.Write(fields) // a strings.Builder takes everything
	w.Flush()
	return strings.TrimSuffix(b.String(), "\n")
}
