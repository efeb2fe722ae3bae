// Package local is the target that runs ranks as processes on this machine. Each
// rank is an `assay rank` process in a session of its own: it goes on when the
// submitting process ends, however it ends.
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
	"strings"
	"sync"
	"syscall"
	"time"

	"mvdan.cc/sh/v3/syntax"

	"assay/deploy"
	"assay/pkg/evidence"
	"assay/pkg/plan"
	"assay/pkg/rundir"
)

// Name is the name of the target.
const Name = "local"

// Options configure the target.
type Options struct {
	Binary string   // absolute path of the assay binary that wraps the ranks
	Env    []string // environment the ranks inherit, as KEY=VALUE
}

// Target runs jobs on this machine.
type Target struct {
	opt   Options
	ports portAllocator
	reap  sync.WaitGroup
}

// New returns a target.
func New(opt Options) *Target { return &Target{opt: opt} }

// Name implements deploy.Target.
func (t *Target) Name() string { return Name }

// job is the opaque part of a handle.
type job struct {
	Host  string    `json:"host"`
	Boot  string    `json:"boot"` // boot id of the kernel that ran the processes
	Port  int       `json:"port"`
	Procs []process `json:"procs"`
}

// Render implements deploy.Target: the job file, and a script that does by hand
// what Submit does.
func (t *Target) Render(a plan.Attempt) ([]deploy.File, error) {
	data, err := json.MarshalIndent(a, "", "  ")
	if err != nil {
		return nil, err
	}
	script, err := t.script(a)
	if err != nil {
		return nil, err
	}
	return []deploy.File{
		{Name: rundir.JobFile, Mode: 0o600, Data: append(data, '\n')},
		{Name: "job.sh", Mode: 0o700, Data: []byte(script)},
	}, nil
}

// script shows the commands of all ranks. The port stands for the one that
// Submit finds free when the manifest names none.
func (t *Target) script(a plan.Attempt) (string, error) {
	port := a.Job.MasterPort
	if port == 0 {
		port = firstPort
	}
	var b strings.Builder
	b.WriteString("#!/usr/bin/env bash\n# The ranks of this job, as they are started on this machine.\n")
	for rank := range a.Job.WorldSize {
		words := append([]string{t.opt.Binary}, rankArgs(a, rank, port)...)
		for i, w := range words {
			q, err := syntax.Quote(w, syntax.LangBash)
			if err != nil {
				return "", fmt.Errorf("rank %d: argument %q cannot be written in a shell script: %w", rank, w, err)
			}
			words[i] = q
		}
		b.WriteString(strings.Join(words, " ") + " &\n")
	}
	b.WriteString("wait\n")
	return b.String(), nil
}

func rankArgs(a plan.Attempt, rank, port int) []string {
	return []string{
		"rank", "--job", filepath.Join(a.Dir, rundir.JobFile), "--rank", strconv.Itoa(rank),
		"--master-addr", "127.0.0.1", "--master-port", strconv.Itoa(port),
	}
}

// Submit implements deploy.Target: it starts every rank of the job.
func (t *Target) Submit(ctx context.Context, a plan.Attempt) (deploy.Handle, error) {
	if err := ctx.Err(); err != nil {
		return deploy.Handle{}, err
	}
	boot, err := bootID()
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
	j := job{Host: host, Boot: boot, Port: port}
	for rank := range a.Job.WorldSize {
		p, err := t.start(a, rank, port)
		if err != nil {
			t.stopAll(j)
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
	p := process{Rank: rank, PID: cmd.Process.Pid}
	p.Start, err = startTime(p.PID)
	// The exit status is of no interest: the end marker has it. Reaping keeps the
	// process table clean and lets waiters see the end.
	t.reap.Go(func() { _ = cmd.Wait() })
	return p, err
}

// stopAll undoes a submission that failed half-way.
func (t *Target) stopAll(j job) {
	for _, p := range j.Procs {
		_ = p.signal(syscall.SIGTERM)
	}
}

// Observe implements deploy.Target.
func (t *Target) Observe(_ context.Context, handles []deploy.Handle) ([]evidence.Observation, error) {
	now := time.Now().UTC()
	out := make([]evidence.Observation, len(handles))
	for i, h := range handles {
		j, err := decode(h)
		if err != nil {
			return nil, err
		}
		out[i] = evidence.Observation{Source: Name, At: now}
		rebooted, err := j.rebooted()
		if err != nil {
			return nil, err
		}
		switch running := j.alive(); {
		case rebooted:
			out[i].Phase, out[i].Word, out[i].Bad = evidence.PhaseEnded, "REBOOTED", true
			out[i].Detail = "the machine was restarted while the job ran"
		case len(running) > 0:
			out[i].Phase, out[i].Word = evidence.PhaseRunning, "RUNNING"
		default:
			out[i].Phase, out[i].Word = evidence.PhaseEnded, "ENDED"
		}
	}
	return out, nil
}

func decode(h deploy.Handle) (job, error) {
	var j job
	if h.Target != Name {
		return j, fmt.Errorf("handle %q belongs to target %q, not to %s", h.ID, h.Target, Name)
	}
	if err := json.Unmarshal(h.Data, &j); err != nil {
		return j, fmt.Errorf("handle %q is unreadable: %w", h.ID, err)
	}
	return j, nil
}

// rebooted says whether the processes of the job died with an earlier boot. On
// another machine nothing can be said of them.
func (j job) rebooted() (bool, error) {
	host, err := os.Hostname()
	if err != nil {
		return false, err
	}
	if host != j.Host {
		return false, fmt.Errorf("%w: the job runs on %s, this is %s: ask there", deploy.ErrUnavailable, j.Host, host)
	}
	boot, err := bootID()
	return boot != j.Boot, err
}

// alive returns the wrappers that still run.
func (j job) alive() []process {
	var running []process
	for _, p := range j.Procs {
		if p.alive() {
			running = append(running, p)
		}
	}
	return running
}

// Wait implements deploy.Waiter: it returns when a wrapper of one of the jobs
// has ended.
func (t *Target) Wait(ctx context.Context, handles []deploy.Handle) error {
	var running []process
	for _, h := range handles {
		j, err := decode(h)
		if err != nil {
			return err
		}
		now := j.alive()
		if len(now) == 0 {
			return nil
		}
		running = append(running, now...)
	}
	return waitAny(ctx, running)
}

// Cancel implements deploy.Target: it asks every wrapper that runs to stop. The
// wrapper stops its workload, and kills what does not stop.
func (t *Target) Cancel(_ context.Context, h deploy.Handle) error {
	j, err := decode(h)
	if err != nil {
		return err
	}
	if rebooted, err := j.rebooted(); err != nil || rebooted {
		return err
	}
	var errs []error
	for _, p := range j.Procs {
		errs = append(errs, p.signal(syscall.SIGTERM))
	}
	return errors.Join(errs...)
}
