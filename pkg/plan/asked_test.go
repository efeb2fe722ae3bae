package plan_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay/pkg/plan"
)

func TestAsked(t *testing.T) {
	a := plan.Attempt{DurationSeconds: 90, Job: plan.Job{Variant: map[string]string{"message-size": "1 MiB", "T2": ""}}}
	want := map[string]string{
		"ASSAY_DURATION_SECONDS": "90", "BURNIN_DURATION_SECONDS": "90", "ASSAY_VARIANT_MESSAGE_SIZE": "1 MiB", "BURNIN_VARIANT_MESSAGE_SIZE": "1 MiB",
		"ASSAY_VARIANT_T2": "", "BURNIN_VARIANT_T2": "",
	}
	got := a.Asked()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	for name := range got {
		if !plan.IsAsked(name) {
			t.Errorf("%s is not asked", name)
		}
	}
	if len((plan.Attempt{}).Asked()) > 0 || plan.IsAsked("ASSAY_VARIANTS") || plan.IsAsked("VARIANT_X") {
		t.Error("too much is asked")
	}
}
