// Package rank is `assay rank`: it wraps one rank of a job on whatever target.
// It reads the job file, records the begin, builds the environment and a private
// working directory, runs the pre-scripts, the workload and the post-scripts,
// streams their output to files while picking up readings, ends whatever they
// leave behind, collects the declared results, and records the end. It returns
// only after the end marker is durable.
//
// Run makes its process a subreaper, watches its children, and catches the signals
// that would end it until the process exits, so it belongs in a process of its
// own.
//
// Exit codes: the workload's own; 128+n when it died of signal n, or when the
// wrapper was told to stop by signal n; ExitTimeout at the time limit;
// ExitNotFound or ExitNotExecutable when there is no program to run; 4 when the
// env_file is refused; 6 when a pre-script failed or the evidence could not be
// written.
package rank

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"assay/pkg/container"
	"assay/pkg/evidence"
	"assay/pkg/exitcode"
	"assay/pkg/plan"
	"assay/pkg/rundir"
)

// Exit codes of the wrapper beyond those of the workload, as shells and
// timeout(1) use them.
const (
	ExitTimeout       = 124 // the time limit was reached
	ExitNotExecutable = 126 // the program cannot be executed
	ExitNotFound      = 127 // there is no such program
)

// Options says which rank of which job to run, and where it stands.
type Options struct {
	JobFile string // path of job.json, a plan.Attempt
	Rank    int    // 0 … world size - 1; ranks fill one node after the other

	MasterAddr string   // host of rank 0
	MasterPort int      // 0: the job's own
	Node       string   // the scheduler's name of this node; empty: the host name
	Hosts      []string // of the nodes in their order, that of rank 0 first; empty: not known

	// Contained says that whoever started this process in a container has applied the
	// modules and the env_file: they are in Env.
	Contained bool
	// Binary is the absolute path of the running assay, which is put into containers;
	// needed for jobs that have them.
	Binary string
	// Linger makes Run stay after its end marker until it is told to stop, so that its
	// container stays.
	Linger bool
	// RootWait is how long to wait for MasterAddr to resolve before the workload
	// starts; 0: not at all.
	RootWait time.Duration
	// Resolve asks for the addresses of MasterAddr; nil: the system is asked.
	Resolve Resolver
	// Host is the name of this host in the markers; empty: as it calls itself.
	Host string
	// RootFound is called by every rank but 0 once the name of rank 0 has resolved;
	// nil: nothing is.
	RootFound func()
	// Meeting is where the ranks of a pair or group tell each other how far they are;
	// nil: in the attempt directory.
	Meeting Meeting
	// Began is called once the begin marker is durable; nil: nothing is.
	Began func(evidence.Begin)
	// EchoOut and EchoErr get the output of the workload and of the scripts around
	// it besides the files; nil: nobody does. A write of one may happen during one of
	// the other. A slow one slows the workload down, and one that fails gets nothing
	// more.
	EchoOut, EchoErr io.Writer

	Env     []string         // inherited environment, as KEY=VALUE
	Stderr  io.Writer        // for what cannot be said in the rank's own log; may be nil
	Signals <-chan os.Signal // what tells the wrapper to stop; nil: it catches TERM, INT, HUP and QUIT itself, and for good
}

// Run runs one rank. The exit code is what the process should exit with. The
// error is set when there is no end marker to tell what happened: a job file
// that cannot be read, a rank that was started before, evidence that cannot be
// written. The end of ctx stops the workload as SIGTERM does.
func Run(ctx context.Context, o Options) (int, error) {
	if o.Stderr == nil {
		o.Stderr = io.Discard
	}
	if o.Signals == nil {
		o.Signals = Listen()
	}
	attempt, err := readJob(o.JobFile, o.Rank)
	if err != nil {
		return int(exitcode.Of(err)), err
	}
	if attempt.Job.Container.Wrapped() && !o.Contained {
		return runContained(ctx, attempt, o)
	}
	if o.Contained {
		if o.Env, err = container.Unpack(o.Env); err != nil {
			return int(exitcode.Invalid), exitcode.With(exitcode.Invalid, err)
		}
	}
	w, err := newWrapper(attempt, o)
	if err != nil {
		return int(exitcode.Of(err)), err
	}
	defer w.close()
	if o.Began != nil {
		o.Began(w.begin())
	}
	w.execute(ctx)
	if err := w.finish(); err != nil {
		return int(exitcode.Of(err)), err
	}
	w.tell(ctx, State{Stage: StageOver})
	w.linger(ctx)
	return w.end.ExitCode, nil
}

// readJob reads the job file and checks what the wrapper relies on.
func readJob(path string, rank int) (plan.Attempt, error) {
	a, err := rundir.ReadJobFile(path)
	if err != nil {
		return a, exitcode.Errorf(exitcode.Invalid, "job file: %w", err)
	}
	if !filepath.IsAbs(a.Dir) {
		return a, exitcode.Errorf(exitcode.Invalid, "job file %s: dir %q is not an absolute path", path, a.Dir)
	}
	if rank < 0 || rank >= a.Job.WorldSize {
		return a, exitcode.Errorf(exitcode.Invalid, "rank %d is not one of the %d ranks of job %s", rank, a.Job.WorldSize, a.Job.ID)
	}
	if len(a.Job.Program.Command) == 0 && a.Job.Program.Script == "" {
		return a, exitcode.Errorf(exitcode.Invalid, "job file %s: job %s has neither a command nor a script", path, a.Job.ID)
	}
	return a, nil
}

// sentence joins what is to be said in one message.
func sentence(have, more string) string {
	if have == "" {
		return more
	}
	return fmt.Sprintf("%s; %s", have, more)
}
