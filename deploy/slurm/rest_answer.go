package slurm

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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

// liveJob is a job of /slurm: what slurmctld has in its memory.
type liveJob struct {
	ID       number     `json:"job_id"`
	Name     string     `json:"name"`
	UserID   number     `json:"user_id"`
	State    stateWords `json:"job_state"`
	Reason   string     `json:"state_reason"`
	Details  string     `json:"state_description"` // the reason in full, or empty
	Exit     exit       `json:"exit_code"`
	Restarts number     `json:"restart_cnt"`
	Submit   number     `json:"submit_time"`
	Nodes    string     `json:"nodes"`
	Comment  string     `json:"comment"`
}

func (j liveJob) row() row {
	return row{
		job: j.ID.text(), name: j.Name, user: j.UserID.text(), state: j.State.word(), exit: j.Exit.text(), submit: j.Submit.text(),
		nodes: noList(j.Nodes), reason: cmp.Or(j.Details, j.Reason), restarts: int(j.Restarts.n),
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
