package k8s

import (
	"slices"
	"testing"

	"assay/pkg/plan"
	"assay/pkg/verdict"
)

// A runner that runs without the wrapper is heard in its log, whatever the chunks.
func TestScanOfARunner(t *testing.T) {
	log := "triadGBs=1\ntriadGBs=2\n-----BEGIN BURNIN ARTIFACT x y-----\ntriadGBs=3\n-----END BURNIN ARTIFACT-----\nX_SKIP: no device\nmode=fast\nbye\ncopyGBs=4"
	job := plan.Job{Expect: verdict.Expectation{Contract: verdict.ContractAcceptance}}
	for n := 1; n <= len(log); n++ {
		s := newScan(job)
		for chunk := range slices.Chunk([]byte(log), n) {
			s.feed(chunk)
		}
		got := ""
		for _, r := range s.result().Readings {
			got += r.Name + "=" + r.Text + " "
		}
		if skip, said := s.words(); got != "triadGBs=2 mode=fast copyGBs=4 " || skip != "X_SKIP: no device" || said != "bye" {
			t.Fatalf("chunks of %d: %q, skip %q, said %q", n, got, skip, said)
		}
	}
	job.SkipMetrics = true
	s := newScan(job)
	s.feed([]byte(log))
	if skip, _ := s.words(); skip == "" || len(s.result().Readings) > 0 {
		t.Errorf("not measured: skip %q, %+v", skip, s.result())
	}
	job.Expect.Contract = ""
	if s := newScan(job); s != nil {
		t.Errorf("%+v", s)
	}
	if skip, said := (*scan)(nil).words(); skip != "" || said != "" {
		t.Error(skip, said)
	}
}
