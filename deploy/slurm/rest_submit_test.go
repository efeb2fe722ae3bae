package slurm

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"assay/pkg/plan"
	"assay/templates"
)

// everything asks for all that a manifest can ask for.
func everything(requeue bool) plan.Attempt {
	return plan.Attempt{RunID: "r", Nonce: "0123456789abcdef", Number: 2, Dir: "/runs/r/jobs/j/2", Job: plan.Job{
		ID: "j", NNodes: 2, RanksPerNode: 4, WorldSize: 8, Slurm: &plan.Slurm{
			Partition: "gpu", Account: "acct", QOS: "high", Reservation: "resv", Nodelist: "node[1-2]", Exclude: "node3,node4",
			Constraint: "a100&ib", GPUsPerNode: 4, Time: "1-02:00:30", Mem: "16G", Exclusive: true, Requeue: &requeue,
			MailUser: "me@example.org", MailType: "END,TIME_LIMIT_90", OutputDir: "/logs 100%",
		},
	}}
}

func jobOf(t *testing.T, version int, a plan.Attempt) map[string]any {
	t.Helper()
	body, err := submission(version, a, "#!/bin/bash\n", []variable{{"LANG", "C"}, {"PATH", "/bin"}})
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	job, _ := got["job"].(map[string]any)
	if top, inside := got["script"], job["script"]; top != nil == (inside != nil) {
		t.Errorf("the script is there as %v and %v", top, inside)
	}
	delete(job, "script")
	delete(job, "comment")
	return job
}

func TestSubmissionFields(t *testing.T) {
	common := map[string]any{
		"name": "assay-0123456789ab-j-2", "current_working_directory": "/runs/r/jobs/j/2", "standard_output": "/logs 100%%/assay-0123456789ab-j-2-%j.out",
		"tasks": 8.0, "tasks_per_node": 4.0, "partition": "gpu", "account": "acct", "qos": "high", "reservation": "resv",
		"constraints": "a100&ib", "mail_user": "me@example.org",
	}
	for _, tt := range []struct {
		version int
		requeue bool
		more    map[string]any
	}{
		{38, true, map[string]any{"requeue": true}},
		{38, false, map[string]any{"no_requeue": true}},
		{44, true, map[string]any{"requeue": true}},
		{40, false, map[string]any{"requeue": false}},
	} {
		want := map[string]any{
			"nodes": 2.0, "nodelist": "node[1-2]", "exclude_nodes": "node3,node4", "gpus_per_node": "4", "time_limit": "1-02:00:30",
			"memory_per_node": "16G", "exclusive": "exclusive", "mail_type": "END,TIME_LIMIT_90", "open_mode": "append",
			"environment": map[string]any{"LANG": "C", "PATH": "/bin"},
		}
		if tt.version >= 40 {
			number := func(n float64) map[string]any { return map[string]any{"set": true, "infinite": false, "number": n} }
			want = map[string]any{
				"nodes": "2", "minimum_nodes": 2.0, "required_nodes": []any{"node[1-2]"}, "excluded_nodes": []any{"node3,node4"},
				"tres_per_node": "gres/gpu:4", "time_limit": number(26*60 + 1), "memory_per_node": number(16 << 10), "shared": []any{"none"},
				"mail_type": []any{"END", "TIME=90%"}, "open_mode": []any{"APPEND"}, "environment": []any{"LANG=C", "PATH=/bin"},
			}
		}
		for _, m := range []map[string]any{common, tt.more} {
			for k, v := range m {
				want[k] = v
			}
		}
		if diff := cmp.Diff(want, jobOf(t, tt.version, everything(tt.requeue))); diff != "" {
			t.Errorf("v0.0.%d:\n%s", tt.version, diff)
		}
	}
}

// An option that is not known is refused, never dropped.
func TestUnknownOptionIsRefused(t *testing.T) {
	for _, write := range []func(fields, directive) error{v38, newer} {
		if err := write(fields{}, directive{"hold", ""}); !errors.Is(err, errNoField) {
			t.Errorf("an option that is not known gave %v", err)
		}
	}
}

// The options of a template of the site's own would be lost.
func TestUnreadOptionsOfTheScript(t *testing.T) {
	a := everything(true)
	for script, fails := range map[string]bool{
		"#!/bin/bash\n# a\n#SBATCH --partition=gpu\n#SBATCH --exclusive\n\ntrue\n#SBATCH --gres=gpu:1\n": false,
		"#!/bin/bash\n#SBATCH --gres=gpu:1\ntrue\n":                                                      true, "#!/bin/bash\n\n#SBATCH -p gpu\n": true, "#!/bin/bash\n#SBATCH --hold\n": true,
	} {
		if _, err := submission(38, a, script, nil); (err != nil) != fails {
			t.Errorf("%q: %v", script, err)
		}
	}
	s := &scheduler{opt: Options{Templates: templates.Files(), Binary: "/bin/assay"}}
	script, err := s.Script(a)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := submission(38, a, string(script), nil); err != nil {
		t.Errorf("the script of one's own: %v", err)
	}
}

// Whatever a manifest says stands in the submission as it is, or is refused.
func TestSubmissionKeepsHostileValues(t *testing.T) {
	check := func(value string, version int) string {
		a := everything(true)
		s := a.Job.Slurm
		s.Partition, s.Account, s.QOS, s.Reservation, s.Constraint, s.MailUser = value, value, value, value, value, value
		s.Nodelist, s.Exclude, a.Dir = value, value, "/runs/"+value
		body, err := submission(version, a, value, []variable{{"HOME", value}})
		if err != nil {
			if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r == 0x7f }) {
				return ""
			}
			return err.Error()
		}
		job, _ := body["job"].(fields)
		for _, name := range []string{"partition", "account", "qos", "reservation", "constraints", "mail_user"} {
			if got, ok := job[name]; value != "" && (!ok || got != value) {
				return name + " is not as given"
			}
		}
		if job["current_working_directory"] != "/runs/"+value {
			return "the directory is not as given"
		}
		return ""
	}
	for _, value := range []string{`a "b" 'c'`, "$(touch /tmp/x)`id`", "--partition=nope", `\`, "naïve 漢字 🎉", "a\nb", "a\x00b", "#", "%j", "a,b;c", "{}[]<>&|"} {
		for _, version := range []int{38, 44} {
			if wrong := check(value, version); wrong != "" {
				t.Errorf("%q in v0.0.%d: %s", value, version, wrong)
			}
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.String().Draw(t, "value")
		if wrong := check(value, rapid.SampledFrom([]int{38, 44}).Draw(t, "version")); wrong != "" {
			t.Fatalf("%q: %s", value, wrong)
		}
	})
}

func TestTimeLimitField(t *testing.T) {
	for text, want := range map[string]int64{
		"5": 5, "90": 90, "0:30": 1, "10:00": 10, "1:00:00": 60, "1:00:01": 61, "2-0": 2880, "1-2": 26 * 60, "1-02:30": 26*60 + 30, "1-02:30:01": 26*60 + 31,
	} {
		job := fields{}
		if err := writeTime(job, text); err != nil || job["time_limit"] != (set{Set: true, Number: want}) {
			t.Errorf("%s: %v, %v, want %d minutes", text, job["time_limit"], err, want)
		}
	}
	for _, text := range []string{"UNLIMITED", "infinite", "-1", "0"} {
		job := fields{}
		if err := writeTime(job, text); err != nil || job["time_limit"] != (set{Set: true, Infinite: true}) {
			t.Errorf("%s: %v, %v", text, job["time_limit"], err)
		}
	}
	for _, text := range []string{"", "bad", "1:2:3:4", "1-2:3:4:5", "1-", "-5", "1.5", "99999999999999", "$(id)"} {
		if err := writeTime(fields{}, text); err == nil {
			t.Errorf("%q was taken as a time", text)
		}
	}
}

func TestMemoryField(t *testing.T) {
	for text, want := range map[string]int64{"100": 100, "100M": 100, "100MB": 100, "1G": 1024, "2T": 2 << 20, "2048K": 2, "1K": 1, "0": 0, "1g": 1024} {
		job := fields{}
		if err := writeMemory(job, text); err != nil || job["memory_per_node"] != (set{Set: true, Number: want}) {
			t.Errorf("%s: %v, %v, want %d", text, job["memory_per_node"], err, want)
		}
	}
	for _, text := range []string{"", "G", "1.5G", "1GG", "-1", "1P", "10 M"} {
		if err := writeMemory(fields{}, text); err == nil {
			t.Errorf("%q was taken as memory", text)
		}
	}
}

func TestMailTypesField(t *testing.T) {
	job := fields{}
	if err := mailTypes(job, "none,all, time_limit"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"BEGIN", "END", "FAIL", "REQUEUE", "STAGE_OUT", "INVALID_DEPENDENCY", "TIME=100%"}, job["mail_type"]); diff != "" {
		t.Error(diff)
	}
	if err := mailTypes(fields{}, "END,NOON"); err == nil {
		t.Error("an occasion that is none was taken")
	}
}
