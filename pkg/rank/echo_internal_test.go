package rank

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// slowWriter takes its time for every piece, and writes less than asked for.
type slowWriter struct {
	bytes.Buffer
	pause time.Duration
}

func (s *slowWriter) Write(p []byte) (int, error) {
	time.Sleep(s.pause)
	return s.Buffer.Write(p)
}

func TestEchoLosesNothingToASlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := &slowWriter{pause: 3 * time.Second}
		e := newEcho(to, "stdout")
		var want bytes.Buffer
		for range 20 {
			chunk := bytes.Repeat([]byte("0123456789abcde\n"), 16<<10/16)
			want.Write(chunk)
			e.add(chunk)
			e.throttle()
		}
		defer e.hurry()()
		if problem := e.finish(); problem != "" || !bytes.Equal(to.Bytes(), want.Bytes()) {
			t.Errorf("%q; got %d bytes, want %d", problem, to.Len(), want.Len())
		}
	})
}

func TestEchoMakesTheWorkloadWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		e := newEcho(w, "stdout")
		e.add(make([]byte, echoRoom+2*echoPiece))
		passed := make(chan struct{})
		go func() { e.throttle(); close(passed) }()
		synctest.Wait()
		select {
		case <-passed:
			t.Error("throttle did not wait for the reader")
		default:
		}
		go func() { _, _ = io.Copy(io.Discard, r) }()
		<-passed
		if problem := e.finish(); problem != "" {
			t.Error(problem)
		}
		_ = w.Close()
	})
}

// A reader that does not read cannot hold up the end, and costs the log nothing.
func TestEchoGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		e := newEcho(w, "stdout")
		e.add(make([]byte, 4*echoRoom))
		throttled := make(chan struct{})
		go func() { e.throttle(); close(throttled) }()
		began := time.Now()
		stop := e.hurry()
		<-throttled
		if waited := time.Since(began); waited != 0 {
			t.Errorf("the log waited %v for the reader", waited)
		}
		if problem := e.finish(); !strings.Contains(problem, "stdout was not passed on whole: nobody read it for 5s") {
			t.Errorf("problem %q", problem)
		}
		if problem := e.finish(); problem != "" {
			t.Errorf("told twice: %q", problem)
		}
		stop()
		_ = r.Close() // ends the write that hangs
	})
}

type failing struct{ panics bool }

func (f failing) Write([]byte) (int, error) {
	if f.panics {
		panic("oh")
	}
	return 0, errors.New("broken pipe")
}

func TestEchoSurvivesItsWriter(t *testing.T) {
	for _, panics := range []bool{false, true} {
		e := newEcho(failing{panics}, "stderr")
		for range 100 {
			e.add(make([]byte, echoRoom))
			e.throttle()
		}
		if problem := e.finish(); !strings.Contains(problem, "stderr was not passed on whole") {
			t.Errorf("problem %q", problem)
		}
	}
}

// Whatever the chunks, the reader gets what the log has.
func TestEchoIsTheLog(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		f, err := os.CreateTemp(dir, "log")
		if err != nil {
			t.Fatal(err)
		}
		_ = f.Close()
		_ = os.Remove(f.Name())
		s, err := newSink(f.Name(), 0o600, 0)
		if err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		s.echo = newEcho(&got, "log")
		for _, chunk := range rapid.SliceOf(rapid.SliceOfN(rapid.Byte(), 1, 9000)).Draw(t, "chunks") {
			if rapid.Bool().Draw(t, "label") {
				s.begin(rapid.SampledFrom([]string{"a script", workloadLabel}).Draw(t, "who"))
			}
			s.write(chunk)
		}
		s.close()
		if problem := s.echo.finish(); problem != "" {
			t.Fatal(problem)
		}
		if want, err := os.ReadFile(f.Name()); err != nil || !bytes.Equal(got.Bytes(), want) {
			t.Fatalf("got %q, the log has %q, %v", got.Bytes(), want, err)
		}
	})
}
