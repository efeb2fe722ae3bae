package rank

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"assay/pkg/container"
	"assay/pkg/envfile"
	"assay/pkg/environ"
	"assay/pkg/exitcode"
	"assay/pkg/rundir"
	"assay/pkg/verdict"
)

// environment works out what the container gets beyond the environment of its image:
// what the scheduler granted, the launcher's defaults, the env_file, and the
// manifest's variables. The env_file is evaluated here, on the node.
func (c *outer) environment(ctx context.Context) *refusal {
	w, job := c.bare(), c.a.Job
	base := w.withLauncher(c.o.Env)
	v := newVariables(nil)
	vendor := job.GPUVendor
	if job.GPUsPerNode == 0 {
		vendor = ""
	}
	var granted []string
	granted, c.gpus = container.Granted(c.o.Env, vendor, job.Container.GPUs)
	c.gpus.Groups = deviceGroups(vendor)
	all := newVariables(base)
	for _, name := range slices.Sorted(maps.Keys(job.LauncherEnv)) {
		if value, ok := all.values[name]; ok {
			granted = append(granted, name+"="+value)
		}
	}
	for _, kv := range granted {
		name, value, _ := strings.Cut(kv, "=")
		v.set(name, value)
	}
	own, r := c.envFile(ctx, base, v)
	if r != nil {
		return r
	}
	for _, name := range slices.Sorted(maps.Keys(job.Env)) {
		v.set(name, job.Env[name])
		own[name] = true
	}
	c.shareOut(v, own)
	c.env = v.list()
	return nil
}

// envFile evaluates the env_file, sets what it set, and returns the names.
func (c *outer) envFile(ctx context.Context, base []string, v *variables) (map[string]bool, *refusal) {
	own, f := map[string]bool{}, c.a.Job.EnvFile
	if f == nil {
		return own, nil
	}
	vars, err := envfile.Load(ctx, envfile.Options{
		Dir: c.a.Job.ModelDir, Services: true, Path: f.Path, Format: f.Format, Timeout: time.Duration(f.TimeoutSeconds) * time.Second, Base: base,
	})
	if err != nil {
		return own, refusedFor(verdict.CodeEnvFile, exitcode.Invalid, err)
	}
	c.note("env_file %s: %s", f.Path, vars)
	for _, name := range vars.Names() {
		value, _ := vars.Lookup(name)
		v.set(name, value)
		own[name] = true
	}
	for _, name := range vars.Unset() {
		v.unset(name)
	}
	return own, nil
}

// shareOut divides the GPUs that the scheduler granted, by variables, among the ranks
// of the node, as on a host. What the env_file or the manifest chose stands.
func (c *outer) shareOut(v *variables, own map[string]bool) {
	w := c.bare()
	if devices := c.gpus.Devices; strings.EqualFold(c.gpus.Vendor, vendorNvidia) && len(devices) > 0 && !own[cudaDevices] {
		v.set(cudaDevices, numbers(len(devices))) // the engine gives these alone, and they are numbered from 0
	}
	for _, name := range []string{cudaDevices, hipDevices, rocrDevices} {
		if devices := v.values[name]; devices != "" && !own[name] && c.a.Job.GPUsPerNode != 0 {
			v.set(name, strings.Join(share(strings.Split(devices, ","), w.localRank(), c.a.Job.RanksPerNode), ","))
		}
	}
}

// numbers are the numbers of n devices.
func numbers(n int) string {
	words := make([]string, n)
	for i := range words {
		words[i] = strconv.Itoa(i)
	}
	return strings.Join(words, ",")
}

// deviceGroups are the groups that own the GPUs of AMD on this node, by number: an
// image need not know their names.
func deviceGroups(vendor string) []string {
	if strings.ToUpper(vendor) != vendorAMD {
		return nil
	}
	nodes, _ := filepath.Glob("/dev/dri/*") // the pattern is right
	var groups []string
	for _, path := range append(nodes, "/dev/kfd") {
		info, err := os.Stat(path)
		if err != nil || info.Mode()&fs.ModeDevice == 0 {
			continue
		}
		if st, ok := info.Sys().(*syscall.Stat_t); ok {
			groups = append(groups, strconv.Itoa(int(st.Gid)))
		}
	}
	slices.Sort(groups)
	return slices.Compact(groups)
}

// spec describes the container.
func (c *outer) spec() (container.Spec, error) {
	job := c.a.Job
	s := container.Spec{
		Name: container.Name(c.a.Nonce, job.ID, c.a.Number, c.o.Rank), Image: c.image, Labels: c.labels(),
		GPUs: c.gpus, Options: job.Container.Options, Command: c.command(), Mounts: c.mounts(),
	}
	if uid := os.Getuid(); uid != 0 {
		s.User, s.Rootless = fmt.Sprintf("%d:%d", uid, os.Getgid()), true
		groups, err := os.Getgroups()
		if err != nil {
			return s, err
		}
		for _, g := range groups {
			s.Groups = append(s.Groups, strconv.Itoa(g))
		}
	}
	return s, nil
}

// command is what runs inside: this program, which finds the environment made.
func (c *outer) command() []string {
	args := []string{
		"rank", "--contained", "--job", c.o.JobFile, "--rank", strconv.Itoa(c.o.Rank),
		"--master-addr", c.o.MasterAddr, "--master-port", strconv.Itoa(c.o.MasterPort), "--node", c.node(),
	}
	if len(c.o.Hosts) > 0 {
		args = append(args, "--hosts", strings.Join(c.o.Hosts, ","))
	}
	if c.a.Job.Container.KeepAlive {
		args = append(args, "--linger")
	}
	return args
}

// mounts are what the rank sees of the node, each at its own path: its attempt, what
// is run, the wrapper, and what the manifest mounts, which wins.
func (c *outer) mounts() []container.Mount {
	var out []container.Mount
	add := func(source, target string, readOnly bool) {
		target = path.Clean(target)
		if target == "/" || slices.ContainsFunc(out, func(m container.Mount) bool { return m.Target == target }) {
			return
		}
		out = append(out, container.Mount{Source: source, Target: target, ReadOnly: readOnly})
	}
	add(c.o.Binary, container.Inside, true)
	add(c.a.Dir, c.a.Dir, false)
	if inside, err := filepath.Rel(c.a.Dir, c.o.JobFile); err != nil || !filepath.IsLocal(inside) {
		add(c.o.JobFile, c.o.JobFile, true)
	}
	for _, target := range slices.Sorted(maps.Keys(c.a.Job.Container.Mounts)) {
		add(c.a.Job.Container.Mounts[target], target, false)
	}
	if info, err := os.Stat(c.a.Job.ModelDir); err == nil && info.IsDir() { // else it is one of the image
		add(c.a.Job.ModelDir, c.a.Job.ModelDir, false)
	}
	return out
}

// withMissing adds the launcher's defaults to the environment of a container, where it
// has nothing of the name: the env_file, which wins over them, is in it already.
func (w *wrapper) withMissing(env []string) []string {
	has := newVariables(env)
	defaults := newVariables(w.withLauncher(nil))
	for _, name := range defaults.order {
		if _, ok := has.values[name]; !ok {
			has.set(name, defaults.values[name])
		}
	}
	return has.list()
}

// logSize is how much a stream of the rank wrote, as its file has it.
func (c *outer) logSize(name string) int64 {
	info, err := os.Stat(filepath.Join(rundir.RankDir(c.a.Dir, c.o.Rank), name))
	if err != nil {
		return 0
	}
	return info.Size()
}

// childEnv is the environment of a command that takes the container's variables by
// its own: PATH and HOME, and what begins with a prefix.
func childEnv(env, vars []string) []string {
	out := []string{"PATH=" + environ.Get(env, "PATH"), "HOME=" + environ.Get(env, "HOME")}
	return append(out, vars...)
}
