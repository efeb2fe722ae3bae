package cli

import (
	"strconv"

	"github.com/spf13/cobra"

	"assay/pkg/exitcode"
	"assay/pkg/probe"
)

func (a *app) tcpCmd() *cobra.Command {
	var opt probe.TCPOptions
	var chunk string
	c := &cobra.Command{
		Use:   "tcp",
		Short: "Measure the link between two hosts over TCP",
		Long: "tcp measures bandwidth in both directions and latency between a server and a client, and verifies every byte.\n" +
			"Which of them this is says --role, or else ASSAY_ROLE, or RANK (0 is the server) of the environment; the server\n" +
			"listens on MASTER_PORT, and the client finds it at MASTER_ADDR. The client prints what was measured, and the\n" +
			"server serves until the client is done.",
		Example: "  assay probe tcp --role server & assay probe tcp --role client --duration 1s",
		Args:    exactly(0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := a.link(&opt); err != nil {
				return err
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
			return workloadError(probe.TCP(ctx, opt, a.Out))
		},
	}
	f := c.Flags()
	f.StringVar(&opt.Role, "role", "", "server or client (default: as the environment says)")
	f.DurationVar(&opt.Duration, "duration", 0, "of each direction (default "+probe.DefaultTCPDuration.String()+")")
	f.IntVar(&opt.Streams, "streams", 0, "connections at the same time (default "+strconv.Itoa(probe.DefaultTCPStreams)+")")
	f.StringVar(&chunk, "chunk", "", "how much is sent and verified at once, such as 1MiB")
	f.IntVar(&opt.Pings, "pings", 0, "round trips (default "+strconv.Itoa(probe.DefaultTCPPings)+")")
	f.DurationVar(&opt.ConnectTimeout, "connect-timeout", 0, "how long each side waits for the other")
	f.DurationVar(&opt.StallTimeout, "stall-timeout", 0, "how long the other side may be silent")
	return c
}

// link takes the two sides of a link from the process environment.
func (a *app) link(opt *probe.TCPOptions) error {
	var ring probe.AllReduceOptions
	if err := a.rendezvous(&ring); err != nil {
		return err
	}
	opt.Addr, opt.Port, opt.Token = ring.MasterAddr, ring.MasterPort, ring.Token
	if opt.Role == "" {
		opt.Role = a.getenv("ASSAY_ROLE")
	}
	if opt.Role == "" && a.getenv("RANK") != "" {
		if opt.Role = probe.RoleClient; ring.Rank == 0 {
			opt.Role = probe.RoleServer
		}
	}
	if opt.Role == "" {
		return exitcode.Errorf(exitcode.Invalid, "this is neither the server nor the client: say which with --role")
	}
	return nil
}
