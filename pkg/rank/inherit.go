package rank

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"assay/pkg/envfile"
	"assay/pkg/evidence"
	"assay/pkg/exitcode"
	"assay/pkg/signame"
	"assay/pkg/verdict"
)

// environment builds the environment of the workload: what is inherited, the
// launcher's defaults, the modules, the env_file, and what the manifest and the
// rank say. It reports false when one of them was refused or the wrapper was told
// to stop meanwhile.
func (w *wrapper) environment(ctx context.Context) ([]string, bool) {
	if w.options.Contained {
		return w.rankEnv(w.withMissing(w.options.Env)), true
	}
	env, job := w.withLauncher(w.options.Env), w.attempt.Job
	options := envfile.Options{Dir: job.ModelDir, Services: true}
	if f := job.EnvFile; f != nil {
		options.Path, options.Format = f.Path, f.Format
		options.Timeout = time.Duration(f.TimeoutSeconds) * time.Second
	}
	if len(job.Modules) > 0 {
		options.Base = env
		vars, ok := w.load(ctx, verdict.CodeModule, exitcode.Error, func(ctx context.Context) (envfile.Vars, error) {
			return envfile.LoadModules(ctx, options, job.Modules)
		})
		if !ok {
			return nil, false
		}
		w.note("modules %s: %s", strings.Join(job.Modules, " "), vars)
		env = vars.Apply(env)
	}
	if job.EnvFile != nil {
		options.Base = env
		vars, ok := w.load(ctx, verdict.CodeEnvFile, exitcode.Invalid, func(ctx context.Context) (envfile.Vars, error) {
			return envfile.Load(ctx, options)
		})
		if !ok {
			return nil, false
		}
		w.note("env_file %s: %s", options.Path, vars)
		env = vars.Apply(env)
	}
	return w.rankEnv(env), true
}

// load runs a loader of variables, and gives up when a signal arrives. It reports
// false when the rank is over: told to stop, or refused with the code.
func (w *wrapper) load(ctx context.Context, code string, exit exitcode.Code, loader func(context.Context) (envfile.Vars, error)) (envfile.Vars, bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type answer struct {
		vars envfile.Vars
		err  error
	}
	done := make(chan answer, 1)
	go func() {
		vars, err := loader(ctx)
		done <- answer{vars, err}
	}()
	var a answer
	select {
	case a = <-done:
		if ctx.Err() != nil {
			w.stopped = stopSignal
		}
	case w.stopped = <-w.options.Signals:
		cancel()
		a = <-done
	}
	switch {
	case w.stopped != nil:
		w.stopBeforeStart()
		return a.vars, false
	case a.err != nil:
		w.refuse(code, int(exit), "%v", a.err)
		return a.vars, false
	}
	return a.vars, true
}

// stopBeforeStart records that the wrapper was told to stop before the workload.
func (w *wrapper) stopBeforeStart() {
	w.end.Outcome, w.end.ExitCode, w.end.Signal = evidence.OutcomeStopped, signalExit(w.stopped), signame.Of(w.stopped)
	w.end.Message = sentence(w.end.Message, fmt.Sprintf("stopped by %s before the workload started", signame.Of(w.stopped)))
	w.note("%s", w.end.Message)
}

// withLauncher adds the launcher's defaults to the inherited environment: the
// modules, the env_file and the manifest win over them. One that names the hosts
// is left out where they are not known.
func (w *wrapper) withLauncher(env []string) []string {
	defaults := w.attempt.Job.LauncherEnv
	if len(defaults) == 0 {
		return env
	}
	v := newVariables(env)
	hosts := strings.Join(w.options.Hosts[:min(len(w.options.Hosts), w.attempt.Job.NNodes)], ",")
	if hosts == "" && w.oneHost() {
		hosts = w.options.MasterAddr
	}
	own := strings.NewReplacer("${NODE_RANK}", strconv.Itoa(w.nodeRank()), "${HOSTS}", hosts)
	for _, name := range slices.Sorted(maps.Keys(defaults)) {
		if strings.Contains(defaults[name], "${HOSTS}") && hosts == "" {
			continue
		}
		v.set(name, own.Replace(defaults[name]))
	}
	return v.list()
}
