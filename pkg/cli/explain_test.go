package cli

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay/pkg/exitcode"
	"assay/pkg/report"
)

func TestChooseJobs(t *testing.T) {
	job := func(key string, nodes ...string) report.Job {
		return report.Job{Name: "card", Key: key, Test: "test-" + key, ID: strings.Join(append([]string{key}, nodes...), "."), Nodes: nodes}
	}
	based := job("based", "n1")
	based.Baseline, based.Optional = true, true
	rep := report.Run{Jobs: []report.Job{
		job("passskip", "n1"), job("passskip", "n2"), job("net", "n1", "n2"), job("net", "n2", "n3"), based, job("solo"),
	}}
	for name, want := range map[string]string{
		"passskip.n1": "passskip.n1", "passskip n2": "passskip.n2", "net n1–n2": "net.n1.n2", "net n2-n3": "net.n2.n3",
		"net": "net.n1.n2 net.n2.n3", "test-solo": "solo", "based (baseline, optional)": "based.n1", "based": "based.n1",
		"card": "passskip.n1 passskip.n2 net.n1.n2 net.n2.n3 based.n1 solo",
	} {
		kept, err := chooseJobs(rep, name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var ids []string
		for _, j := range kept {
			ids = append(ids, j.ID)
		}
		if got := strings.Join(ids, " "); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// A refusal lists a few jobs, the nearest first.
func TestChooseNoJob(t *testing.T) {
	var rep report.Run
	for i := range 800 {
		id := fmt.Sprintf("link.n%d", i)
		rep.Jobs = append(rep.Jobs, report.Job{Name: id, Key: id, ID: id})
	}
	_, err := chooseJobs(rep, "link.m77")
	want := `the run has no job "link.m77"; it has: link.n77, link.n7, link.n17, link.n27, link.n37, link.n47, link.n57, link.n67 and 792 more`
	if err == nil || exitcode.Of(err) != exitcode.Invalid {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, err.Error()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
