package cli

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"assay/deploy/slurm"
	"assay/pkg/exitcode"
	"assay/pkg/rank"
	"assay/pkg/rundir"
)

// rankCmd wraps one rank. Targets call it; its flags are not for people, but it
// can be run by hand as job.sh of a local job shows.
func (a *app) rankCmd() *cobra.Command {
	var opt rank.Options
	var under string
	c := &cobra.Command{
		Use:   "rank --job FILE --rank N",
		Short: "Run one rank of a job and record how it began and ended",
		Long: "rank runs the workload of one rank as the job file says. It streams its output to files, enforces the time\n" +
			"limit, leaves a begin and an end marker, and exits with the workload's own code. Targets start it; the job.sh\n" +
			"of a local job shows how.",
		Example: "  assay rank --job runs/20260102-150405-a1b2c3/jobs/triad/1/job.json --rank 0 --master-addr 127.0.0.1 --master-port 29500",
		Args:    exactly(0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			opt.Env = append(a.Env, "ASSAY_BIN="+a.Binary)
			opt.Stderr, opt.Binary = a.Err, a.Binary
			given := c.Flags().Changed("rank")
			run := rank.Run
			if under == underK8s {
				run = func(ctx context.Context, opt rank.Options) (int, error) { return a.rankInPod(ctx, opt, given) }
			} else if err := a.standUnder(under, &opt, given); err != nil {
				return err
			}
			code, err := run(c.Context(), opt)
			if err != nil {
				return exitcode.With(exitcode.Code(code), err)
			}
			return exit(exitcode.Code(code))
		},
	}
	f := c.Flags()
	f.StringVar(&opt.JobFile, "job", "", "job file of the attempt")
	f.IntVar(&opt.Rank, "rank", 0, "rank to run, from 0")
	f.StringVar(&opt.MasterAddr, "master-addr", "127.0.0.1", "address of rank 0")
	f.IntVar(&opt.MasterPort, "master-port", 0, "port where the ranks meet")
	f.StringVar(&under, "under", "", "scheduler that started this process, whose variables say which rank it is: slurm or k8s")
	f.StringVar(&opt.Node, "node", "", "the scheduler's name of this node (default: the host name)")
	f.StringSliceVar(&opt.Hosts, "hosts", nil, "hosts of the nodes, in their order")
	f.BoolVar(&opt.Contained, "contained", false, "this process is in a container that another assay made; modules and the env_file have been applied")
	f.BoolVar(&opt.Linger, "linger", false, "stay after the end of the rank, until told to stop")
	for _, name := range []string{"hosts", "contained", "linger"} {
		_ = f.MarkHidden(name) // it is there
	}
	return c
}

// standUnder fills in what the scheduler that started this process says of it.
func (a *app) standUnder(scheduler string, opt *rank.Options, given bool) error {
	switch scheduler {
	case "":
		return nil
	case slurm.Name:
		h, err := slurm.WhereAmI(a.Env)
		if err != nil {
			return exitcode.With(exitcode.Error, err)
		}
		if !given {
			if h.Rank < 0 {
				return exitcode.Errorf(exitcode.Error, "SLURM_PROCID is not set: this is no task of a SLURM step; give --rank")
			}
			attempt, err := rundir.ReadJobFile(opt.JobFile)
			if err != nil {
				return exitcode.Errorf(exitcode.Invalid, "job file: %w", err)
			}
			if h, err = h.For(attempt.Job); err != nil {
				return exitcode.With(exitcode.Error, err)
			}
			opt.Rank = h.Rank
		}
		opt.Node, opt.Hosts = h.Node, h.Hosts
		return nil
	}
	return exitcode.Errorf(exitcode.Invalid, "--under %q: the schedulers are slurm and k8s", scheduler)
}

// placeCmd finds out where the ranks of a job meet. Batch scripts call it, once, on
// the first node.
func (a *app) placeCmd() *cobra.Command {
	var jobFile, under string
	var asJSON bool
	c := &cobra.Command{
		Use:   "place --job FILE --under SCHEDULER",
		Short: "Say where the ranks of a job meet, for a batch script",
		Long: "place reads the variables of the scheduler on the first node of a job. It prints the job file of this start of the\n" +
			"job, the host and the port where its ranks meet, and its nodes.",
		Example: "  assay place --job runs/20260102-150405-a1b2c3/jobs/triad/1/job.json --under slurm",
		Hidden:  true,
		Args:    exactly(0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			return classify(a.place(c.Context(), jobFile, under, asJSON))
		},
	}
	c.Flags().StringVar(&jobFile, "job", "", "job file of the attempt that was submitted")
	c.Flags().StringVar(&under, "under", "", "scheduler that started the script: slurm")
	jsonFlag(c, &asJSON)
	return c
}

// place prints four lines: the job file of this start, the host and the port where
// ranks meet, and the nodes.
func (a *app) place(ctx context.Context, jobFile, under string, asJSON bool) error {
	if under != slurm.Name {
		return exitcode.Errorf(exitcode.Invalid, "--under %q: the only scheduler is slurm", under)
	}
	submitted, err := rundir.ReadJobFile(jobFile)
	if err != nil {
		return fmt.Errorf("the job file cannot be read on this node: %w", err)
	}
	h, err := slurm.WhereAmI(a.Env)
	if err != nil {
		return err
	}
	attempt, err := rundir.MakeRestart(submitted, h.Restarts)
	if err != nil {
		return err
	}
	p, err := slurm.Meet(ctx, a.Env, h, attempt.Job)
	if err != nil {
		return err
	}
	file := filepath.Join(attempt.Dir, rundir.JobFile)
	if asJSON {
		return writeJSON(a.Out, map[string]any{"job_file": file, "master_addr": p.MasterAddr, "master_port": p.MasterPort, "nodes": p.Nodes})
	}
	_, err = fmt.Fprintf(a.Out, "%s\n%s\n%d\n%s\n", file, p.MasterAddr, p.MasterPort, p.Nodes)
	return err
}
