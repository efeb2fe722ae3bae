package slurm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"assay/deploy"
	"assay/pkg/batch"
	"assay/pkg/environ"
	"assay/pkg/hostlist"
	"assay/pkg/plan"
	"assay/pkg/procfs"
)

// alloc is the allocation that this process runs inside of.
type alloc struct {
	id    string
	nodes string // as SLURM writes host lists
}

// allocation says whether this process runs inside an allocation, where jobs are
// steps of it.
func allocation(env []string) (alloc, bool) {
	a := alloc{id: environ.Get(env, "SLURM_JOB_ID"), nodes: environ.Get(env, "SLURM_JOB_NODELIST")}
	return a, a.id != ""
}

// fits returns the nodes of the allocation that a job gets: those that it names, or
// the first ones.
func (al alloc) fits(j plan.Job) ([]string, error) {
	hosts, err := hostlist.Expand(al.nodes)
	if err != nil {
		return nil, fmt.Errorf("the nodes of allocation %s (SLURM_JOB_NODELIST): %w", al.id, err)
	}
	if len(hosts) < j.NNodes {
		return nil, fmt.Errorf("entry %q needs %d nodes and allocation %s has %d (%s)", j.Key, j.NNodes, al.id, len(hosts), al.nodes)
	}
	nodes, err := nodesOf(j, hosts)
	if err != nil {
		return nil, fmt.Errorf("of the nodes that entry %q needs, %w of allocation %s", j.Key, err, al.id)
	}
	return nodes, nil
}

// Queues implements deploy.Queue. Inside an allocation there is no queue: one job
// at a time has its nodes.
func (t *Target) Queues() bool {
	_, inside := allocation(t.s.opt.Env)
	return !inside
}

// The names of what a handle says of a job that runs inside an allocation.
const (
	moreAllocation = "allocation"
	moreDir        = "dir" // attempt directory
	moreHost       = "host"
	moreBoot       = "boot"
	morePID        = "pid"
	moreStart      = "start"
	moreNodes      = "nodes"
)

// inPlace reports whether a job runs inside an allocation that was there before.
func inPlace(r batch.Ref) bool { return r.More[moreAllocation] != "" }

// codeFile holds the exit code of a script that was run in place. It appears by
// rename, so that nobody reads half of it.
const codeFile = "job.exit"

// keepCode runs the script $1 and leaves its exit code in $2. It is not ended by
// the signals that the script is ended by.
const keepCode = `trap : HUP INT TERM
bash "$1"
code=$?
echo "$code" >"$2.new" && mv -f -- "$2.new" "$2"`

// keeperArgs are the arguments of the process that runs the script of an attempt.
func keeperArgs(dir string) []string {
	return []string{"-c", keepCode, "assay", filepath.Join(dir, batch.ScriptFile), filepath.Join(dir, codeFile)}
}

// submitInPlace starts the script of a job in a session of its own, which goes on
// when this process ends, however it ends.
func (s *scheduler) submitInPlace(a plan.Attempt, al alloc) (batch.Ref, error) {
	nodes, err := al.fits(a.Job)
	if err != nil {
		return batch.Ref{}, fmt.Errorf("%w: %w", deploy.ErrRefused, err)
	}
	bash, err := s.tools.find("bash")
	if err != nil {
		return batch.Ref{}, err
	}
	ref, err := s.inPlaceRef(a, al, nodes)
	if err != nil {
		return batch.Ref{}, err
	}
	log, err := openOutput(ref.Output, a.Dir)
	if err != nil {
		return batch.Ref{}, fmt.Errorf("%w: the output of the script: %w", deploy.ErrRefused, err)
	}
	defer log.Close()
	// No context: the script outlives this process.
	cmd := exec.Command(bash, keeperArgs(a.Dir)...) //nolint:noctx // see above
	cmd.Env = s.inPlaceEnv()
	cmd.Dir = a.Dir
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return batch.Ref{}, fmt.Errorf("%w: the script could not be started: %w", deploy.ErrRefused, err)
	}
	p, err := procfs.Read(cmd.Process.Pid)
	go func() { _ = cmd.Wait() }() // it leaves the process table; its code is in a file
	if err != nil {
		return batch.Ref{}, fmt.Errorf("%w: %w", deploy.ErrAmbiguous, err)
	}
	return withProcess(ref, p.Handle()), nil
}

// openOutput opens what the script writes to, as open to others as the attempt
// directory is.
func openOutput(path, dir string) (*os.File, error) {
	log, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(dir); err == nil && info.Mode()&0o070 != 0 {
		_ = log.Chmod(0o660) // a log that is not shared is still a log
	}
	return log, nil
}

// inPlaceRef names a job that runs here and now inside an allocation.
func (s *scheduler) inPlaceRef(a plan.Attempt, al alloc, nodes []string) (batch.Ref, error) {
	host, herr := os.Hostname()
	boot, berr := procfs.BootID()
	return batch.Ref{
		ID:   fmt.Sprintf("%s/%s-%d", al.id, a.Job.ID, a.Number),
		Name: jobName(a), User: uid(), Output: outputPath(a, al.id),
		More: map[string]string{
			moreAllocation: al.id, moreDir: a.Dir, moreHost: host, moreBoot: boot, moreNodes: hostlist.Compress(nodes),
		},
	}, errors.Join(herr, berr)
}

func withProcess(r batch.Ref, h procfs.Handle) batch.Ref {
	r.More[morePID], r.More[moreStart] = strconv.Itoa(h.PID), strconv.FormatUint(h.Start, 10)
	return r
}

// inPlaceEnv is the environment of the script: what finds programs, and the
// variables that name the allocation. Those that are options of srun in disguise,
// such as SLURM_NTASKS, and those of a step are left out: srun gets its options
// from the script.
func (s *scheduler) inPlaceEnv() []string {
	env := s.tools.own()
	for _, kv := range s.opt.Env {
		name, _, _ := strings.Cut(kv, "=")
		if slices.Contains(allocationVariables(), name) {
			env = append(env, kv)
		}
	}
	if environ.Get(s.opt.Env, "SLURM_STEP_ID") != "" {
		// This process is a step itself and may hold what the steps of the job need.
		env = append(env, "SLURM_OVERLAP=1")
	}
	return env
}

// allocationVariables name an allocation and where it is. SLURM_RESTART_COUNT is
// not among them: it counts the starts of the allocation, not of the job.
func allocationVariables() []string {
	return []string{
		"SLURM_CLUSTER_NAME", "SLURM_WORKING_CLUSTER", "SLURM_JOB_ID", "SLURM_JOBID", "SLURM_JOB_NODELIST", "SLURM_NODELIST",
		"SLURM_JOB_NUM_NODES", "SLURM_NNODES", "SLURM_JOB_CPUS_PER_NODE", "SLURM_JOB_PARTITION", "SLURM_JOB_ACCOUNT",
		"SLURM_JOB_QOS", "SLURM_JOB_RESERVATION", "SLURM_JOB_UID", "SLURM_JOB_USER", "SLURM_JOB_GID", "SLURM_JOB_GPUS",
		"SLURM_JOB_START_TIME", "SLURM_JOB_END_TIME", "SLURM_NODE_ALIASES", "SLURM_SUBMIT_DIR", "SLURM_SUBMIT_HOST",
		"SLURM_TOPOLOGY_ADDR", "SLURM_TOPOLOGY_ADDR_PATTERN", "SLURMD_NODENAME",
	}
}

// findInPlace looks for a job whose submission was cut short: its process runs, or
// left the code of the script, or its step is there.
func (s *scheduler) findInPlace(ctx context.Context, a plan.Attempt, al alloc) (batch.Ref, bool, error) {
	nodes, err := al.fits(a.Job)
	if err != nil {
		return batch.Ref{}, false, nil //nolint:nilerr // it could not have been started
	}
	ref, err := s.inPlaceRef(a, al, nodes)
	if err != nil {
		return batch.Ref{}, false, err
	}
	h, err := keeperOf(a.Dir)
	if err != nil {
		return batch.Ref{}, false, err
	}
	if h.PID != 0 {
		return withProcess(ref, h), true, nil
	}
	if _, ended := readCode(a.Dir); ended {
		return ref, true, nil
	}
	steps, err := s.steps(ctx, []string{al.id})
	if _, running := steps[ref.Name]; running {
		delete(ref.More, moreHost) // it was started somewhere else
		return ref, true, nil
	}
	return batch.Ref{}, false, err
}

// keeperOf returns the process that runs the script of an attempt; pid 0 means
// that there is none on this machine.
func keeperOf(dir string) (procfs.Handle, error) {
	all, err := procfs.All()
	if err != nil {
		return procfs.Handle{}, err
	}
	want := keeperArgs(dir)
	for _, p := range all {
		if p.Session != p.PID || p.Ended() {
			continue
		}
		if args, err := procfs.Args(p.PID); err == nil && len(args) > 0 && slices.Equal(args[1:], want) {
			return p.Handle(), nil
		}
	}
	return procfs.Handle{}, nil
}
