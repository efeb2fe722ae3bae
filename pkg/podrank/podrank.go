// Package podrank is a rank in a Kubernetes pod: it finds out which rank it is and
// where its attempt directory is, runs it, and hands over what it left. Where no
// filesystem is shared with whoever submitted the job, that is the termination
// message of the container and records in the log of the pod.
//
// What is handed over comes in the order of its weight, for the kubelet may end the
// pod at any moment: the end marker on disk, the termination message, the copy on
// the results volume, the records in the log. Nothing of it changes the exit code.
package podrank

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"strconv"
	"time"

	"assay/pkg/environ"
	"assay/pkg/evidence"
	"assay/pkg/exitcode"
	"assay/pkg/plan"
	"assay/pkg/pod"
	"assay/pkg/rank"
	"assay/pkg/rundir"
)

// Options says where the rank stands. Paths that are empty are those of a pod.
type Options struct {
	// Rank has the job file as it was submitted, the address and the port of rank 0,
	// the environment of the pod, and where signals come from. The rest is filled in.
	Rank rank.Options
	// Given says that Rank.Rank is the rank, whatever the pod's index is.
	Given bool

	Out io.Writer // the output of the pod, for nobody else
	Err io.Writer // its error output

	AttemptDir     string // made when the one that was submitted is not shared
	ModelDir       string // scripts that were shipped; it may not be there
	TerminationLog string
}

// inPod is a rank while it runs.
type inPod struct {
	o        Options
	attempt  plan.Attempt
	shared   bool // the attempt directory is that of whoever submitted the job
	rank     int
	progress *progress
	console  *pod.Console
	sender   *pod.Sender
}

// signalled is the first exit code that stands for a signal: who was told to stop
// stays for nobody.
const signalled = 128

// Run runs the rank that the pod is for. The exit code and the error are those of
// rank.Run.
func Run(ctx context.Context, o Options) (int, error) {
	o.fill()
	p, err := prepare(o)
	if err != nil {
		p.tell(err)
		return int(exitcode.Of(err)), err
	}
	opt := p.rankOptions()
	if opt.Signals == nil {
		opt.Signals = rank.Listen()
	}
	meeting := p.meet(ctx, &opt)
	defer meeting.leave()
	code, err := rank.Run(ctx, opt)
	if err != nil {
		p.tell(err)
		return code, err
	}
	p.handOver()
	if code < signalled || meeting.stays() {
		meeting.linger(ctx, opt.Signals)
	}
	return code, nil
}

func (o *Options) fill() {
	for _, path := range []struct {
		at    *string
		usual string
	}{{&o.AttemptDir, pod.AttemptDir}, {&o.ModelDir, pod.ModelDir}, {&o.TerminationLog, pod.TerminationLog}} {
		if *path.at == "" {
			*path.at = path.usual
		}
	}
	if o.Err == nil {
		o.Err = io.Discard
	}
	if o.Out == nil {
		o.Out = io.Discard
	}
}

// prepare finds out what is to run, and where. It returns something in any case.
func prepare(o Options) (*inPod, error) {
	p := &inPod{o: o, rank: o.Rank.Rank, progress: &progress{to: o.Out}}
	p.console = pod.NewConsole(p.progress)
	if !o.Given {
		index := environ.Get(o.Rank.Env, pod.IndexVariable)
		n, err := strconv.Atoi(index)
		if err != nil || n < 0 {
			return p, exitcode.Errorf(exitcode.Error, "%s is %q: this is no pod of an Indexed Job; give --rank", pod.IndexVariable, index)
		}
		p.rank = n
	}
	submitted, err := rundir.ReadJobFile(o.Rank.JobFile)
	if err != nil {
		return p, exitcode.Errorf(exitcode.Invalid, "job file: %w", err)
	}
	if err := p.place(submitted); err != nil {
		return p, exitcode.Errorf(exitcode.Error, "rank %d: nothing was started: %w", p.rank, err)
	}
	process := make([]byte, 8)
	_, _ = rand.Read(process) // never fails
	p.sender = pod.NewSender(p.console, p.attempt.Identity(p.rank), hex.EncodeToString(process))
	return p, nil
}

// rankOptions is how the rank is run.
func (p *inPod) rankOptions() rank.Options {
	r, env, job := p.o.Rank, p.o.Rank.Env, p.attempt.Job
	r.JobFile, r.Rank = p.jobFile(), p.rank
	r.Node, r.Host = environ.Get(env, pod.NodeVariable), environ.Get(env, pod.PodVariable)
	if r.Node == "" {
		r.Node = r.Host
	}
	r.Hosts = hosts(r.MasterAddr, job)
	if job.K8s != nil {
		r.RootWait = time.Duration(job.K8s.RootWaitSeconds) * time.Second
	}
	r.Contained = true // modules and the env_file are the pod's affair
	r.EchoOut, r.EchoErr, r.Stderr = p.console, p.o.Err, p.o.Err
	if !p.shared {
		r.Began = func(b evidence.Begin) {
			if err := p.progress.patiently(func() error { return p.sender.Begin(b) }); err != nil {
				p.say("the begin marker could not be sent: %v", err)
			}
		}
	}
	return r
}

// say tells people something.
func (p *inPod) say(format string, args ...any) {
	_, _ = fmt.Fprintf(p.o.Err, "assay rank %d: %s\n", p.rank, fmt.Sprintf(format, args...))
}
