package podrank

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"assay/pkg/durable"
	"assay/pkg/environ"
	"assay/pkg/evidence"
	"assay/pkg/pod"
	"assay/pkg/regular"
	"assay/pkg/rundir"
)

const (
	maxMarker  = 16 << 20  // the largest marker or metrics.json that is read, in bytes
	maxMetrics = 256 << 20 // as above, of metrics.json
)

// handOver hands over what the rank left.
func (p *inPod) handOver() {
	dir := rundir.RankDir(p.attempt.Dir, p.rank)
	end, metrics, err := read(dir)
	if err != nil { // it was durable a moment ago
		p.tell(err)
		return
	}
	declared := p.attempt.Job.Expect.Declared()
	p.message(pod.EncodeMessage(end, metrics, declared...))
	if volume := environ.Get(p.o.Rank.Env, pod.ResultsVariable); volume != "" {
		if err := p.keep(dir, volume); err != nil {
			p.say("what the rank left could not be copied to the results volume: %v", err)
			// A shared end marker may have been read, and says the same for ever.
			if !p.shared {
				end.Lost = join(end.Lost, fmt.Sprintf("the copy on the results volume: %v", err))
				p.amend(dir, end)
				p.message(pod.EncodeMessage(end, metrics, declared...))
			}
		}
	}
	if p.shared {
		return
	}
	files, omitted := list(dir)
	if err := p.progress.patiently(func() error { return p.sender.Archive(files, omitted) }); err != nil {
		p.say("what the rank left could not be sent through the log of the pod: %v", err)
	}
}

// read reads what the rank said of its end.
func read(dir string) (end evidence.End, m evidence.Metrics, err error) {
	data, err := regular.ReadFile(filepath.Join(dir, rundir.EndFile), maxMarker)
	if err == nil {
		err = json.Unmarshal(data, &end)
	}
	if err != nil || !end.Metrics {
		return end, m, err
	}
	data, err = regular.ReadFile(filepath.Join(dir, rundir.MetricsFile), maxMetrics)
	if err == nil {
		err = json.Unmarshal(data, &m)
	}
	if err != nil { // the marker alone is more than nothing
		end.Lost = join(end.Lost, fmt.Sprintf("%s: %v", rundir.MetricsFile, err))
	}
	return end, m, nil
}

// amend writes the end marker again.
func (p *inPod) amend(dir string, end evidence.End) {
	path := filepath.Join(dir, rundir.EndFile)
	mode := fs.FileMode(0o600)
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	}
	if err := durable.WriteJSON(path, end, mode); err != nil {
		p.say("%v", err)
	}
}

// tell says in the termination message, for people, why there is no end marker.
func (p *inPod) tell(err error) {
	text := strings.ToValidUTF8(fmt.Sprintf("assay rank %d: error: %v", p.rank, err), "\uFFFD")
	p.message([]byte(text[:min(len(text), pod.MaxMessage)]))
}

// message writes the termination message. Its file is mounted: it can be written,
// not replaced.
func (p *inPod) message(text []byte) {
	f, err := os.OpenFile(p.o.TerminationLog, os.O_WRONLY|os.O_TRUNC, 0)
	if err == nil {
		_, err = f.Write(text)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		p.say("the termination message could not be written: %v", err)
	}
}

func join(have, more string) string {
	if have == "" {
		return more
	}
	return have + "; " + more
}
