package progress

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"assay/pkg/evidence"
	"assay/pkg/phrase"
	"assay/pkg/regular"
	"assay/pkg/run"
	"assay/pkg/rundir"
)

// jobLine is what is shown of one active job.
type jobLine struct {
	id     string
	dir    string // attempt directory
	world  int
	since  time.Time
	queued bool      // it waits in a queue of the target
	state  string    // what the target says of a job that is queued
	looked time.Time // when the markers were counted last
	begun  []bool
	ended  []bool
	nBegun int
	nEnded int
	tails  []*tail
}

func newJobLine(e run.Event) *jobLine {
	n := e.Job.WorldSize
	j := &jobLine{id: e.Job.ID, dir: e.Dir, world: n, since: time.Now(), queued: e.Queued, begun: make([]bool, n), ended: make([]bool, n)}
	for rank := range n {
		for _, stream := range []string{rundir.StdoutFile, rundir.StderrFile} {
			label := e.Job.ID
			if n > 1 {
				label = fmt.Sprintf("%s %d", e.Job.ID, rank)
			}
			j.tails = append(j.tails, &tail{label: label, path: filepath.Join(rundir.RankDir(e.Dir, rank), stream)})
		}
	}
	return j
}

// maxLook is the longest time between two looks at the markers.
const maxLook = 2 * time.Second

// text is the live line of the job.
func (j *jobLine) text(now time.Time) string {
	// What costs the more the more ranks there are is done the less often the longer
	// the job runs.
	if now.Sub(j.looked) >= min(now.Sub(j.since)/50, maxLook) {
		j.look()
		j.looked = now
	}
	state := "starting"
	switch {
	case j.queued && j.nBegun == 0 && j.state != "":
		state = j.state
	case j.nEnded == j.world:
		state = "ending"
	case j.nBegun > 0:
		state = "running"
	}
	line := fmt.Sprintf("%s: %s %s, %d/%d ranks begun, %d ended", j.id, state, phrase.Seconds(now.Sub(j.since).Seconds()), j.nBegun, j.world, j.nEnded)
	if m := j.lastMetric(); m != "" {
		line += ", " + m
	}
	return phrase.Line(line)
}

// look counts the markers. A marker that was seen once is not looked for again.
func (j *jobLine) look() {
	for rank := range j.world {
		dir := rundir.RankDir(j.dir, rank)
		if !j.begun[rank] && exists(filepath.Join(dir, rundir.BeginFile)) {
			j.begun[rank] = true
			j.nBegun++
		}
		if j.begun[rank] && !j.ended[rank] && exists(filepath.Join(dir, rundir.EndFile)) {
			j.ended[rank] = true
			j.nEnded++
		}
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// maxMetrics is the largest metrics.json that is looked at, in bytes.
const maxMetrics = 16 << 20

// lastMetric is the newest reading of rank 0, or "" when there is none yet.
func (j *jobLine) lastMetric() string {
	data, err := regular.ReadFile(filepath.Join(rundir.RankDir(j.dir, 0), rundir.MetricsFile), maxMetrics)
	if err != nil {
		return ""
	}
	var m evidence.Metrics
	if json.Unmarshal(data, &m) != nil || len(m.Readings) == 0 {
		return ""
	}
	r := m.Readings[len(m.Readings)-1]
	return r.Name + " " + r.Text
}
