package rank

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// Whatever the chunks, the lines that the scanner shows are those of the whole.
func TestScannerSeesEveryLine(t *testing.T) {
	piece := rapid.SampledFrom([]string{"a=1", "performance: 2 x", "\n", "\n", "noise", "=", "perf", "ormance:", "\r", "\x00", strings.Repeat("y", 1000), strings.Repeat("=", maxLine)})
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(piece, 0, 60).Draw(t, "pieces"), "")
		equals := rapid.Bool().Draw(t, "equals")
		var want, got []string
		for i, line := range strings.Split(text, "\n") {
			if len(line) <= maxLine && ((equals && strings.Contains(line, "=")) || strings.Contains(line, performanceTag)) {
				if i == strings.Count(text, "\n") {
					line += " (no end)"
				}
				want = append(want, fmt.Sprintf("out:%d %s", i+1, line))
			}
		}
		tags := []string{performanceTag}
		if equals {
			tags = append(tags, "=")
		}
		s := newScanner("out", tags, func(line []byte, place string) { got = append(got, place+" "+string(line)) })
		s.tail = func(line []byte, place string) { got = append(got, place+" "+string(line)+" (no end)") }
		for rest := []byte(text); len(rest) > 0; {
			n := min(rapid.IntRange(1, 5000).Draw(t, "chunk"), len(rest))
			s.feed(rest[:n])
			rest = rest[n:]
		}
		s.end()
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("(-want +got):\n%s", d)
		}
	})
}

// Lines with a tag and lines without one are the whole, in its order, whatever the
// chunks.
func TestScannerLeavesNothingOut(t *testing.T) {
	piece := rapid.SampledFrom([]string{"a=1", "X_SKIP", "\n", "\n", "noise", "_SK", "IP", "\r", strings.Repeat("y", 1000)})
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(piece, 0, 60).Draw(t, "pieces"), "")
		var got strings.Builder
		s := newScanner("out", []string{"=", "_SKIP"}, func(line []byte, _ string) { got.Write(append(line, '\n')) })
		s.plain = func(lines []byte) {
			if bytes.Contains(lines, []byte("=")) || bytes.Contains(lines, []byte("_SKIP")) {
				t.Fatalf("%q is not plain", lines)
			}
			got.Write(append(bytes.TrimSuffix(lines, []byte("\n")), '\n'))
		}
		for rest := []byte(text); len(rest) > 0; {
			n := min(rapid.IntRange(1, 200).Draw(t, "chunk"), len(rest))
			s.feed(slices.Clone(rest[:n]))
			rest = rest[n:]
		}
		s.end()
		blank := regexp.MustCompile(`\n+`)
		trim := func(s string) string { return strings.Trim(blank.ReplaceAllString(s, "\n"), "\n") }
		if d := cmp.Diff(trim(text), trim(got.String())); d != "" {
			t.Fatalf("(-want +got):\n%s", d)
		}
	})
}

// A capped log is the whole, or its head, the statement of the cut, and its tail.
func TestSinkKeepsHeadAndTail(t *testing.T) {
	dir := t.TempDir()
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		path := filepath.Join(dir, fmt.Sprint(n))
		limit := rapid.Int64Range(0, 200).Draw(t, "limit")
		chunks := rapid.SliceOf(rapid.SliceOfN(rapid.Byte(), 1, 100)).Draw(t, "chunks")
		s, err := newSink(path, 0o600, limit)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range chunks {
			s.write(c)
		}
		s.close()
		whole := bytes.Join(chunks, nil)
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if problem, lost := s.problem(); s.bytes != int64(len(whole)) || problem != "" || lost {
			t.Fatalf("counted %d of %d; %s", s.bytes, len(whole), problem)
		}
		if limit == 0 || int64(len(whole)) <= limit {
			if !bytes.Equal(got, whole) || s.dropped != 0 {
				t.Fatalf("kept %q of %q", got, whole)
			}
			return
		}
		head, tail := whole[:limit-limit/2], whole[int64(len(whole))-limit/2:]
		cut := fmt.Sprintf("[assay: %d bytes cut here]\n", int64(len(whole))-limit)
		if !bytes.HasSuffix(head, []byte("\n")) {
			cut = "\n" + cut
		}
		if want := string(head) + cut + string(tail); string(got) != want || s.dropped != int64(len(whole))-limit {
			t.Fatalf("kept %q, want %q", got, want)
		}
	})
}

// A scanner that panics costs the readings, not the log.
func TestScannerPanics(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stdout")
	o, err := newOutput(path, 0o600, 0)
	if err != nil {
		t.Fatal(err)
	}
	s := o.workload
	s.scan = newScanner("stdout", []string{"="}, func([]byte, string) { panic("bug") })
	s.after = func() {}
	o.start()
	for range 3 {
		if _, err := s.w.WriteString("a=1\n"); err != nil {
			t.Fatal(err)
		}
	}
	problem, _ := o.finish()
	if got, _ := os.ReadFile(path); string(got) != "a=1\na=1\na=1\n" {
		t.Errorf("kept %q", got)
	}
	if !strings.Contains(problem, "bug") {
		t.Errorf("the panic is not reported: %q", problem)
	}
}

func TestShare(t *testing.T) {
	devices := []string{"a", "b", "c", "d", "e"}
	for _, tt := range []struct {
		local, ranks int
		want         string
	}{{0, 1, "a b c d e"}, {0, 2, "a b"}, {1, 2, "c d"}, {4, 5, "e"}, {6, 8, "b"}, {9, 2, "d e"}} {
		if got := strings.Join(share(devices, tt.local, tt.ranks), " "); got != tt.want {
			t.Errorf("share(%d of %d) = %q, want %q", tt.local, tt.ranks, got, tt.want)
		}
	}
}

func BenchmarkScanner(b *testing.B) {
	for name, line := range map[string]string{
		"plain": "step 100 of 2000 loss 2.345 throughput 1234.5 tokens per second\n",
		"pairs": "step=100 loss=2.345 throughput=1234.5 tokens per second and more\n",
	} {
		b.Run(name, func(b *testing.B) {
			chunk := bytes.Repeat([]byte(line), chunkSize/len(line))
			s := newScanner("stdout", []string{performanceTag, "="}, func([]byte, string) {})
			b.SetBytes(int64(len(chunk)))
			for b.Loop() {
				s.feed(chunk)
			}
		})
	}
}
