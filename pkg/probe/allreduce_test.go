package probe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"assay/pkg/exitcode"
)

// runRanks runs one all-reduce with all its ranks in this process. change may
// adapt the options of a rank; what it leaves alone is quick. ended is told of each
// rank that ends. It returns the report of rank 0 and every rank's error.
func runRanks(t *testing.T, ranks int, change func(rank int, opt *AllReduceOptions), ended ...func(rank int)) (string, []error) {
	t.Helper()
	port := make(chan int, 1)
	var report strings.Builder
	errs := make([]error, ranks)
	var wg sync.WaitGroup
	start := func(rank, port int, opt AllReduceOptions, w io.Writer) {
		opt.Rank, opt.WorldSize, opt.MasterPort = rank, ranks, port
		opt.Iterations, opt.WarmUp = orDefault(opt.Iterations, 2), orDefault(opt.WarmUp, 1)
		opt.MaxBytes = orDefault(opt.MaxBytes, 4096)
		if change != nil {
			change(rank, &opt)
		}
		wg.Go(func() {
			errs[rank] = AllReduce(t.Context(), opt, w)
			for _, f := range ended {
				f(rank)
			}
		})
	}
	start(0, -1, AllReduceOptions{listening: func(address string) { port <- portOf(t, address) }}, &report)
	if ranks > 1 {
		p := <-port
		for rank := 1; rank < ranks; rank++ {
			start(rank, p, AllReduceOptions{}, io.Discard)
		}
	}
	wg.Wait()
	return report.String(), errs
}

func portOf(t *testing.T, address string) int {
	t.Helper()
	_, text, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return port
}

func TestAllReduceVerifiesForAnyNumberOfRanks(t *testing.T) {
	for ranks := 1; ranks <= 8; ranks++ {
		for _, dataType := range []string{"float32", "float64"} {
			t.Run(fmt.Sprintf("%d %s", ranks, dataType), func(t *testing.T) {
				// From one element, fewer than ranks, to sizes that neither the ranks nor the
				// chunks divide.
				report, errs := runRanks(t, ranks, func(_ int, o *AllReduceOptions) {
					o.MinBytes, o.MaxBytes, o.Factor, o.ChunkBytes = 1, 70_001, 7, 1000
					o.DataType, o.Token = dataType, "run-1"
				})
				if err := errors.Join(errs...); err != nil {
					t.Fatal(err)
				}
				alg := metricIn(t, report, MetricAllReduceAlg)
				if metricIn(t, report, MetricAllReduceLatency) <= 0 || alg <= 0 {
					t.Error(report)
				}
				if ranks == 1 {
					if strings.Contains(report, MetricAllReduceBus) {
						t.Errorf("one rank has a bus bandwidth:\n%s", report)
					}
					return
				}
				factor := 2 * float64(ranks-1) / float64(ranks)
				if bus := metricIn(t, report, MetricAllReduceBus); math.Abs(bus/alg/factor-1) > 1e-3 {
					t.Errorf("bus bandwidth %g is not %g times the algorithm bandwidth %g", bus, factor, alg)
				}
			})
		}
	}
}

func TestAllReduceNamesDamage(t *testing.T) {
	for _, bad := range []int{0, 2} {
		_, errs := runRanks(t, 3, func(rank int, o *AllReduceOptions) {
			if rank == bad {
				o.tamper = func(iteration int, data []byte) {
					if iteration == 2 && len(data) == 4096 {
						data[4*700] ^= 1
					}
				}
			}
		})
		want := fmt.Sprintf("rank %d: element 700 of 1024 is ", bad)
		for rank, err := range errs {
			code := exitcode.Error
			if rank == bad {
				code = exitcode.Fail
			}
			if err == nil || !strings.Contains(err.Error(), want) || exitcode.Of(err) != code {
				t.Errorf("rank %d ended with %v (%v), which must contain %q (%v)", rank, err, exitcode.Of(err), want, code)
			}
		}
	}
}

// A rank that ends without a word, as one that is killed, must end all others
// with its name.
func TestAllReduceNamesADeadRank(t *testing.T) {
	ctx, kill := context.WithCancel(t.Context())
	defer kill()
	died := make(chan struct{})
	errs := make([]error, 4)
	var wg sync.WaitGroup
	port := make(chan int, 1)
	run := func(rank, port int, listening func(string)) {
		wg.Go(func() {
			errs[rank] = AllReduce(t.Context(), AllReduceOptions{
				Rank: rank, WorldSize: 4, MasterPort: port, MinBytes: 1 << 20, MaxBytes: 1 << 20,
				Iterations: 1 << 20, listening: listening,
			}, io.Discard)
		})
	}
	run(0, -1, func(address string) { port <- portOf(t, address) })
	p := <-port
	run(1, p, nil)
	run(3, p, nil)
	wg.Go(func() { // rank 2
		opt, err := AllReduceOptions{Rank: 2, WorldSize: 4, MasterPort: p}.withDefaults()
		if err != nil {
			t.Error(err)
			return
		}
		g, err := meet(ctx, func(error) {}, opt)
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.CopyN(io.Discard, g.left, 4) // in the middle of the first operation
		g.close()
		close(died)
	})
	wg.Wait()
	<-died
	for _, rank := range []int{0, 1, 3} {
		if err := errs[rank]; exitcode.Of(err) != exitcode.Error || !strings.Contains(err.Error(), "rank 2 is gone") {
			t.Errorf("rank %d ended with %v (%v)", rank, err, exitcode.Of(err))
		}
	}
}

// A rank that is alive but does nothing ends the others at the stall time-out.
func TestAllReduceDoesNotWaitForAStalledRank(t *testing.T) {
	var others sync.WaitGroup
	others.Add(2)
	_, errs := runRanks(t, 3, func(rank int, o *AllReduceOptions) {
		o.StallTimeout = 200 * time.Millisecond
		if rank == 1 {
			o.StallTimeout = time.Minute
			o.tamper = func(int, []byte) { others.Wait() }
		}
	}, func(rank int) {
		if rank != 1 {
			others.Done()
		}
	})
	for _, rank := range []int{0, 2} {
		if err := errs[rank]; exitcode.Of(err) != exitcode.Error || !strings.Contains(err.Error(), "stall") {
			t.Errorf("rank %d ended with %v (%v)", rank, err, exitcode.Of(err))
		}
	}
}

// A rank that is stopped answers no roll call, and is named whoever lost it.
func TestAllReduceNamesASilentRank(t *testing.T) {
	var stopped sync.WaitGroup
	stopped.Add(1)
	others := make(chan struct{}, 3)
	_, errs := runRanks(t, 4, func(rank int, o *AllReduceOptions) {
		o.StallTimeout = 200 * time.Millisecond
		if rank != 2 {
			return
		}
		silent, err := AllReduceOptions{Rank: 2, WorldSize: 4, MasterPort: o.MasterPort}.withDefaults()
		if err != nil {
			t.Error(err)
		}
		*o = AllReduceOptions{Rank: -1} // the real one ends at once
		go func() {
			defer stopped.Done()
			g := &group{opt: silent, size: 4}
			defer g.close()
			l, err := listen(t.Context(), silent, 0)
			if err != nil {
				t.Error(err)
				return
			}
			defer l.Close() // the test is over
			control, err := dial(t.Context(), net.JoinHostPort("127.0.0.1", strconv.Itoa(silent.MasterPort)))
			if err != nil {
				t.Error(err)
				return
			}
			defer control.Close() // the test is over
			welcome, err := askToJoin(control, silent, portOf(t, l.Addr().String()))
			if err != nil {
				t.Error(err)
				return
			}
			if err := g.connect(t.Context(), l, welcome.Right); err != nil {
				t.Error(err)
			}
			for range 3 { // stopped until the others have ended
				<-others
			}
		}()
	}, func(rank int) {
		if rank != 2 {
			others <- struct{}{}
		}
	})
	stopped.Wait()
	for _, rank := range []int{0, 1, 3} {
		if err := errs[rank]; exitcode.Of(err) != exitcode.Error || !strings.Contains(err.Error(), "rank(s) 2 stalled") {
			t.Errorf("rank %d ended with %v (%v)", rank, err, exitcode.Of(err))
		}
	}
}

func TestAllReduceRefusesStrangers(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(o *AllReduceOptions)
		want   string // of rank 1
		root   string
	}{
		{"another run", func(o *AllReduceOptions) { o.Token = "another" }, "rank 1 was refused by rank 0 at 127.0.0.1:", "refused: rank 1 belongs to another run"},
		{"another world", func(o *AllReduceOptions) { o.WorldSize = 3 }, "rank 1 has a world size of 3 and rank 0 one of 2", "refused: rank 1 has a world size of 3"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, errs := runRanks(t, 2, func(rank int, o *AllReduceOptions) {
				o.Token, o.ConnectTimeout = "run-1", 300*time.Millisecond
				if rank == 1 {
					tc.change(o)
				}
			})
			if err := errs[1]; exitcode.Of(err) != exitcode.Error || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("rank 1 ended with %v", err)
			}
			if err := errs[0]; exitcode.Of(err) != exitcode.Error || !strings.Contains(err.Error(), "1 of 2 ranks met within 300ms; missing: 1; "+tc.root) {
				t.Errorf("rank 0 ended with %v", err)
			}
		})
	}
}

// Strangers at the port of rank 0 must not end a run whose ranks all come.
func TestAllReduceSurvivesStrangers(t *testing.T) {
	_, errs := runRanks(t, 2, func(rank int, o *AllReduceOptions) {
		if rank != 1 {
			return
		}
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(o.MasterPort))
		for _, words := range []string{"GET / HTTP/1.1\r\n\r\n", "\xff\xff\xff\xff", "\x00\x00\x00\x02{}", ""} {
			conn, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.WriteString(conn, words)
			defer conn.Close() // a stranger
		}
	})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func TestAllReduceRefusesARankThatComesTwice(t *testing.T) {
	first, second := make(chan struct{}), make(chan error, 1)
	_, errs := runRanks(t, 3, func(rank int, o *AllReduceOptions) {
		if rank != 2 {
			return
		}
		again := *o
		again.Rank = 1
		go func() { second <- AllReduce(t.Context(), again, io.Discard) }()
		select { // one of the two ends before rank 2 completes the group
		case <-first:
		case err := <-second:
			second <- err
		}
	}, func(rank int) {
		if rank == 1 {
			close(first)
		}
	})
	refused := 0
	for _, err := range []error{errs[1], <-second} {
		if err != nil && strings.Contains(err.Error(), "rank 1 has come twice") {
			refused++
		}
	}
	if refused != 1 || errs[0] != nil || errs[2] != nil {
		t.Errorf("%d were refused; rank 0 ended with %v, rank 2 with %v", refused, errs[0], errs[2])
	}
}

func TestAllReduceNamesATakenPort(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() // the test is over
	err = AllReduce(t.Context(), AllReduceOptions{WorldSize: 2, MasterPort: portOf(t, l.Addr().String())}, io.Discard)
	if exitcode.Of(err) != exitcode.Error || !strings.Contains(err.Error(), "address already in use") || !strings.Contains(err.Error(), "MASTER_PORT") {
		t.Fatal(err)
	}
}

func TestAllReduceGivesUpOnAnAbsentRoot(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := portOf(t, l.Addr().String())
	l.Close() // nobody listens here any more
	err = AllReduce(t.Context(), AllReduceOptions{Rank: 1, WorldSize: 2, MasterPort: port, ConnectTimeout: 100 * time.Millisecond}, io.Discard)
	if exitcode.Of(err) != exitcode.Error || !strings.Contains(err.Error(), "rank 1 cannot reach rank 0") {
		t.Fatal(err)
	}
}

// Ranks may come before rank 0 listens.
func TestAllReduceWaitsForALateRoot(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := portOf(t, l.Addr().String())
	l.Close() // rank 0 will listen here
	errs := make([]error, 2)
	var wg sync.WaitGroup
	for _, rank := range []int{1, 0} {
		wg.Go(func() {
			errs[rank] = AllReduce(t.Context(), AllReduceOptions{Rank: rank, WorldSize: 2, MasterPort: port, MaxBytes: 1024}, io.Discard)
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func TestAllReduceEndsWithItsContext(t *testing.T) {
	for _, where := range []string{"while meeting", "while measuring"} {
		t.Run(where, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			started := make(chan struct{})
			var once sync.Once
			opt := AllReduceOptions{
				WorldSize: 2, MasterPort: -1, Iterations: 1 << 20,
				tamper: func(int, []byte) { once.Do(func() { close(started) }) },
			}
			port := make(chan int, 1)
			opt.listening = func(address string) {
				port <- portOf(t, address)
				if where == "while meeting" {
					close(started)
				}
			}
			root, peer := make(chan error, 1), make(chan error, 1)
			go func() { root <- AllReduce(ctx, opt, io.Discard) }()
			p := <-port
			if where == "while measuring" {
				go func() {
					peer <- AllReduce(t.Context(), AllReduceOptions{Rank: 1, WorldSize: 2, MasterPort: p}, io.Discard)
				}()
			}
			<-started
			cancel()
			if err := <-root; !errors.Is(err, context.Canceled) {
				t.Errorf("rank 0 ended with %v", err)
			}
			if where == "while measuring" {
				if err := <-peer; err == nil || !strings.Contains(err.Error(), "rank 0 was told to stop") {
					t.Errorf("rank 1 ended with %v", err)
				}
			}
		})
	}
}

func BenchmarkAllReduce(b *testing.B) {
	for _, ranks := range []int{2, 4} {
		b.Run(fmt.Sprintf("%d ranks 4 MiB", ranks), func(b *testing.B) {
			b.SetBytes(4 << 20)
			port := make(chan string, 1)
			var wg sync.WaitGroup
			run := func(rank, p int, listening func(string)) {
				wg.Go(func() {
					err := AllReduce(b.Context(), AllReduceOptions{
						Rank: rank, WorldSize: ranks, MasterPort: p, MinBytes: 4 << 20, MaxBytes: 4 << 20,
						Iterations: b.N, WarmUp: -1, listening: listening,
					}, io.Discard)
					if err != nil {
						b.Error(err)
					}
				})
			}
			run(0, -1, func(address string) { port <- address })
			_, text, _ := net.SplitHostPort(<-port)
			p, _ := strconv.Atoi(text)
			for rank := 1; rank < ranks; rank++ {
				run(rank, p, nil)
			}
			wg.Wait()
		})
	}
}
