package rank_test

import (
	"io"
	"os/exec"
	"testing"
)

// BenchmarkTrue is a whole rank that runs `true`, fsyncs included; compare with
// BenchmarkBareTrue, which starts the test binary for nothing.
func BenchmarkTrue(b *testing.B) {
	for b.Loop() {
		f := newFixture(b, "")
		f.attempt.Job.Program.Command = []string{"true"}
		if err := f.command().Run(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkBareTrue starts the wrapper's binary with a job that it refuses.
func BenchmarkBareTrue(b *testing.B) {
	for b.Loop() {
		f := newFixture(b, "")
		f.call.Rank = 7
		cmd := f.command()
		if exitCode(b, cmd.Run()) != 4 {
			b.Fatal("not refused")
		}
		if err := exec.Command("true").Run(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkOutput streams 256 MB of lines through the wrapper.
func BenchmarkOutput(b *testing.B) {
	b.SetBytes(256 << 20)
	for b.Loop() {
		f := newFixture(b, "yes 'step 100 of 2000 loss 2.345 throughput 1234.5 tokens per second' | head -c 268435456")
		cmd := f.command()
		cmd.Stderr = io.Discard
		if err := cmd.Run(); err != nil {
			b.Fatal(err)
		}
	}
}
