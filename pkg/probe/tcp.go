package probe

import (
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"assay/pkg/exitcode"
)

// The names of the metrics that the client of a link prints.
const (
	MetricTCPBandwidth = "tcpBandwidthGbps" // the slower direction, more is better
	MetricTCPSend      = "tcpSendGbps"      // from the client to the server, more is better
	MetricTCPReceive   = "tcpReceiveGbps"   // from the server to the client, more is better
	MetricTCPLatency   = "tcpLatencyUs"     // half the median round trip, less is better
	MetricTCPErrors    = "tcpErrors"        // chunks that came otherwise than sent; good is 0
)

// The two sides of a link.
const (
	RoleServer = "server"
	RoleClient = "client"
)

// Defaults of TCPOptions.
const (
	DefaultTCPDuration = 2 * time.Second
	DefaultTCPStreams  = 1
	DefaultTCPPings    = 1000

	pingBytes      = 64
	maxStreams     = 256
	maxTCPDuration = 24 * time.Hour
)

// TCPOptions say which side of a link this is and what is measured. What is measured
// is decided by the client.
type TCPOptions struct {
	Role       string        // RoleServer or RoleClient
	Addr       string        // host of the server; empty: DefaultMasterAddr
	Port       int           // its port; 0: DefaultMasterPort
	Token      string        // tells this run from another one; a client with another token is refused
	Duration   time.Duration // of each direction; 0: DefaultTCPDuration
	Streams    int           // connections at the same time; 0: DefaultTCPStreams
	ChunkBytes int           // what is sent and verified at once; 0: DefaultChunkBytes
	Pings      int           // round trips; 0: DefaultTCPPings

	ConnectTimeout time.Duration // how long each waits for the other; 0: DefaultConnectTimeout
	StallTimeout   time.Duration // how long the other may be silent; 0: DefaultStallTimeout

	listening func(port int)     // told where the server listens; it then takes any port
	tamper    func(chunk []byte) // changes a chunk before it is sent
}

// TCP measures the link between two hosts: bandwidth in both directions, and latency.
// Every byte of the streams is compared with what was sent. The client writes the
// report to w; the server serves until the client says that it is done.
//
// Invalid options are an error of kind Invalid, damaged data one of kind Fail, and a
// peer that does not come, dies or stalls one of kind Error.
func TCP(ctx context.Context, opt TCPOptions, w io.Writer) error {
	opt, err := opt.withDefaults()
	if err != nil {
		return err
	}
	if opt.Role == RoleServer {
		return serve(ctx, opt)
	}
	return measure(ctx, opt, w)
}

func (o TCPOptions) withDefaults() (TCPOptions, error) {
	o.Addr = orDefault(o.Addr, DefaultMasterAddr)
	o.Port = orDefault(o.Port, DefaultMasterPort)
	o.Duration = orDefault(o.Duration, DefaultTCPDuration)
	o.Streams = orDefault(o.Streams, DefaultTCPStreams)
	o.ChunkBytes = orDefault(o.ChunkBytes, DefaultChunkBytes)
	o.Pings = orDefault(o.Pings, DefaultTCPPings)
	o.ConnectTimeout = orDefault(o.ConnectTimeout, DefaultConnectTimeout)
	o.StallTimeout = orDefault(o.StallTimeout, DefaultStallTimeout)
	for _, check := range []struct {
		ok   bool
		what string
		args []any
	}{
		{o.Role == RoleServer || o.Role == RoleClient, "the role is %q: choose server or client", []any{o.Role}},
		{o.Port > 0 && o.Port < 1<<16, "the port is %d: choose 1 to 65535", []any{o.Port}},
		{o.Duration > 0 && o.Duration <= maxTCPDuration, "the duration is %s: choose up to a day", []any{o.Duration}},
		{o.Streams > 0 && o.Streams <= maxStreams, "the number of streams is %d: choose 1 to %d", []any{o.Streams, maxStreams}},
		{validChunk(o.ChunkBytes), "the chunk size is %d bytes: choose 64 to %d", []any{o.ChunkBytes, patternBytes}},
		{o.Pings > 0 && o.Pings <= maxIterations, "the number of round trips is %d: choose 1 to %d", []any{o.Pings, maxIterations}},
		{o.ConnectTimeout > 0 && o.StallTimeout > 0, "the time limits are %s to connect and %s to stall: choose more than nothing", []any{o.ConnectTimeout, o.StallTimeout}},
	} {
		if !check.ok {
			return o, exitcode.Errorf(exitcode.Invalid, check.what, check.args...)
		}
	}
	return o, nil
}

func (o TCPOptions) address() string { return net.JoinHostPort(o.Addr, strconv.Itoa(o.Port)) }

// flow is what went in one direction.
type flow struct {
	bytes   int64
	damaged int64
	seconds float64
}

func (f flow) gbps() float64 { return float64(f.bytes) * 8 / f.seconds / 1e9 }

// tcpReport is what the client writes.
func tcpReport(o TCPOptions, send, receive flow, median time.Duration) string {
	var b strings.Builder
	damaged := send.damaged + receive.damaged
	total := float64(send.bytes+receive.bytes) / 1e9
	fmt.Fprintf(&b, "tcp  %d stream(s) to %s, chunks of %s, %s in each direction; latency: half the median round trip of %d bytes\n\n",
		o.Streams, o.address(), formatSize(int64(o.ChunkBytes)), o.Duration, pingBytes)
	fmt.Fprintf(&b, "%-16s %10.3f Gbit/s\n%-16s %10.3f Gbit/s\n%-16s %10.1f us\n\n", "to the server", send.gbps(), "to the client", receive.gbps(), "round trip", us(median))
	if damaged == 0 {
		fmt.Fprintf(&b, "verified: every byte of %.3g GB\n\n", total)
	} else {
		fmt.Fprintf(&b, "damaged: %d chunks of %.3g GB\n\n", damaged, total)
	}
	fmt.Fprintf(&b, "%s=%.4g\n%s=%.4g\n%s=%.4g\n", MetricTCPBandwidth, min(send.gbps(), receive.gbps()), MetricTCPSend, send.gbps(), MetricTCPReceive, receive.gbps())
	fmt.Fprintf(&b, "%s=%.4g\n%s=%d\n", MetricTCPLatency, us(median)/2, MetricTCPErrors, damaged)
	return b.String()
}

func us(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
