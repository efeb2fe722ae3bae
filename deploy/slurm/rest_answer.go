package slurm

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// plainAnswer is an answer of which only the errors matter.
type plainAnswer struct {
	Errors []problem `json:"errors"`
}

func (a *plainAnswer) read(from io.Reader) error { return json.NewDecoder(from).Decode(a) }
func (a *plainAnswer) problems() []problem       { return a.Errors }

// submitted is the answer to a submission.
type submitted struct {
	plainAnswer
	ID number `json:"job_id"`
}

func (a *submitted) read(from io.Reader) error { return json.NewDecoder(from).Decode(a) }

// problems: a job that was accepted with complaints is submitted.
func (a *submitted) problems() []problem {
	if a.ID.set && a.ID.n > 0 {
		return nil
	}
	return a.Errors
}

// jobList is a list of jobs, of which there may be very many: they are handed on
// one by one.
type jobList[J any] struct {
	plainAnswer
	each func(J)
}

func (l *jobList[J]) read(from io.Reader) error {
	d := json.NewDecoder(from)
	if err := expect(d, '{'); err != nil {
		return err
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		switch key {
		case "jobs":
			err = l.jobs(d)
		case "errors":
			err = d.Decode(&l.Errors)
		default:
			var skipped json.RawMessage
			err = d.Decode(&skipped)
		}
		if err != nil {
			return fmt.Errorf("%v: %w", key, err)
		}
	}
	return expect(d, '}')
}

func (l *jobList[J]) jobs(d *json.Decoder) error {
	t, err := d.Token()
	if err != nil || t == nil {
		return err
	}
	if t != json.Delim('[') {
		return errors.New("it is no list")
	}
	for d.More() {
		var j J
		if err := d.Decode(&j); err != nil {
			return err
		}
		l.each(j)
	}
	return expect(d, ']')
}

func expect(d *json.Decoder, want json.Delim) error {
	t, err := d.Token()
	if err != nil {
		return err
	}
	if t != want {
		return fmt.Errorf("%v stands where %v was expected", t, want)
	}
	return nil
}

// number is a number as any version writes it: 5, "5", null, or
// {"set":true,"infinite":false,"number":5}.
type number struct {
	set bool
	n   int64
}

func (n *number) UnmarshalJSON(data []byte) error {
	*n = number{}
	var long struct {
		Set      bool        `json:"set"`
		Infinite bool        `json:"infinite"`
		Number   json.Number `json:"number"`
	}
	text := strings.Trim(string(data), `"`)
	if strings.HasPrefix(text, "{") {
		if err := json.Unmarshal(data, &long); err != nil {
			return err
		}
		if !long.Set || long.Infinite {
			return nil
		}
		text = long.Number.String()
	}
	if text == "null" || text == "" {
		return nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || f != f || f > 1<<62 || f < -(1<<62) {
		return fmt.Errorf("%.40q is no number", text)
	}
	n.set, n.n = true, int64(f)
	return nil
}

func (n number) text() string {
	if !n.set {
		return ""
	}
	return strconv.FormatInt(n.n, 10)
}

// stateWords is a state as any version writes it: one word, or a list of a state and
// what goes on besides.
type stateWords []string

func (w *stateWords) UnmarshalJSON(data []byte) error {
	*w = nil
	if strings.HasPrefix(string(data), "[") {
		return json.Unmarshal(data, (*[]string)(w))
	}
	var one string
	if err := json.Unmarshal(data, &one); err != nil {
		return err
	}
	if one != "" {
		*w = stateWords{one}
	}
	return nil
}

// word is the one word that SLURM's commands print of a state: what goes on
// besides hides the state.
func (w stateWords) word() string {
	for _, flag := range []string{
		"COMPLETING", "STAGE_OUT", "CONFIGURING", "RESIZING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT", "STOPPED",
		"REVOKED", "RESV_DEL_HOLD", "SIGNALING", "UPDATE_DB", "POWER_UP_NODE", "LAUNCH_FAILED", "RECONFIG_FAIL", "EXPEDITING",
	} {
		if slices.Contains(w, flag) {
			return flag
		}
	}
	if len(w) == 0 {
		return ""
	}
	return w[0]
}

// exit is how something ended: a raw wait status in the older versions of /slurm,
// else an object. The zero value is not known.
type exit struct {
	known        bool
	code, signal int64
}

func (e *exit) UnmarshalJSON(data []byte) error {
	*e = exit{}
	if !strings.HasPrefix(string(data), "{") {
		var raw number
		if err := raw.UnmarshalJSON(data); err != nil || !raw.set {
			return err
		}
		*e = exit{known: true, code: raw.n >> 8 & 0xff, signal: raw.n & 0x7f}
		return nil
	}
	var f struct {
		Code   number `json:"return_code"`
		Signal struct {
			ID    number `json:"id"`
			OldID number `json:"signal_id"`
		} `json:"signal"`
	}
	if err := json.Unmarshal(data, &f); err != nil {
		return err
	}
	signal := f.Signal.ID
	if !signal.set {
		signal = f.Signal.OldID
	}
	*e = exit{known: f.Code.set || signal.set, code: f.Code.n, signal: signal.n}
	return nil
}

// text is "code:signal", "" when it is not known.
func (e exit) text() string {
	if !e.known {
		return ""
	}
	return fmt.Sprintf("%d:%d", e.code, e.signal)
}

// failed is text, but "" for a clean exit: where those are not to be trusted.
func (e exit) failed() string {
	if e.code == 0 && e.signal == 0 {
		return ""
	}
	return e.text()
}

// liveJob is a job of /slurm: what slurmctld has in its memory.
type liveJob struct {
	ID       number     `json:"job_id"`
	Name     string     `json:"name"`
	UserID   number     `json:"user_id"`
	State    stateWords `json:"job_state"`
	Reason   string     `json:"state_reason"`
	Exit     exit       `json:"exit_code"`
	Restarts number     `json:"restart_cnt"`
	Submit   number     `json:"submit_time"`
	Nodes    string     `json:"nodes"`
	Comment  string     `json:"comment"`
}

func (j liveJob) row() row {
	return row{
		job: j.ID.text(), name: j.Name, user: j.UserID.text(), state: j.State.word(), exit: j.Exit.text(), submit: j.Submit.text(),
		nodes: noList(j.Nodes), reason: j.Reason, restarts: int(j.Restarts.n),
	}
}

// pastJob is a start of a job in /slurmdb: what the accounting knows.
type pastJob struct {
	ID    number `json:"job_id"`
	Name  string `json:"name"`
	User  string `json:"user"`
	State struct {
		Current stateWords `json:"current"`
		Reason  string     `json:"reason"`
	} `json:"state"`
	Exit  exit   `json:"exit_code"`
	Nodes string `json:"nodes"`
	Time  struct {
		Submission number `json:"submission"`
	} `json:"time"`
	Steps []pastStep `json:"steps"`
}

type pastStep struct {
	Step struct {
		ID stepID `json:"id"`
	} `json:"step"`
	State stateWords `json:"state"`
	Exit  exit       `json:"exit_code"`
	Nodes struct {
		Range string `json:"range"`
	} `json:"nodes"`
}

// stepID is the id of a step: 0, "batch", or "19.batch".
type stepID string

func (s *stepID) UnmarshalJSON(data []byte) error {
	text := strings.Trim(string(data), `"`)
	*s = stepID(text[strings.LastIndex(text, ".")+1:])
	return nil
}

// rows are the row of the start and those of its steps. uidOf gives the number of
// a user. A clean exit is not to be trusted; where slurmctld said how this start
// ended, that stands.
func (j pastJob) rows(uidOf func(string) string, ended map[string]ending) []row {
	own := row{
		job: j.ID.text(), name: j.Name, user: uidOf(j.User), state: j.State.Current.word(), exit: j.Exit.failed(),
		submit: j.Time.Submission.text(), nodes: noList(j.Nodes), reason: j.State.Reason,
	}
	if e, seen := ended[own.job]; seen && own.exit == "" && e.submit == own.submit {
		own.exit = e.exit
	}
	rows := []row{own}
	for _, s := range j.Steps {
		rows = append(rows, row{
			job: own.job, step: string(s.Step.ID), name: own.name, user: own.user, state: s.State.word(), exit: s.Exit.failed(),
			submit: own.submit, nodes: noList(s.Nodes.Range),
		})
	}
	return rows
}

// description is the OpenAPI document of a server, of which only the paths matter.
type description struct {
	Paths map[string]struct {
		Get struct {
			Parameters []struct {
				Name string `json:"name"`
			} `json:"parameters"`
		} `json:"get"`
	} `json:"paths"`
	plainAnswer
}

func (d *description) read(from io.Reader) error { return json.NewDecoder(from).Decode(d) }

// api is what a server speaks.
type api struct {
	version    int  // the N of v0.0.N
	history    bool // it has /slurmdb
	duplicates bool // /slurmdb must be told to give every start of a job
}

func (v *api) name() string               { return fmt.Sprintf("v0.0.%d", v.version) }
func (v *api) slurm(path string) string   { return "slurm/" + v.name() + "/" + path }
func (v *api) slurmdb(path string) string { return "slurmdb/" + v.name() + "/" + path }

// restVersions are the versions of the API that are spoken, the best first. Only
// v0.0.38 could be tested with a real server.
func restVersions() []int { return []int{44, 43, 42, 41, 40, 38} }

var versionInPath = regexp.MustCompile(`^/slurm/v0\.0\.(\d{1,4})/job/submit/?$`)

// choose picks the newest version that both sides speak.
func (d *description) choose() (*api, error) {
	var offered []int
	for path := range d.Paths {
		if m := versionInPath.FindStringSubmatch(path); m != nil {
			n, _ := strconv.Atoi(m[1])
			offered = append(offered, n)
		}
	}
	slices.Sort(offered)
	for _, n := range restVersions() {
		if !slices.Contains(offered, n) {
			continue
		}
		v := &api{version: n}
		for path, p := range d.Paths {
			if strings.TrimRight(path, "/") != "/"+v.slurmdb("jobs") {
				continue
			}
			v.history = true
			for _, q := range p.Get.Parameters {
				v.duplicates = v.duplicates || q.Name == "show_duplicates"
			}
		}
		return v, nil
	}
	if len(offered) == 0 {
		return nil, errors.New("its description (/openapi/v3) names no way to submit jobs")
	}
	return nil, fmt.Errorf("it speaks the versions v0.0.N with N of %v, and this assay %v", offered, restVersions())
}
