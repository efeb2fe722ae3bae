// Package slurm is the target that runs jobs under SLURM: with its commands or
// through slurmrestd, from a login node or inside an allocation. What it shares
// with other batch schedulers is package batch.
package slurm

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"assay/deploy"
	"assay/pkg/batch"
	"assay/pkg/plan"
	"assay/pkg/rundir"
)

// Name is the name of the target.
const Name = "slurm"

// Options configure the target.
type Options struct {
	Binary    string   // absolute path of the assay that Stage copies
	Env       []string // environment of this process, as KEY=VALUE
	Templates fs.FS    // holds slurm/job.sh.tmpl
}

// Target runs jobs under SLURM.
type Target struct {
	*batch.Target
	s *scheduler
}

// New returns a target.
func New(opt Options) *Target {
	s := &scheduler{opt: opt, tools: tools{env: opt.Env}, submitted: map[string]string{}, swept: map[string]batch.Answer{}}
	return &Target{Target: batch.New(s, time.Now), s: s}
}

// scheduler implements batch.Scheduler.
type scheduler struct {
	opt   Options
	tools tools
	rests restClients

	mu        sync.Mutex
	submitted map[string]string       // by job id: the submit time that the queue gave last
	pause     backoff                 // of the accounting
	swept     map[string]batch.Answer // by job id: those that ended with the allocation they ran in
	grace     time.Duration           // between TERM and KILL of a workload, after Check; 0: the ranks' own
}

// Name implements batch.Scheduler.
func (s *scheduler) Name() string { return Name }

// Sources implements batch.Scheduler.
func (s *scheduler) Sources() (queue, history string) { return "squeue", "sacct" }

// controller is one way of talking to SLURM.
type controller interface {
	submit(ctx context.Context, a plan.Attempt) (id string, err error)
	// find returns the newest job of a name, "" when there is none.
	find(ctx context.Context, name, user string) (id string, err error)
	queue(ctx context.Context, users []string) ([]row, error)
	history(ctx context.Context, ids []string) ([]row, error)
	cancel(ctx context.Context, id, name string) error
}

// row is one line of the queue or the accounting: of a job, or of a step of it.
type row struct {
	job      string // id of the job
	step     string // "" for the job itself; "batch", "extern", "0" …
	name     string
	user     string // numeric id
	state    string // as it is written
	exit     string // "code:signal"
	submit   string // seconds since 1970, by the scheduler's clock
	nodes    string
	reason   string
	restarts int // the queue's count
}

// controllerOf returns the way to talk about a job.
func (s *scheduler) controllerOf(more map[string]string) controller {
	if more["rest_url"] != "" {
		return s.rest(more)
	}
	return &cli{tools: s.tools, env: s.opt.Env}
}

// more is what a handle has to say beyond the id.
func more(j plan.Job) map[string]string {
	if j.Slurm == nil || j.Slurm.API != "rest" {
		return nil
	}
	return map[string]string{"rest_url": j.Slurm.RestURL, "rest_token_file": j.Slurm.RestTokenFile}
}

// namePrefix begins the name of every job of assay.
const namePrefix = "assay-"

// nonceInName is how much of the nonce a job's name carries, in bytes.
const nonceInName = 12

// jobName is the name of the scheduler's job: it carries the nonce, so that a job
// whose submission had no answer can be found, and a recycled id is not taken for
// ours.
func jobName(a plan.Attempt) string {
	nonce := a.Nonce[:min(len(a.Nonce), nonceInName)]
	return fmt.Sprintf("%s%s-%s-%d", namePrefix, nonce, a.Job.ID, a.Number)
}

// maxComment is the length that SLURM takes for sure, in bytes.
const maxComment = 1024

// jobComment says where a job comes from. The directory is last: it may have
// spaces. One that is too long is left out.
func jobComment(a plan.Attempt, host string) string {
	comment := fmt.Sprintf("assay run=%s nonce=%s job=%s attempt=%d host=%s dir=", a.RunID, a.Nonce, a.Job.ID, a.Number, host)
	if len(comment)+len(a.Dir) > maxComment {
		return comment
	}
	return comment + a.Dir
}

// uid is the user as SLURM tells users apart.
func uid() string { return strconv.Itoa(os.Getuid()) }

// Submit implements batch.Scheduler.
func (s *scheduler) Submit(ctx context.Context, a plan.Attempt) (batch.Ref, error) {
	if err := makeOutputDir(a.Job); err != nil {
		return batch.Ref{}, err
	}
	if alloc, inside := allocation(s.opt.Env); inside {
		return s.submitInPlace(a, alloc)
	}
	id, err := s.controllerOf(more(a.Job)).submit(ctx, a)
	if err != nil {
		return batch.Ref{}, err
	}
	return s.ref(a, id), nil
}

// makeOutputDir makes the directory that SLURM writes to: it makes none itself, and
// ends the job at once instead.
func makeOutputDir(j plan.Job) error {
	if j.Slurm == nil || j.Slurm.OutputDir == "" {
		return nil
	}
	if err := os.MkdirAll(j.Slurm.OutputDir, 0o755); err != nil {
		return fmt.Errorf("%w: output_dir cannot be made: %w", deploy.ErrRefused, err)
	}
	return nil
}

func (s *scheduler) ref(a plan.Attempt, id string) batch.Ref {
	return batch.Ref{ID: id, Name: jobName(a), User: uid(), Output: outputPath(a, id), Steps: ownSteps(a.Job), More: more(a.Job)}
}

// findPatience is how long a job is looked for whose submission had no answer: a
// busy controller may still be working on it.
const findPatience = 5 * time.Second

// Find implements batch.Scheduler.
func (s *scheduler) Find(ctx context.Context, a plan.Attempt) (batch.Ref, bool, error) {
	if alloc, inside := allocation(s.opt.Env); inside {
		if ref, found, err := s.findInPlace(ctx, a, alloc); found || err != nil {
			return ref, found, err
		} // it may have been submitted outside of the allocation
	}
	c := s.controllerOf(more(a.Job))
	for end := time.Now().Add(findPatience); ; {
		for _, user := range submitters(a.Dir) {
			id, err := c.find(ctx, jobName(a), user)
			if errors.Is(err, errNoUser) && user != uid() {
				continue // as a file server may call who is not to be known
			}
			if err != nil {
				return batch.Ref{}, false, err
			}
			if id != "" {
				ref := s.ref(a, id)
				ref.User = user
				return ref, true, nil
			}
		}
		if time.Now().After(end) {
			return batch.Ref{}, false, nil
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return batch.Ref{}, false, ctx.Err()
		}
	}
}

// submitters are the users who may have submitted the job of an attempt: this one,
// and who wrote that it was about to be submitted, for a run may be shared.
func submitters(dir string) []string {
	users := []string{uid()}
	info, err := os.Stat(filepath.Join(dir, rundir.LaunchFile))
	if err != nil {
		return users
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		users = append(users, strconv.FormatUint(uint64(st.Uid), 10))
	}
	return slices.Compact(users)
}

// Cancel implements batch.Scheduler.
func (s *scheduler) Cancel(ctx context.Context, r batch.Ref) error {
	if inPlace(r) {
		return s.cancelInPlace(ctx, r)
	}
	return s.controllerOf(r.More).cancel(ctx, r.ID, r.Name)
}

// firstWord is the state without what follows it: "CANCELLED by 1001",
// "RUNNING+", "NODE_FAIL*".
func firstWord(state string) string {
	word, _, _ := strings.Cut(strings.TrimSpace(state), " ")
	return strings.TrimRight(word, "+*~#!%$@^-")
}
