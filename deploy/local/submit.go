package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"assay/deploy"
	"assay/pkg/plan"
	"assay/pkg/procfs"
	"assay/pkg/rundir"
)

// Submit implements deploy.Target: it starts every rank of the job.
func (t *Target) Submit(ctx context.Context, a plan.Attempt) (deploy.Handle, error) {
	if err := ctx.Err(); err != nil {
		return deploy.Handle{}, err
	}
	boot, err := procfs.BootID()
	if err != nil {
		return deploy.Handle{}, err
	}
	host, err := os.Hostname()
	if err != nil {
		return deploy.Handle{}, err
	}
	port, err := t.ports.take(a.Job.MasterPort, a.Nonce)
	if err != nil {
		return deploy.Handle{}, fmt.Errorf("%w: %w", deploy.ErrRefused, err)
	}
	j := job{Host: host, Boot: boot, Port: port, Contained: containedBy(a)}
	for rank := range a.Job.WorldSize {
		p, err := t.start(a, rank, port)
		if err != nil {
			t.stopAll(ctx, j)
			return deploy.Handle{}, fmt.Errorf("%w: rank %d could not be started: %w", deploy.ErrRefused, rank, err)
		}
		j.Procs = append(j.Procs, p)
	}
	return j.handle()
}

func (j job) handle() (deploy.Handle, error) {
	data, err := json.Marshal(j)
	if err != nil {
		return deploy.Handle{}, err
	}
	id := "no process"
	if len(j.Procs) > 0 {
		id = "pid " + strconv.Itoa(j.Procs[0].PID)
	}
	return deploy.Handle{Target: Name, ID: id, Data: data}, nil
}

// start starts the wrapper of one rank, detached from this process and its
// terminal.
func (t *Target) start(a plan.Attempt, rank, port int) (process, error) {
	dir, err := rundir.MakeRankDir(a.Dir, rank)
	if err != nil {
		return process{}, err
	}
	log, err := os.OpenFile(filepath.Join(dir, rundir.WrapperLog), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return process{}, err
	}
	defer log.Close()
	if info, err := os.Stat(dir); err == nil && info.Mode()&0o070 != 0 {
		_ = log.Chmod(0o660) // as open as the directory; a log that is not, is still a log
	}
	// No context: the rank outlives this process.
	cmd := exec.Command(t.opt.Binary, rankArgs(a, rank, port)...) //nolint:noctx // see above
	cmd.Env = t.opt.Env
	cmd.Dir = a.Dir
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return process{}, err
	}
	now, err := procfs.Read(cmd.Process.Pid)
	p := process{Rank: rank, Handle: procfs.Handle{PID: cmd.Process.Pid, Start: now.Start}}
	t.reap.add(p.PID)
	return p, errors.Join(err, cmd.Process.Release())
}

// stopPatience is how long a submission that failed half-way waits for its ranks
// to end: the wrappers' own grace and a little more.
const stopPatience = 15 * time.Second

// stopAll undoes a submission that failed half-way, and waits until nothing of it
// runs.
func (t *Target) stopAll(ctx context.Context, j job) {
	for _, p := range j.Procs {
		_ = p.signal(syscall.SIGTERM)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopPatience)
	defer cancel()
	for running := j.alive(); len(running) > 0 && ctx.Err() == nil; running = j.alive() {
		_ = waitAny(ctx, running)
	}
}
