package rank

import (
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"assay/pkg/rundir"
)

// variables is an environment under construction.
type variables struct {
	values map[string]string
	order  []string
}

func newVariables(env []string) *variables {
	v := &variables{values: make(map[string]string, len(env)+32)}
	for _, kv := range env {
		if name, value, ok := strings.Cut(kv, "="); ok && name != "" {
			v.set(name, value)
		}
	}
	return v
}

func (v *variables) set(name, value string) {
	if _, had := v.values[name]; !had {
		v.order = append(v.order, name)
	}
	v.values[name] = value
}

func (v *variables) unset(name string) {
	if _, had := v.values[name]; had {
		delete(v.values, name)
		v.order = slices.DeleteFunc(v.order, func(s string) bool { return s == name })
	}
}

func (v *variables) list() []string {
	out := make([]string, len(v.order))
	for i, name := range v.order {
		out[i] = name + "=" + v.values[name]
	}
	return out
}

// rankEnv puts the manifest's variables, and then the rank's own, on top of the
// inherited environment and the env_file.
func (w *wrapper) rankEnv(env []string) []string {
	v := newVariables(env)
	job := w.attempt.Job
	w.setAsked(v)
	names := make([]string, 0, len(job.Env))
	for name := range job.Env {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		v.set(name, job.Env[name])
	}
	w.setGPUs(v)
	w.setDistributed(v)
	w.setMadengine(v)
	w.setAssay(v)
	w.setBurnin(v)
	v.set("PWD", filepath.Join(w.dir, rundir.WorkDir))
	v.unset("OLDPWD")
	return v.list()
}

func (w *wrapper) nodeRank() int { return w.rank / max(w.attempt.Job.RanksPerNode, 1) }

// localRank is the place of the rank among those that it shares devices with: those
// of its node, and none in a pod, which has devices of its own.
func (w *wrapper) localRank() int {
	if w.attempt.Job.K8s != nil {
		return 0
	}
	return w.rank % max(w.attempt.Job.RanksPerNode, 1)
}

func (w *wrapper) masterPort() string {
	if w.options.MasterPort != 0 {
		return strconv.Itoa(w.options.MasterPort)
	}
	return strconv.Itoa(w.attempt.Job.MasterPort)
}

func (w *wrapper) setDistributed(v *variables) {
	job := w.attempt.Job
	v.set("RANK", strconv.Itoa(w.rank))
	v.set("WORLD_SIZE", strconv.Itoa(job.WorldSize))
	v.set("LOCAL_RANK", strconv.Itoa(w.localRank()))
	v.set("NODE_RANK", strconv.Itoa(w.nodeRank()))
	v.set("NNODES", strconv.Itoa(job.NNodes))
	v.set("NPROC_PER_NODE", strconv.Itoa(job.NProcPerNode))
	v.set("MASTER_ADDR", w.options.MasterAddr)
	v.set("MASTER_PORT", w.masterPort())
}

// setMadengine gives the names that madengine's model scripts read.
func (w *wrapper) setMadengine(v *variables) {
	job := w.attempt.Job
	v.set("MAD_MODEL_NAME", job.Model)
	v.set("MAD_MULTI_NODE_RUNNER", w.runner())
	v.set("MAD_OUTPUT_CSV", w.outputCSV())
	v.set("MAD_NODE_RANK", strconv.Itoa(w.nodeRank()))
	v.set("MAD_DEPLOYMENT_TYPE", job.Deployment)
	v.set("MAD_COLLECT_METRICS", strconv.FormatBool(w.rank == 0))
}

// runner expands the three names that a launcher command may refer to.
func (w *wrapper) runner() string {
	return strings.NewReplacer(
		"${NODE_RANK}", strconv.Itoa(w.nodeRank()),
		"${MASTER_ADDR}", w.options.MasterAddr,
		"${MASTER_PORT}", w.masterPort(),
	).Replace(w.attempt.Job.Runner)
}

// outputCSV is where a workload may put its results whatever its directory is.
func (w *wrapper) outputCSV() string {
	name := "results.csv"
	if d := w.attempt.Job.Expect.MultipleResults; d != "" {
		name = filepath.Base(d)
	}
	return filepath.Join(w.dir, rundir.ResultsDir, name)
}

const scopePair, scopeGroup = "pair", "group"

// role says what the rank is to the others of its scope.
func (w *wrapper) role() string {
	switch {
	case w.attempt.Job.Scope == scopePair && w.rank == 0:
		return "server"
	case w.attempt.Job.Scope == scopePair:
		return "client"
	case w.rank == 0:
		return "root"
	}
	return "worker"
}

// peerHost is the host of the other end of a pair, or "" when there is none. The
// server learns who its client is from the list of hosts, or when that is on the
// same node.
func (w *wrapper) peerHost() string {
	switch hosts := w.options.Hosts; {
	case w.attempt.Job.Scope != scopePair:
		return ""
	case w.rank == 0 && w.attempt.Job.NNodes > 1 && len(hosts) > 1:
		return hosts[1]
	case w.rank != 0, w.oneHost():
		return w.options.MasterAddr
	}
	return ""
}

// oneHost reports whether all ranks are on one host.
func (w *wrapper) oneHost() bool {
	ip := net.ParseIP(w.options.MasterAddr)
	return w.attempt.Job.NNodes == 1 || len(w.options.Hosts) == 1 || w.options.MasterAddr == "localhost" || (ip != nil && ip.IsLoopback())
}

func (w *wrapper) setAssay(v *variables) {
	v.set("ASSAY_RUN_ID", w.attempt.RunID)
	v.set("ASSAY_RANK", strconv.Itoa(w.rank))
	v.set("ASSAY_NRANKS", strconv.Itoa(w.attempt.Job.WorldSize))
	v.set("ASSAY_ROLE", w.role())
	v.set("ASSAY_PEER_HOST", w.peerHost())
	v.set("ASSAY_ROOT_HOST", w.options.MasterAddr)
	v.set("ASSAY_ATTEMPT", strconv.Itoa(w.attempt.Number))
	w.setNodes(v)
	v.unset("ASSAY_READY_FILE")
	if w.meets() && w.rank == 0 {
		v.set("ASSAY_READY_FILE", w.file(rundir.ReadyFile))
	}
	v.set(guardVariable, filepath.Join(w.dir, rundir.ResultsDir))
}

// setBurnin gives the names of the burn-in runner contract. A runner takes
// BURNIN_ROLE for the sign of a pair and BURNIN_RANK for the sign of a group, so
// each is present in its own scope only.
func (w *wrapper) setBurnin(v *variables) {
	for _, name := range []string{
		"BURNIN_ROLE", "BURNIN_PEER_HOST", "BURNIN_PEER_NODE", "BURNIN_RANK", "BURNIN_NRANKS", "BURNIN_ROOT_HOST", "BURNIN_ROOT_NODE",
	} {
		v.unset(name)
	}
	v.set("BURNIN_ATTEMPT", strconv.Itoa(w.attempt.Number))
	v.set("BURNIN_RESULTS_DIR", filepath.Join(w.dir, rundir.ResultsDir))
	switch w.attempt.Job.Scope {
	case scopePair:
		v.set("BURNIN_ROLE", w.role())
		v.set("BURNIN_PEER_HOST", w.peerHost())
		v.setKnown("BURNIN_PEER_NODE", w.peerNode())
	case scopeGroup:
		v.set("BURNIN_RANK", strconv.Itoa(w.rank))
		v.set("BURNIN_NRANKS", strconv.Itoa(w.attempt.Job.WorldSize))
		v.set("BURNIN_ROOT_HOST", w.options.MasterAddr)
		v.setKnown("BURNIN_ROOT_NODE", w.nodeOf(0))
	}
}
