package cli

import (
	"errors"
	"strconv"

	"github.com/spf13/cobra"

	"assay/pkg/exitcode"
	"assay/pkg/probe"
)

func (a *app) probeCmd() *cobra.Command {
	c := &cobra.Command{
		Use:   "probe",
		Short: "Measure this machine with a built-in workload",
		Long:  "probe runs one of the workloads that are part of the binary, so that they are wherever the binary is.",
		Example: "  assay probe triad\n" +
			"  RANK=0 WORLD_SIZE=1 assay probe allreduce",
		Args: between(0, 0, "the name of a probe: triad, allreduce or tcp"),
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(a.triadCmd(), a.allreduceCmd(), a.tcpCmd())
	return c
}

func (a *app) triadCmd() *cobra.Command {
	var opt probe.TriadOptions
	var size, cpus string
	c := &cobra.Command{
		Use:   "triad",
		Short: "Measure memory bandwidth as STREAM defines its triad",
		Long: "triad computes a[i] = b[i] + q*c[i] over arrays that no cache holds, on one CPU and then on all of them, and\n" +
			"reports the best pass in GB/s of 24 bytes an element.",
		Example: "  assay probe triad\n  assay probe triad --size 64MiB --cpus 0,1",
		Args:    exactly(0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			if size != "" {
				n, err := probe.ParseSize(size)
				if err != nil {
					return exitcode.With(exitcode.Invalid, err)
				}
				opt.ArrayBytes = n
			}
			var err error
			if opt.CPUs, err = probe.ParseCPUs(cpus); err != nil {
				return err
			}
			ctx, stop := interruptible(c.Context())
			defer stop()
			return workloadError(probe.Triad(ctx, opt, a.Out))
		},
	}
	f := c.Flags()
	f.StringVar(&size, "size", "", "size of each array, such as 256MiB (default four times the last-level caches)")
	f.IntVar(&opt.NTimes, "ntimes", 0, "passes, the first of which is not counted (default "+strconv.Itoa(probe.DefaultNTimes)+")")
	f.StringVar(&cpus, "cpus", "", "CPUs to use, such as 0-3,8 (default all that this process may use)")
	f.BoolVar(&opt.EachCore, "each-core", false, "measure every CPU alone, not only the first")
	return c
}

func (a *app) allreduceCmd() *cobra.Command {
	var opt probe.AllReduceOptions
	var least, most, chunk string
	c := &cobra.Command{
		Use:   "allreduce",
		Short: "Measure a ring all-reduce between ranks over TCP",
		Long: "allreduce meets the other ranks at MASTER_ADDR:MASTER_PORT, sums vectors around a ring, verifies every result,\n" +
			"and reports algorithm and bus bandwidth. RANK and WORLD_SIZE come from the environment, as a launcher sets them.",
		Example: "  RANK=0 WORLD_SIZE=1 assay probe allreduce --max 1MiB",
		Args:    exactly(0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := a.rendezvous(&opt); err != nil {
				return err
			}
			for _, s := range []struct {
				text string
				to   *int64
			}{{least, &opt.MinBytes}, {most, &opt.MaxBytes}} {
				if s.text == "" {
					continue
				}
				n, err := probe.ParseSize(s.text)
				if err != nil {
					return err
				}
				*s.to = n
			}
			if chunk != "" {
				n, err := probe.ParseSize(chunk)
				if err != nil {
					return err
				}
				opt.ChunkBytes = int(n)
			}
			ctx, stop := interruptible(c.Context())
			defer stop()
			return workloadError(probe.AllReduce(ctx, opt, a.Out))
		},
	}
	f := c.Flags()
	f.StringVar(&least, "min", "", "smallest message, such as 1KiB")
	f.StringVar(&most, "max", "", "largest message, such as 64MiB")
	f.IntVar(&opt.Factor, "factor", 0, "from one message size to the next")
	f.StringVar(&opt.DataType, "type", "float32", "float32 or float64")
	f.IntVar(&opt.Iterations, "iterations", 0, "timed operations a size")
	f.IntVar(&opt.WarmUp, "warm-up", 0, "operations a size before those; negative for none")
	f.StringVar(&chunk, "chunk", "", "how much is sent before the next rank may go on")
	f.DurationVar(&opt.ConnectTimeout, "connect-timeout", 0, "how long the ranks may take to meet")
	f.DurationVar(&opt.StallTimeout, "stall-timeout", 0, "how long a peer may be silent")
	return c
}

// rendezvous takes the rank environment from the process environment.
func (a *app) rendezvous(opt *probe.AllReduceOptions) error {
	opt.MasterAddr, opt.Token = a.getenv("MASTER_ADDR"), a.getenv("ASSAY_RUN_ID")
	for _, v := range []struct {
		name string
		to   *int
	}{{"MASTER_PORT", &opt.MasterPort}, {"RANK", &opt.Rank}, {"WORLD_SIZE", &opt.WorldSize}} {
		text := a.getenv(v.name)
		if text == "" {
			continue
		}
		n, err := strconv.Atoi(text)
		if err != nil {
			return exitcode.Errorf(exitcode.Invalid, "%s=%q in the environment is not a number; a launcher sets it, or unset it for one rank", v.name, text)
		}
		*v.to = n
	}
	return nil
}

// workloadError gives a probe that failed the exit code of a failed measurement. One that
// was told to stop found nothing: it ends as by the signal, as the server of a link does
// whose client is gone.
func workloadError(err error) error {
	var stop stoppedBy
	if errors.As(err, &stop) {
		return exitcode.With(stop.code(), err)
	}
	if exitcode.Of(err) == exitcode.Internal {
		return exitcode.With(exitcode.Fail, err)
	}
	return err
}
