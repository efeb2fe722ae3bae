package plan

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"assay/pkg/card"
	"assay/pkg/exitcode"
	"assay/pkg/manifest"
	"assay/pkg/phrase"
	"assay/pkg/verdict"
)

// Options are what the command line adds to a manifest.
type Options struct {
	ManifestDir    string // absolute; scripts and the env_file are relative to it
	Bare           bool   // run directly on the host, whatever image an entry has
	Strict         bool   // warnings of a verdict fail it
	TimeoutSeconds *int   // wins over every card's timeout; 0: none, -1: the default
	KeepAlive      bool   // containers stay when their ranks have ended

	Nodes           []string           // that the run uses; scope node has a job on each, pair one for each link, group one on all
	Pairs           string             // which links: "all", "ring" or "a:b,c:d"; wins over the suite's
	Hardware        string             // key of the file of thresholds; wins over the suite's
	MaxNodes        manifest.NodeLimit // under load at the same time; wins over the suite's
	DurationSeconds int                // of tests that have a duration; wins over theirs
	Baseline        bool               // measure, gate nothing
}

// Jobs returns one job for each entry of the manifest, or where the run names its
// nodes one for each node, link or group that it is about, in the order of the suite,
// or of the document where there is none; and one sentence for each thing in it that
// will not be honoured. An error carries exitcode.Invalid and has one line for each
// thing that is wrong, with its JSON pointer.
func Jobs(m *manifest.Manifest, opt Options) ([]Job, []string, error) {
	if !filepath.IsAbs(opt.ManifestDir) {
		return nil, nil, fmt.Errorf("plan: the manifest's directory %q is not absolute", opt.ManifestDir)
	}
	p := &planner{m: m, opt: opt, told: map[string]bool{}}
	p.prepare()
	entries := p.prepareSuite()
	ids := jobIDs(entries)
	jobs := make([]Job, 0, len(entries))
	tests := make([]Job, 0, len(entries)) // also those that can be on no nodes
	stage := 0
	for i, e := range entries {
		t := p.testOf(e)
		job := p.job(e, t)
		tests = append(tests, job)
		job.ID, job.Stage = ids[i], stage
		units := p.units(e, t, job.Scope, job.NNodes)
		for _, u := range units {
			jobs = append(jobs, p.place(job, u, len(units) > 1))
		}
		if p.suite != nil {
			stage += rounds(units)
		}
	}
	uniqueIDs(jobs)
	p.checkInterlock(jobs)
	p.checkHardware()
	p.checkOptions(tests)
	p.checkKeepAlive(jobs)
	if len(p.problems) > 0 {
		return nil, nil, exitcode.With(exitcode.Invalid, errors.Join(p.problems...))
	}
	p.warnAboutDeployment()
	p.warnAboutContext(jobs)
	return jobs, p.warnings, nil
}

// planner gathers what is wrong with a manifest while it makes jobs of it, so
// that all of it can be told at once.
type planner struct {
	m        *manifest.Manifest
	opt      Options
	warnings []string
	problems []error
	told     map[string]bool // what entries share is told once

	suite *manifest.Suite // nil: there is none
	tests map[string]test // by key of their entries

	// What all entries share.
	target      string
	env         map[string]string
	envFile     *EnvFile
	pre, post   []Script
	encapsulate []string
}

// refuse notes that the value at a JSON pointer cannot be planned.
func (p *planner) refuse(at, format string, args ...any) {
	p.fail("manifest: "+at, fmt.Errorf(format, args...))
}

// fail notes what is wrong with a value of the manifest or of the command line.
func (p *planner) fail(where string, why error) {
	if text := phrase.Escape(where + ": " + why.Error()); p.new(text) {
		p.problems = append(p.problems, errors.New(text))
	}
}

// warn notes that the value at a JSON pointer will not be honoured.
func (p *planner) warn(at, format string, args ...any) {
	if text := phrase.Escape("manifest: " + at + ": " + fmt.Sprintf(format, args...)); p.new(text) {
		p.warnings = append(p.warnings, text)
	}
}

// new says whether a text was not told before.
func (p *planner) new(text string) bool {
	was := p.told[text]
	p.told[text] = true
	return !was
}

// prepare works out what all entries share.
func (p *planner) prepare() {
	dep, ctx := p.m.Deployment, p.m.Context
	p.target = dep.TargetName()
	if !slices.Contains(manifest.Targets(), p.target) {
		p.refuse(dep.Pointer("target"), "unknown target %q (known: %s)", p.target, strings.Join(manifest.Targets(), ", "))
	}
	p.checkNodes()
	if len(p.m.Models) == 0 {
		p.refuse("/built_models", "there is no model, so nothing would run")
	}
	p.env = map[string]string{}
	p.addEnv(p.env, ctx.DockerEnvVars, "/context/docker_env_vars")
	p.addEnv(p.env, dep.EnvVars, dep.Pointer("env_vars"))
	p.envFile = p.readEnvFile()
	p.pre = p.scripts(ctx.PreScripts, "/context/pre_scripts")
	p.post = p.scripts(ctx.PostScripts, "/context/post_scripts")
	p.encapsulate = p.split(ctx.EncapsulateScript, "/context/encapsulate_script")
}

// job plans one entry.
func (p *planner) job(e manifest.Entry, t test) Job {
	levels := p.levels(e)
	scope := p.scope(e)
	size := p.size(e, scope, levels)
	p.checkScope(e, scope, size)
	job := Job{
		Key:   e.Key,
		Model: e.Name,
		Scope: scope,

		Test: t.name, Variant: t.variant, Optional: t.optional, StopOnFail: t.stopOnFail,
		Policy: verdict.Policy{Repeats: e.Repeats, Retries: e.Retries, DurationSeconds: t.duration},

		NNodes:       size.nnodes,
		NProcPerNode: size.nproc,
		RanksPerNode: size.ranksPerNode,
		WorldSize:    size.launcher.WorldSize(size.nnodes, size.nproc),
		Launcher:     size.launcher.Name,
		Runner:       size.launcher.Runner(size.nnodes, size.nproc),
		LauncherEnv:  size.launcher.Env(p.setup(size)),
		Backend:      backend(levels),
		MasterPort:   p.port(levels),

		Program:        p.program(e),
		ModelDir:       p.opt.ManifestDir,
		TimeoutSeconds: p.timeout(e),
		Env:            p.jobEnv(e),
		EnvFile:        p.envFile,
		PreScripts:     p.pre,
		PostScripts:    p.post,

		GPUsPerNode: size.gpus,
		GPUVendor:   p.vendor(e),
		Deployment:  p.target,
		SkipMetrics: p.m.Context.SkipPerfCollection.Value,
	}
	if !p.opt.Bare {
		job.Image = p.m.Images[e.Key].DockerImage
	}
	p.slurm(e, &job)
	p.container(e, &job)
	job.Ready = p.ready(e, job)
	job.Expect = p.expect(e, t, &job)
	p.k8s(e, &job)
	job.Expect.Unwrapped = job.K8s != nil && job.K8s.Unwrapped
	p.checkDuration(e, job)
	p.checkEntry(e, job)
	return job
}

// checkEntry refuses an entry that is incomplete, and names what a run directly
// on the host leaves out.
func (p *planner) checkEntry(e manifest.Entry, job Job) {
	if e.Name == "" {
		p.refuse(e.Pointer("name"), "a model needs a name")
	}
	if _, ok := p.m.Images[e.Key]; !ok {
		p.refuse(e.Pointer(), "built_images has no entry of the same key")
	}
	p.warnAboutCard(e)
	if e.SkipGPUArch != "" {
		p.warn(e.Pointer("skip_gpu_arch"), "the GPU architecture is not looked at: the model runs on any")
	}
	if e.Data != "" {
		p.warn(e.Pointer("data"), "data %q is not fetched: the script must find it by itself", e.Data)
	}
	if job.Image != "" {
		if e.URL != "" {
			p.warn(e.Pointer("url"), "%s is not cloned: the scripts must be in the image, or beside the manifest", e.URL)
		}
		return
	}
	if e.AdditionalDockerRunOptions != "" {
		p.warn(e.Pointer("additional_docker_run_options"), "ignored: the model runs directly on the host")
	}
	if e.URL != "" {
		p.warn(e.Pointer("url"), "%s is not cloned: the model runs directly on the host", e.URL)
	}
}

// checkKeepAlive refuses to keep containers where there is none.
func (p *planner) checkKeepAlive(jobs []Job) {
	if !p.opt.KeepAlive || slices.ContainsFunc(jobs, func(j Job) bool { return j.Container != nil }) {
		return
	}
	p.fail("--keep-alive", errors.New("no entry runs in a container on this target, so there is nothing to keep"))
}

// warnAboutContext names what the context asks for and a host cannot give.
func (p *planner) warnAboutContext(jobs []Job) {
	ctx, dep := p.m.Context, p.m.Deployment
	onHost := slices.ContainsFunc(jobs, func(j Job) bool { return j.Image == "" })
	if len(ctx.Tools) > 0 {
		names := make([]string, len(ctx.Tools))
		for i, t := range ctx.Tools {
			names[i] = t.Name
		}
		where := ""
		if onHost {
			where = " to a model that runs directly on the host"
		}
		p.warn("/context/tools", "tools are not applied%s: %s", where, strings.Join(names, ", "))
	}
	if !onHost {
		return
	}
	if len(ctx.DockerMounts) > 0 {
		p.warn("/context/docker_mounts", "nothing is mounted for a model that runs directly on the host")
	}
	if restricts(ctx.DockerGPUs) {
		p.warn("/context/docker_gpus", "GPUs %s are not singled out for a model that runs directly on the host", strings.Join(ctx.DockerGPUs, ","))
	}
	if restricts(dep.DockerGPUs) {
		p.warn(dep.Pointer("docker_gpus"), "GPUs %s are not singled out for a model that runs directly on the host", strings.Join(dep.DockerGPUs, ","))
	}
}

// restricts says whether docker_gpus asks for less than all GPUs.
func restricts(gpus card.Words) bool {
	return len(gpus) > 0 && (len(gpus) > 1 || !slices.Contains([]string{"", "all", "-1"}, gpus[0]))
}
