package cli

import (
	"github.com/spf13/cobra"

	"assay/pkg/exitcode"
	"assay/pkg/rank"
)

// rankCmd wraps one rank. Targets call it; its flags are not for people, but it
// can be run by hand as job.sh of a local job shows.
func (a *app) rankCmd() *cobra.Command {
	var opt rank.Options
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
			opt.Stderr = a.Err
			code, err := rank.Run(c.Context(), opt)
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
	f.StringVar(&opt.Node, "node", "", "the scheduler's name of this node (default: the host name)")
	return c
}
