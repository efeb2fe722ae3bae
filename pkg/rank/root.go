package rank

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"assay/pkg/exitcode"
	"assay/pkg/phrase"
	"assay/pkg/verdict"
)

const (
	rootPause    = 100 * time.Millisecond // before the second question for the root's name
	rootPauseMax = time.Second            // between later ones
	rootPatience = 10 * time.Second       // with one question
)

// Resolver asks for the addresses of a host, as net.Resolver.LookupHost does.
type Resolver func(ctx context.Context, host string) ([]string, error)

// awaitRoot waits until the name of rank 0 resolves: where every rank has a name of
// its own, that comes into being only after the ranks have started. It reports
// false when the workload must not start.
func (w *wrapper) awaitRoot(ctx context.Context) bool {
	limit := w.options.RootWait
	if limit <= 0 || w.rank == 0 || w.attempt.Job.WorldSize < 2 || !needsResolving(w.options.MasterAddr) {
		return true
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	over, done := context.WithTimeout(ctx, limit)
	defer done()
	began := time.Now()
	answer := make(chan error, 1)
	go func() { answer <- w.resolveRoot(over) }()
	var err error
	select {
	case err = <-answer:
		if ctx.Err() != nil {
			w.stopped = stopSignal
		}
	case w.stopped = <-w.options.Signals:
	}
	switch {
	case w.stopped != nil:
		w.stopBeforeStart()
		return false
	case err != nil && w.standsAlone():
		w.end.Message = sentence(w.end.Message, fmt.Sprintf(
			"rank 0's name %s did not resolve within %g s (last answer: %v), and the workload was started all the same: rank 0 may have ended already",
			w.options.MasterAddr, limit.Seconds(), err))
		w.note("%s", w.end.Message)
		return true
	case err != nil:
		w.refuse(verdict.CodeLaunchRefused, int(exitcode.Error),
			"rank 0's name %s did not resolve within %g s (last answer: %v); its pod may not have started, or has ended already",
			w.options.MasterAddr, limit.Seconds(), err)
		return false
	}
	if w.options.RootFound != nil {
		w.options.RootFound()
	}
	w.note("%s resolves after %s", w.options.MasterAddr, phrase.Seconds(time.Since(began).Seconds()))
	return true
}

// standsAlone reports whether the rank may do its work without the others: nothing
// says that they meet. Where one is done before another has started, its name is
// gone, and that is no fault of the one that looks for it.
func (w *wrapper) standsAlone() bool {
	job := w.attempt.Job
	return job.Launcher == "none" && job.Scope != scopePair && job.Scope != scopeGroup
}

// resolveRoot asks until there is an address, or ctx ends. It returns the last
// answer that was none.
func (w *wrapper) resolveRoot(ctx context.Context) error {
	resolve := w.options.Resolve
	if resolve == nil {
		resolve = net.DefaultResolver.LookupHost
	}
	last := errors.New("none came")
	for pause := rootPause; ; pause = min(2*pause, rootPauseMax) {
		question, done := context.WithTimeout(ctx, rootPatience)
		found, err := resolve(question, w.options.MasterAddr)
		done()
		switch {
		case err == nil && len(found) > 0:
			return nil
		case ctx.Err() != nil: // it was cut short, and is no answer
			return last
		case err == nil:
			err = errors.New("it has no address")
		}
		last = err
		select {
		case <-ctx.Done():
			return last
		case <-time.After(pause):
		}
	}
}

// needsResolving reports whether an address is a name that may not be known yet.
func needsResolving(host string) bool {
	_, err := netip.ParseAddr(host)
	return err != nil && host != "" && host != "localhost"
}
