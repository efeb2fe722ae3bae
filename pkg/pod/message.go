package pod

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"assay/pkg/evidence"
	"assay/pkg/metric"
)

// messageVersion is the version of the form of a termination message.
const messageVersion = 1

// Message is what a rank says by the termination message of its container.
type Message struct {
	End     evidence.End
	Metrics evidence.Metrics
	Cut     []string // what did not fit, a phrase each
}

// wire is a message as it is written.
type wire struct {
	Version int               `json:"assay"`
	End     evidence.End      `json:"end"`
	Metrics *evidence.Metrics `json:"metrics,omitempty"`
	Cut     []string          `json:"cut,omitempty"`
}

// The sizes of texts that are shortened, in bytes of JSON.
const (
	longText    = 256
	shortText   = 64
	maxIdentity = 512 // of a text of the identity, which is never near that
	longSteps   = 512 // of the list of steps
	cutRoom     = 160 // for the phrases that say how many readings and problems are cut
)

// EncodeMessage gives the termination message of a rank: at most MaxMessage bytes
// of JSON. What does not fit is left out, the least important first, and Cut says
// so: lists of places, messages of steps, long texts, problems, steps, and then
// readings: those that are neither declared nor of a results line first, the last
// of them first. The identity, the outcome, the exit code and the signal always fit.
func EncodeMessage(end evidence.End, m evidence.Metrics, declared ...string) []byte {
	w := wire{Version: messageVersion, End: sane(end)}
	readings, problems := encodeAll(m.Readings), encodeAll(m.Problems)
	all := size(w) + readings.bytes + problems.bytes + metricsFrame
	for _, reduce := range []func(*evidence.End) string{dropLists, dropStepMessages, shortenTexts} {
		if all <= MaxMessage-cutRoom {
			break
		}
		w.cut(reduce(&w.End))
		all = size(w) + readings.bytes + problems.bytes + metricsFrame
	}
	if all-problems.bytes > MaxMessage-cutRoom && size(w.End.Steps) > longSteps {
		w.cut(dropSteps(&w.End))
	}
	if size(w) > MaxMessage-cutRoom {
		w.cut(bound(&w.End))
	}
	room := MaxMessage - cutRoom - size(w) - metricsFrame
	keepReadings, room := readings.fit(room, byImportance(m.Readings, declared))
	keepProblems, _ := problems.fit(room, inOrder(len(m.Problems)))
	w.Metrics = &evidence.Metrics{Version: m.Version, Readings: pick(m.Readings, keepReadings), Problems: pick(m.Problems, keepProblems)}
	w.cut(missing(len(w.Metrics.Readings), len(m.Readings), "readings"))
	w.cut(missing(len(w.Metrics.Problems), len(m.Problems), "problems"))
	if len(m.Readings)+len(m.Problems) == 0 && m.Version == 0 {
		w.Metrics = nil
	}
	return marshal(w)
}

// metricsFrame is more than the JSON around readings and problems takes.
const metricsFrame = 80

// DecodeMessage reads a termination message.
func DecodeMessage(data []byte) (Message, error) {
	var w wire
	if len(bytes.TrimSpace(data)) == 0 {
		return Message{}, errors.New("the termination message is empty")
	}
	var format struct {
		Version int `json:"assay"`
	}
	if err := json.Unmarshal(data, &format); err != nil {
		return Message{}, fmt.Errorf("the termination message is no record of a rank: %w", err)
	}
	if format.Version != messageVersion {
		return Message{}, fmt.Errorf("the termination message has format version %d, this assay knows %d", format.Version, messageVersion)
	}
	if err := json.Unmarshal(data, &w); err != nil {
		return Message{}, fmt.Errorf("the termination message cannot be read: %w", err)
	}
	if w.End.Version != evidence.MarkerVersion {
		return Message{}, fmt.Errorf("the end marker of the termination message has format version %d, this assay knows %d", w.End.Version, evidence.MarkerVersion)
	}
	m := Message{End: w.End, Cut: w.Cut}
	if w.Metrics != nil {
		m.Metrics = *w.Metrics
	}
	return m, nil
}

func (w *wire) cut(phrase string) {
	if phrase != "" {
		w.Cut = append(w.Cut, phrase)
	}
}

// missing says how many of a kind did not fit.
func missing(kept, all int, what string) string {
	if kept == all {
		return ""
	}
	return fmt.Sprintf("%d of %d %s", all-kept, all, what)
}

// marshal gives compact JSON, "" for what JSON cannot say.
func marshal(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if enc.Encode(v) != nil {
		return nil
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

func size(v any) int { return len(marshal(v)) }

// encoded holds the sizes of the elements of a list.
type encoded struct {
	sizes []int // of each with its comma; 0: JSON cannot say it
	bytes int   // of all
}

func encodeAll[T any](list []T) encoded {
	var e encoded
	for _, v := range list {
		n := size(v)
		if n > 0 {
			n++
		}
		e.sizes = append(e.sizes, n)
		e.bytes += n
	}
	return e
}

// fit chooses elements that fit into the room, in the order of their importance,
// and returns what room is left. What is too large leaves room for smaller ones.
func (e encoded) fit(room int, order []int) (keep []bool, left int) {
	keep = make([]bool, len(e.sizes))
	for _, i := range order {
		if n := e.sizes[i]; n > 0 && n <= room {
			keep[i] = true
			room -= n
		}
	}
	return keep, room
}

func pick[T any](list []T, keep []bool) []T {
	out := make([]T, 0, len(list))
	for i, v := range list {
		if keep[i] {
			out = append(out, v)
		}
	}
	return out
}

func inOrder(n int) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	return order
}

// byImportance lists readings, the most important first.
func byImportance(readings []metric.Reading, declared []string) []int {
	names := make(map[string]bool, len(declared))
	for _, name := range declared {
		names[name] = true
	}
	order := inOrder(len(readings))
	class := func(i int) int {
		r := readings[i]
		if names[r.Name] || r.Source == metric.SourcePerformance || r.Source == metric.SourceResults {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(order, func(a, b int) int { return class(a) - class(b) })
	return order
}

// sane makes an end marker what JSON can say.
func sane(end evidence.End) evidence.End {
	end.Steps = slices.Clone(end.Steps)
	end.ElapsedSeconds = finite(end.ElapsedSeconds)
	for i := range end.Steps {
		end.Steps[i].ElapsedSeconds = finite(end.Steps[i].ElapsedSeconds)
	}
	for _, at := range []*time.Time{&end.StartedAt, &end.FinishedAt} {
		if y := at.Year(); y < 0 || y > 9999 {
			*at = time.Time{}
		}
	}
	if end.Results != nil {
		copied := *end.Results
		end.Results = &copied
	}
	return end
}

func finite(f float64) float64 {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return 0
	}
	return f
}
