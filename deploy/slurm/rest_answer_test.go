package slurm

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestNumber(t *testing.T) {
	for text, want := range map[string]number{
		`5`: {true, 5}, `"5"`: {true, 5}, `0`: {true, 0}, `-1`: {true, -1}, `1795983298`: {true, 1795983298}, `null`: {}, `""`: {},
		`{"set":true,"infinite":false,"number":5}`: {true, 5}, `{"set":false,"infinite":false,"number":5}`: {},
		`{"set":true,"infinite":true,"number":0}`: {}, `{"set":true,"number":1.0e3}`: {true, 1000},
	} {
		var got number
		if err := json.Unmarshal([]byte(text), &got); err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{`"five"`, `[]`, `true`, `{"set":true,"number":"x"}`, `1e99`} {
		var got number
		if err := json.Unmarshal([]byte(text), &got); err == nil {
			t.Errorf("%s was read as %+v", text, got)
		}
	}
}

func TestStateWords(t *testing.T) {
	for text, want := range map[string]string{
		`"RUNNING"`: "RUNNING", `["RUNNING"]`: "RUNNING", `["CANCELLED","COMPLETING"]`: "COMPLETING", `["PENDING","REQUEUED"]`: "REQUEUED",
		`["COMPLETING","FAILED"]`: "COMPLETING", `["RUNNING","SOMETHING_NEW"]`: "RUNNING", `[]`: "", `""`: "", `null`: "",
	} {
		var got stateWords
		if err := json.Unmarshal([]byte(text), &got); err != nil || got.word() != want {
			t.Errorf("%s: %q, %v", text, got.word(), err)
		}
	}
}

func TestExit(t *testing.T) {
	for text, want := range map[string]string{
		`768`: "3:0", `9`: "0:9", `0`: "0:0", `null`: "", `{}`: "",
		`{"status":"SUCCESS","return_code":0}`:                                                                    "0:0",
		`{"status":"SIGNALED","return_code":null,"signal":{"signal_id":9,"name":"Killed"}}`:                       "0:9",
		`{"status":["ERROR"],"return_code":{"set":true,"number":3},"signal":{"id":{"set":false,"number":0}}}`:     "3:0",
		`{"status":["SIGNALED"],"return_code":{"set":false,"number":0},"signal":{"id":{"set":true,"number":15}}}`: "0:15",
		`{"status":["PENDING"],"return_code":{"set":false,"number":0}}`:                                           "",
	} {
		var got exit
		if err := json.Unmarshal([]byte(text), &got); err != nil || got.text() != want {
			t.Errorf("%s: %q, %v, want %q", text, got.text(), err, want)
		}
	}
}

func TestNewerQueue(t *testing.T) {
	f := newFake(t, map[string]canned{"GET /slurm/v0.0.38/jobs": {0, "newer-jobs.json"}})
	got, err := f.client().queue(t.Context(), []string{"0"})
	if err != nil {
		t.Fatal(err)
	}
	const at = "1795983298"
	want := []row{
		{job: "18", name: "assay-0123456789ab-pass-1", user: "0", state: "COMPLETED", exit: "0:0", submit: at, nodes: "node[1-2]", reason: "None"},
		{job: "19", name: "assay-0123456789ab-rank1-1", user: "0", state: "FAILED", exit: "3:0", submit: at, nodes: "node[1-2]", reason: "NonZeroExitCode", restarts: 1},
		{job: "21", name: "assay-0123456789ab-signal-1", user: "0", state: "COMPLETING", exit: "0:9", submit: at, nodes: "node1", reason: "None"},
		{job: "24", name: "assay-0123456789ab-pending-1", user: "0", state: "REQUEUE_HOLD", submit: at, reason: "PartitionNodeLimit"},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(row{})); diff != "" {
		t.Error(diff)
	}
}

func TestChoose(t *testing.T) {
	for _, tt := range []struct {
		doc   string
		want  api
		fails bool
	}{
		{`{"paths":{"/slurm/v0.0.36/job/submit":{},"/slurm/v0.0.38/job/submit":{},"/slurmdb/v0.0.38/jobs":{}}}`, api{38, true, false}, false},
		{`{"paths":{"/slurm/v0.0.38/job/submit/":{},"/slurmdb/v0.0.38/jobs/":{}}}`, api{38, true, false}, false},
		{`{"paths":{"/slurm/v0.0.38/job/submit":{},"/slurm/v0.0.39/job/submit":{}}}`, api{38, false, false}, false},
		{`{"paths":{"/slurm/v0.0.38/job/submit":{},"/slurm/v0.0.40/job/submit":{},"/slurm/v0.0.99/job/submit":{},
		   "/slurmdb/v0.0.40/jobs/":{"get":{"parameters":[{"name":"users"},{"name":"show_duplicates"}]}}}}`, api{40, true, true}, false},
		{`{"paths":{"/slurm/v0.0.99/job/submit":{}}}`, api{}, true},
		{`{"paths":{"/slurm/v0.0.38/jobs":{}}}`, api{}, true},
		{`{}`, api{}, true},
	} {
		var d description
		if err := json.Unmarshal([]byte(tt.doc), &d); err != nil {
			t.Fatal(err)
		}
		got, err := d.choose()
		if (err != nil) != tt.fails || got != nil && *got != tt.want {
			t.Errorf("%s: %+v, %v", tt.doc, got, err)
		}
	}
	data, err := os.ReadFile(filepath.Join("testdata", "rest", "openapi.json"))
	if err != nil {
		t.Fatal(err)
	}
	var d description
	if err := json.Unmarshal(data, &d); err != nil {
		t.Fatal(err)
	}
	if got, err := d.choose(); err != nil || *got != (api{38, true, false}) {
		t.Errorf("22.05: %+v, %v", got, err)
	}
}

// Every version asks the accounting for every start of a job.
func TestEveryStartIsAskedFor(t *testing.T) {
	f := newFake(t, map[string]canned{"GET /slurmdb/v0.0.40/jobs": {0, "newer-db.json"}})
	r := f.client()
	r.api = &api{version: 40, history: true, duplicates: true}
	if _, err := r.history(t.Context(), []string{"19"}); err != nil {
		t.Fatal(err)
	}
	if q := f.of("GET /slurmdb/v0.0.40/jobs"); len(q) != 1 || q[0].query != "show_duplicates=true&step=19" {
		t.Errorf("asked %v", q)
	}
}

// Whatever a server answers is read or refused, and nothing panics.
func TestAnswersOfAnyShape(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.SampledFrom([]string{`null`, `5`, `"x"`, `[]`, `{}`, `["a"]`, `{"set":true}`, `-1`, `1e400`, `{"number":{}}`, `tru`}).Draw(t, "value")
		field := rapid.SampledFrom([]string{"job_id", "job_state", "exit_code", "submit_time", "restart_cnt", "state", "steps", "time"}).Draw(t, "field")
		text := []byte(`{"` + field + `":` + value + `}`)
		var live liveJob
		if json.Unmarshal(text, &live) == nil {
			live.row()
		}
		var past pastJob
		if json.Unmarshal(text, &past) == nil {
			past.rows(func(s string) string { return s }, nil)
		}
	})
}
