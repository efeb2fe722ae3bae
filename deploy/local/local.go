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
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"mvdan.cc/sh/v3/syntax"

	"assay/deploy"
	"assay/pkg/evidence"
	"assay/pkg/exitcode"
	"assay/pkg/plan"
	"assay/pkg/procfs"
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
	reap  reaper
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
	// Contained is the job file of a job whose ranks run in containers. A container
	// goes on when the process that watches it is killed.
	Contained string `json:"contained,omitempty"`
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
	args := []string{
		"rank", "--job", filepath.Join(a.Dir, rundir.JobFile), "--rank", strconv.Itoa(rank),
		"--master-addr", "127.0.0.1", "--master-port", strconv.Itoa(port),
	}
	// The nodes that a run names are names alone here: all of them are this machine.
	if node := rank / max(a.Job.RanksPerNode, 1); node < len(a.Job.Nodes) {
		args = append(args, "--node", a.Job.Nodes[node])
	}
	return args
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
			out[i].Ranks = t.withoutEvidence(j)
		}
	}
	return out, nil
}

// withoutEvidence names the ranks whose wrapper said, by its exit code, that it
// could not keep its evidence. Only the process that started them knows.
func (t *Target) withoutEvidence(j job) map[int]string {
	var ranks map[int]string
	for _, p := range j.Procs {
		if code, ok := t.reap.exited(p.PID); ok && code == int(exitcode.Error) {
			if ranks == nil {
				ranks = map[int]string{}
			}
			ranks[p.Rank] = fmt.Sprintf("its wrapper ended with exit code %d: it could not keep its evidence", code)
		}
	}
	return ranks
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
	boot, err := procfs.BootID()
	return boot != j.Boot, err
}

// alive returns the wrappers that still run. When none does, those inside of
// containers are looked for.
func (j job) alive() []process {
	var running []process
	for _, p := range j.Procs {
		if p.Alive() {
			running = append(running, p)
		}
	}
	if len(running) == 0 && j.Contained != "" {
		running, _ = contained(j.Contained) // without the process table nothing can be seen to run
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
	told := map[int]bool{}
	for _, p := range j.Procs {
		told[p.Rank] = p.Alive()
		errs = append(errs, p.signal(syscall.SIGTERM))
	}
	if j.Contained == "" {
		return errors.Join(errs...)
	}
	left, err := contained(j.Contained)
	errs = append(errs, err)
	for _, p := range left {
		if !told[p.Rank] { // else whoever watches the container passes it on
			errs = append(errs, p.signal(syscall.SIGTERM))
		}
	}
	return errors.Join(errs...)
}
