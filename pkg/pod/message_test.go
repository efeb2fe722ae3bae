package pod_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"assay/pkg/evidence"
	"assay/pkg/metric"
	"assay/pkg/pod"
)

func exampleEnd() evidence.End {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	return evidence.End{
		Version: evidence.MarkerVersion,
		Identity: evidence.Identity{
			RunID: "20260102-030405-abcdef", Nonce: strings.Repeat("a1", 16), ManifestDigest: "sha256:" + strings.Repeat("0", 64),
			Job: "triad", Attempt: 1, Rank: 3, WorldSize: 4,
		},
		Host: "assay-a1-triad-1-3-x7k2p", Node: "node-b", StartedAt: at, FinishedAt: at.Add(time.Minute), ElapsedSeconds: 60,
		Outcome: evidence.OutcomeSignaled, ExitCode: 137, Signal: "SIGKILL", Metrics: true,
		Results: &evidence.Results{Declared: "perf.csv", File: "perf.csv", Path: "/assay/attempt/ranks/3/work/perf.csv", Tried: []string{"/a", "/b"}},
		Steps:   []evidence.Step{{Kind: "pre", Path: "warm.sh", ExitCode: 0, ElapsedSeconds: 1.5}},
		Stdout:  evidence.Log{Bytes: 12345}, Stderr: evidence.Log{Bytes: 6, Dropped: 1},
	}
}

func reading(name string, value float64, source metric.Source) metric.Reading {
	return metric.Reading{Name: name, Value: value, Text: fmt.Sprint(value), Source: source}
}

// fataler is a test, or a property that is tested.
type fataler interface {
	Helper()
	Fatalf(string, ...any)
}

func decode(t fataler, data []byte) pod.Message {
	t.Helper()
	if len(data) > pod.MaxMessage {
		t.Fatalf("the message has %d bytes", len(data))
	}
	m, err := pod.DecodeMessage(data)
	if err != nil {
		t.Fatalf("%v: %s", err, data)
	}
	return m
}

func TestMessageKeepsWhatFits(t *testing.T) {
	metrics := evidence.Metrics{
		Version:  evidence.MarkerVersion,
		Readings: []metric.Reading{reading("triadGBs", 12.5, metric.SourcePerformance), {Name: "x", NotApplicable: true, Text: "n/a"}},
		Problems: []metric.Problem{{Code: metric.CodeNotANumber, Message: "<nan> & co"}},
	}
	m := decode(t, pod.EncodeMessage(exampleEnd(), metrics))
	if d := cmp.Diff(pod.Message{End: exampleEnd(), Metrics: metrics}, m); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	m = decode(t, pod.EncodeMessage(exampleEnd(), evidence.Metrics{}))
	if d := cmp.Diff(pod.Message{End: exampleEnd()}, m); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// What is cut is named, and the least important goes first.
func TestMessageCuts(t *testing.T) {
	many := func(n int) []metric.Reading {
		var out []metric.Reading
		for i := range n {
			out = append(out, reading(fmt.Sprintf("undeclared%04d", i), float64(i), metric.SourceKeyValue))
		}
		return append(out, reading("wanted", 1, metric.SourceKeyValue), reading("perf", 2, metric.SourcePerformance))
	}
	end := exampleEnd()
	end.Results.Nearby = []evidence.Nearby{{Path: strings.Repeat("p", 300)}}
	end.Steps[0].Message = strings.Repeat("m", 300)
	end.Message = strings.Repeat("ü", 3000)
	for name, tt := range map[string]struct {
		end      evidence.End
		metrics  evidence.Metrics
		cut      []string
		readings int // at least
	}{
		"texts": {end, evidence.Metrics{Readings: many(5)}, []string{
			"the places where results were looked for", "the messages of steps", "the rest of long texts",
		}, 7},
		"lists alone": {func() evidence.End {
			e := exampleEnd()
			e.Results.Tried = []string{strings.Repeat("p", 4000)}
			return e
		}(), evidence.Metrics{Readings: many(5)}, []string{"the places where results were looked for"}, 7},
		"problems": {exampleEnd(), evidence.Metrics{Readings: many(18), Problems: []metric.Problem{{Code: "A", Message: "short"}, {Code: "B", Message: strings.Repeat("x", 4000)}}}, []string{
			"the places where results were looked for", "1 of 2 problems",
		}, 20},
		"readings": {exampleEnd(), evidence.Metrics{Readings: many(10000)}, []string{
			"the places where results were looked for", "~ of 10002 readings",
		}, 25},
	} {
		t.Run(name, func(t *testing.T) {
			m := decode(t, pod.EncodeMessage(tt.end, tt.metrics, "wanted"))
			if len(m.Metrics.Readings) < tt.readings {
				t.Errorf("%d readings, want at least %d", len(m.Metrics.Readings), tt.readings)
			}
			if len(tt.cut) > 0 {
				last := &tt.cut[len(tt.cut)-1]
				*last = strings.Replace(*last, "~", fmt.Sprint(len(tt.metrics.Readings)-len(m.Metrics.Readings)), 1)
			}
			if d := cmp.Diff(tt.cut, m.Cut); d != "" {
				t.Errorf("cut (-want +got):\n%s", d)
			}
			n := len(m.Metrics.Readings)
			if d := cmp.Diff(many(0), m.Metrics.Readings[n-2:]); d != "" {
				t.Errorf("the important readings are not there:\n%s", d)
			}
			if m.End.Steps == nil {
				t.Error("the steps are gone, and they are short")
			}
		})
	}
}

// hostile gives texts of any length and content.
func hostile() *rapid.Generator[string] {
	unit := rapid.SampledFrom([]string{"a", "ü", "\x00", "\xff\xfe", "\"", "\\", "<", "\u2028", "𝛼", "\n", "\ufffd"})
	return rapid.Custom(func(t *rapid.T) string {
		n := rapid.SampledFrom([]int{0, 0, 1, 1, 5, 5, 60, 60, 60, 60, 60, 250, 250, 250, 250, 1000, 1000, 1000, 5000, 5000, 5000, 1 << 20}).Draw(t, "length")
		u := unit.Draw(t, "unit")
		return strings.Repeat(u, max(n/len(u), min(n, 1))) + unit.Draw(t, "last")
	})
}

// Whatever a rank says: the message fits, can be read, and has the identity and how
// the rank ended; and what it has is what the rank said.
func TestMessageAlwaysFits(t *testing.T) {
	id := rapid.StringMatching(`[a-zA-Z0-9._-]{1,128}`)
	number := rapid.SampledFrom([]float64{0, 1.5, math.NaN(), math.Inf(1), -math.MaxFloat64, 1e-300})
	when := rapid.SampledFrom([]time.Time{{}, time.Unix(1e9, 5).UTC(), time.Unix(1<<60, 0)})
	step := rapid.Custom(func(t *rapid.T) evidence.Step {
		return evidence.Step{Kind: "pre", Path: hostile().Draw(t, "path"), Message: hostile().Draw(t, "message"), ElapsedSeconds: number.Draw(t, "elapsed")}
	})
	read := rapid.Custom(func(t *rapid.T) metric.Reading {
		return metric.Reading{Name: hostile().Draw(t, "name"), Value: number.Draw(t, "value"), Source: metric.Source(hostile().Draw(t, "source"))}
	})
	rapid.Check(t, func(t *rapid.T) {
		end := evidence.End{
			Version: evidence.MarkerVersion,
			Identity: evidence.Identity{
				RunID: id.Draw(t, "run"), Nonce: id.Draw(t, "nonce"), ManifestDigest: id.Draw(t, "digest"), Job: id.Draw(t, "job"),
				Attempt: rapid.Int().Draw(t, "attempt"), Rank: rapid.Int().Draw(t, "rank"), WorldSize: rapid.Int().Draw(t, "size"),
			},
			Host: hostile().Draw(t, "host"), Node: hostile().Draw(t, "node"), Message: hostile().Draw(t, "message"), Lost: hostile().Draw(t, "lost"),
			Code: hostile().Draw(t, "code"), By: hostile().Draw(t, "by"),
			StartedAt: when.Draw(t, "started"), FinishedAt: when.Draw(t, "finished"), ElapsedSeconds: number.Draw(t, "elapsed"),
			Outcome: evidence.Outcome(rapid.IntRange(0, 5).Draw(t, "outcome")), ExitCode: rapid.Int().Draw(t, "exit"),
			Signal: rapid.SampledFrom([]string{"", "SIGKILL", "signal 64"}).Draw(t, "signal"),
			Steps:  rapid.SliceOfN(step, 0, 3).Draw(t, "steps"),
		}
		if rapid.Bool().Draw(t, "results") {
			end.Results = &evidence.Results{
				Declared: hostile().Draw(t, "declared"), File: hostile().Draw(t, "file"), Path: hostile().Draw(t, "path"),
				Tried: rapid.SliceOfN(hostile(), 0, 3).Draw(t, "tried"),
			}
		}
		readings := rapid.SliceOfN(read, 0, 4).Draw(t, "readings")
		for range rapid.SampledFrom([]int{0, 0, 10, 3000}).Draw(t, "more") {
			readings = append(readings, reading(fmt.Sprint("r", len(readings)), 1, metric.SourceKeyValue))
		}
		metrics := evidence.Metrics{Version: 1, Readings: readings, Problems: []metric.Problem{{Code: "X", Message: hostile().Draw(t, "problem")}}}
		m := decode(t, pod.EncodeMessage(end, metrics))
		if m.End.Identity != end.Identity || m.End.Outcome != end.Outcome || m.End.ExitCode != end.ExitCode || m.End.Signal != end.Signal {
			t.Fatalf("got %+v, want the identity and the end of %+v", m.End, end)
		}
		said := map[string]bool{}
		for _, r := range readings { // JSON says it its way
			var read metric.Reading
			text, _ := json.Marshal(r)
			_ = json.Unmarshal(text, &read)
			text, _ = json.Marshal(read)
			said[string(text)] = true
		}
		for _, r := range m.Metrics.Readings {
			if text, _ := json.Marshal(r); !said[string(text)] {
				t.Fatalf("nobody said %s", text)
			}
		}
		cut := len(readings) - len(m.Metrics.Readings)
		if named := strings.Contains(strings.Join(m.Cut, "\n"), fmt.Sprintf("%d of %d readings", cut, len(readings))); named != (cut > 0) {
			t.Fatalf("%d readings are cut; said: %q", cut, m.Cut)
		}
		if end.Results != nil && m.End.Results != nil && m.End.Results.File != strings.ToValidUTF8(end.Results.File, "\uFFFD") && utf8.ValidString(end.Results.File) {
			t.Fatalf("the name of the results file is another: %q, want %q", m.End.Results.File, end.Results.File)
		}
	})
}

// Not even an identity that no run has makes the message too long.
func TestMessageWithAHostileIdentity(t *testing.T) {
	end := exampleEnd()
	end.RunID, end.Job, end.Nonce, end.ManifestDigest = strings.Repeat("\x00", 9000), strings.Repeat("j", 9000), strings.Repeat("n", 9000), strings.Repeat("ü", 9000)
	if m := decode(t, pod.EncodeMessage(end, evidence.Metrics{})); m.End.ExitCode != 137 {
		t.Errorf("%+v", m)
	}
}

func TestDecodeMessageRefuses(t *testing.T) {
	whole := string(pod.EncodeMessage(exampleEnd(), evidence.Metrics{}))
	for text, want := range map[string]string{
		"":                       "is empty",
		" \n":                    "is empty",
		"assay: error: no space": "no record of a rank",
		"null":                   "format version 0",
		whole[:len(whole)-5]:     "no record of a rank",
		strings.Replace(whole, `{"assay":1`, `{"assay":2`, 1):                   "format version 2, this assay knows 1",
		strings.Replace(whole, `"end":{"version":1`, `"end":{"version":7`, 1):   "the end marker of the termination message has format version 7",
		strings.Replace(whole, `"outcome":"signaled"`, `"outcome":"vanish"`, 1): "cannot be read",
	} {
		if _, err := pod.DecodeMessage([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: error %v, want %q", text, err, want)
		}
	}
	_, err := pod.DecodeMessage([]byte("\n" + whole + "\n"))
	if d := cmp.Diff(nil, err, cmpopts.EquateErrors()); d != "" {
		t.Error(d)
	}
}
