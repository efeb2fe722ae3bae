// Package evidence holds what is known about a job: the records its ranks left,
// what the scheduler was seen to say, and what was measured. It is plain data,
// and the only thing a verdict is made of.
package evidence

import (
	"reflect"
	"slices"
	"time"

	"assay/pkg/metric"
)

// MarkerVersion is the version of the begin and end marker format.
const MarkerVersion = 1

// Identity ties a marker to one rank of one attempt of one job of one run. A
// marker counts only if every field is the expected one.
type Identity struct {
	RunID          string `json:"run_id"`
	Nonce          string `json:"nonce"`
	ManifestDigest string `json:"manifest_digest"`
	Job            string `json:"job"`
	Attempt        int    `json:"attempt"`
	Rank           int    `json:"rank"`
	WorldSize      int    `json:"world_size"`
}

// Begin is a rank's record that it began, written before its workload starts.
type Begin struct {
	Version int `json:"version"`
	Identity
	Host      string    `json:"host"`
	Node      string    `json:"node"` // the scheduler's name of the node; the host where there is none
	PID       int       `json:"pid"`  // of the wrapper
	StartedAt time.Time `json:"started_at"`
	By        string    `json:"by,omitempty"` // who wrote this for a rank that writes elsewhere: the target's name
}

// Outcome says how a rank's workload ended.
type Outcome int

// The outcomes. The zero value is Unknown.
const (
	OutcomeUnknown  Outcome = iota
	OutcomeExited           // by itself, with ExitCode
	OutcomeSignaled         // by a signal that the wrapper did not send
	OutcomeTimedOut         // ended by the wrapper at the time limit
	OutcomeStopped          // ended by the wrapper because it was told to stop (TERM or INT)
	OutcomeRefused          // the workload was never started; Code and Message say why
	OutcomeReleased         // ended by the wrapper because the client, for whom it was the server, had ended
)

// End is a rank's record of how it ended. It repeats what Begin said, so that
// one file is enough to judge a rank that ended.
type End struct {
	Version int `json:"version"`
	Identity
	Host           string    `json:"host"`
	Node           string    `json:"node"`
	StartedAt      time.Time `json:"started_at"`
	FinishedAt     time.Time `json:"finished_at"`
	ElapsedSeconds float64   `json:"elapsed_seconds"` // by the rank's own monotonic clock
	Outcome        Outcome   `json:"outcome"`
	ExitCode       int       `json:"exit_code"`               // what the wrapper exits with; 128+n for a signal
	Signal         string    `json:"signal,omitempty"`        // e.g. "SIGKILL"
	Code           string    `json:"code,omitempty"`          // a reason code when refused (ENV_FILE, PRE_SCRIPT, LAUNCH_REFUSED), or when stopped by somebody outside of the run (CANCELLED)
	Message        string    `json:"message,omitempty"`       // one sentence for people
	Skip           string    `json:"skip,omitempty"`          // the line of output that declares that it does not apply here, under the acceptance contract
	Said           string    `json:"said,omitempty"`          // the last line of output that is no metric, under the acceptance contract
	QuietSeconds   float64   `json:"quiet_seconds,omitempty"` // how long nothing had been written when it was ended at the time limit
	Steps          []Step    `json:"steps,omitempty"`         // pre- and post-scripts in the order they ran
	Results        *Results  `json:"results,omitempty"`       // present when the card declares multiple_results, or nothing was measured and a file looks like it
	Metrics        bool      `json:"metrics,omitempty"`       // metrics.json lies beside this file
	Lost           string    `json:"lost,omitempty"`          // what of the evidence could not be kept, and why
	By             string    `json:"by,omitempty"`            // who wrote this for a rank that could not: the target's name
	Stdout         Log       `json:"stdout"`
	Stderr         Log       `json:"stderr"`
}

// Step is one pre- or post-script.
type Step struct {
	Kind           string  `json:"kind"` // "pre" or "post"
	Path           string  `json:"path"`
	ExitCode       int     `json:"exit_code"`
	Message        string  `json:"message,omitempty"`
	ElapsedSeconds float64 `json:"elapsed_seconds"`
}

// Log says how much a stream wrote and how much of it was kept.
type Log struct {
	Bytes   int64 `json:"bytes"`             // written by the workload
	Dropped int64 `json:"dropped,omitempty"` // bytes cut from the middle because of the size cap
}

// Results says what became of the declared results CSV of a rank.
type Results struct {
	Declared string   `json:"declared"`          // multiple_results as the card has it; may be empty
	File     string   `json:"file,omitempty"`    // name of the copy in the rank's results directory, when found
	Path     string   `json:"path,omitempty"`    // where it was found
	Tried    []string `json:"tried,omitempty"`   // paths looked at, in order
	Stale    []string `json:"stale,omitempty"`   // candidates that hold nothing new since the workload began
	Refused  []string `json:"refused,omitempty"` // candidates that may be another's, each with the reason
	Nearby   []Nearby `json:"nearby,omitempty"`  // files beside it that have the shape of results
}

// Nearby is a file that looks like results but is not the declared one.
type Nearby struct {
	Path    string   `json:"path"` // as it would be declared
	Columns []string `json:"columns"`
}

// Metrics is the content of a rank's metrics.json: what the wrapper picked up
// while the output passed, and what the workload left in its own metrics.json.
type Metrics struct {
	Version  int              `json:"version"`
	Readings []metric.Reading `json:"readings"`
	Problems []metric.Problem `json:"problems,omitempty"`
}

// RankState is what is known of a rank.
type RankState int

// The states of a rank. The zero value is Unknown: nothing has been looked at.
const (
	RankUnknown RankState = iota
	RankNotStarted
	RankRunning
	RankEnded
	RankLost // it began, nothing runs any more, and there is no end marker
)

// Rank is the evidence of one rank.
type Rank struct {
	Rank           int
	Host, Node     string
	State          RankState
	Outcome        Outcome
	ExitCode       int
	Signal         string
	Code, Message  string
	Skip, Said     string // as in End
	QuietSeconds   float64
	ElapsedSeconds float64
	StartedAt      time.Time // zero when it did not begin
	FinishedAt     time.Time // zero when it did not end
	Steps          []Step
	Results        *Results
	Readings       []metric.Reading
	Problems       []metric.Problem // readings that are none, unusable results files
	Stale          string           // why a marker that was found does not count
	Unreadable     string           // why a marker that was found could not be read
	Lost           string           // what of its evidence it could not keep, and why
}

// Phase is a target's word on a job, reduced to what every target can say.
type Phase int

// The phases. The zero value is Unknown: the target could not be asked, or gave
// no answer.
const (
	PhaseUnknown Phase = iota
	PhasePending
	PhaseRunning
	PhaseEnded
	// PhaseEnding: the job is over, and what its ranks left is still awaited.
	PhaseEnding
	// PhaseGone: the target was asked and has no such job any more, and cannot say
	// how it ended. Nothing can be concluded from that about a rank.
	PhaseGone
)

// Over says whether nothing of the job runs any more and nothing more is awaited.
func (p Phase) Over() bool { return p == PhaseEnded || p == PhaseGone }

// Observation is one answer of a target about one job.
type Observation struct {
	Source string `json:"source"`           // what was asked: "local", "squeue", "sacct" …
	Phase  Phase  `json:"phase"`            //
	Word   string `json:"word,omitempty"`   // the target's own word: "RUNNING", "TIMEOUT" …
	Bad    bool   `json:"bad,omitempty"`    // the word stands for a failure (TIMEOUT, NODE_FAIL …)
	Detail string `json:"detail,omitempty"` // the target's own explanation
	// Away says of a job that waits that nodes which it has to run on take no jobs: they
	// are down or drained.
	Away bool `json:"away,omitempty"`
	// Ranks is what the target knows of single ranks that may have left no record:
	// that their wrapper could not keep it. By rank; mostly empty.
	Ranks map[int]string `json:"ranks,omitempty"`
	// NotLaunched says why the job ended before any rank could begin, when the
	// target knows that it was for no fault of a rank: it could not be started on
	// its nodes.
	NotLaunched string `json:"not_launched,omitempty"`
	// NotLaunchedCode is the reason code of that; empty: LAUNCH_REFUSED.
	NotLaunchedCode string `json:"not_launched_code,omitempty"`
	// Restarts is how often the target started the job again; the rest of the
	// observation is about the newest start. Earlier is how the others ended.
	Restarts int       `json:"restarts,omitempty"`
	Earlier  []Earlier `json:"earlier,omitempty"`
	JobID    string    `json:"job_id,omitempty"` // the target's own, for people
	Nodes    string    `json:"nodes,omitempty"`  // as the target writes them
	At       time.Time `json:"at"`               // when it was seen, by the observer's clock
}

// Earlier is the end of a start of a job that the target then started again.
type Earlier struct {
	Word  string `json:"word"` // "NODE_FAIL", "PREEMPTED", "REQUEUED" …
	Nodes string `json:"nodes,omitempty"`
	// Rank is set where the target started a single rank again and left the others
	// alone. That is no restart of the job.
	Rank *int `json:"rank,omitempty"`
}

// Same says whether two observations say the same, whenever that was.
func (o Observation) Same(p Observation) bool {
	o.At, p.At = time.Time{}, time.Time{}
	return reflect.DeepEqual(o, p)
}

// Note returns what the target knows of a rank, "" when it knows nothing.
func (o *Observation) Note(rank int) string {
	if o == nil {
		return ""
	}
	return o.Ranks[rank]
}

// Launch says whether the job was handed to its target.
type Launch struct {
	State  LaunchState `json:"state"`
	Code   string      `json:"code,omitempty"`   // a reason code when refused: LAUNCH_REFUSED, IMAGE, …
	Detail string      `json:"detail,omitempty"` // the target's own words
}

// LaunchState is how far the submission of a job got.
type LaunchState int

// The launch states. The zero value is Unknown.
const (
	LaunchUnknown   LaunchState = iota
	LaunchPlanned               // in the ledger, not yet submitted
	LaunchIntent                // about to be submitted, no answer yet
	LaunchSubmitted             // the target gave a handle
	LaunchRefused               // the target said no
	LaunchDropped               // never submitted: the run was cancelled first
)

// Cancel records that a person asked for the end of the run.
type Cancel struct {
	By string    `json:"by"` // e.g. "SIGINT", "assay cancel"
	At time.Time `json:"at"`
	// Jobs are the ids of those that had no verdict then; what had one keeps it.
	Jobs []string `json:"jobs"`
	// Attempts are the newest attempts at them then, by job: it is about these.
	Attempts map[string]int `json:"attempts,omitempty"`
	// Until are the newest attempts when the request was lifted, by job, since a person
	// asked for what had not been judged; nil while it stands.
	Until map[string]int `json:"until,omitempty"`
}

// Cover has the request be about an attempt at a job, and those after it.
func (c *Cancel) Cover(job string, attempt int) {
	if c.Attempts == nil {
		c.Attempts = map[string]int{}
	}
	c.Jobs, c.Attempts[job] = append(c.Jobs, job), attempt
}

// Covers says whether an attempt at a job fell under the request.
func (c Cancel) Covers(job string, attempt int) bool {
	if !slices.Contains(c.Jobs, job) || attempt < c.Attempts[job] {
		return false
	}
	return c.Until == nil || attempt <= c.Until[job]
}

// Evidence is all that is known about one attempt of one job.
type Evidence struct {
	Job       string
	Attempt   int
	WorldSize int
	Launch    Launch
	Cancel    *Cancel
	// Scheduler is the newest observation that said something; nil when there is
	// none, which is never a state.
	Scheduler *Observation
	Ranks     []Rank // by rank, WorldSize of them
}
