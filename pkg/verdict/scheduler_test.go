package verdict

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay/pkg/evidence"
)

// What the target says of a rank is said once.
func TestSchedulerDoesNotRepeatRanks(t *testing.T) {
	const said = "pod p: the image i cannot be had: ErrImagePull: not found"
	refused := evidence.Rank{State: evidence.RankEnded, Outcome: evidence.OutcomeRefused, Code: CodeImage, Message: said, ExitCode: 6}
	for name, c := range map[string]struct {
		rank        evidence.Rank
		notLaunched string
		want        []Reason
	}{
		"of a rank": {refused, "", []Reason{
			{CodeImage, "rank 0", "rank 0 was not launched: " + said},
			{CodeSchedState, "kubernetes", "kubernetes said ErrImagePull"},
		}},
		"of a job without ranks": {evidence.Rank{State: evidence.RankNotStarted}, said, []Reason{
			{CodeImage, "j", "the job could not be started on its nodes: " + said},
			{CodeSchedState, "kubernetes", "kubernetes said ErrImagePull"},
		}},
		"of something else": {evidence.Rank{State: evidence.RankEnded, Outcome: evidence.OutcomeExited, ExitCode: 3}, "", []Reason{
			{CodeRankExit, "rank 0", "rank 0 exited 3"},
			{CodeSchedState, "kubernetes", "kubernetes said ErrImagePull: " + said},
		}},
	} {
		v := Judge(Expectation{WorldSize: 1}, evidence.Evidence{
			Job: "j", WorldSize: 1, Launch: evidence.Launch{State: evidence.LaunchSubmitted}, Ranks: []evidence.Rank{c.rank},
			Scheduler: &evidence.Observation{
				Source: "kubernetes", Phase: evidence.PhaseEnded, Word: "ErrImagePull", Detail: said, Bad: true,
				NotLaunched: c.notLaunched, NotLaunchedCode: CodeImage,
			},
		})
		if d := cmp.Diff(c.want, v.Reasons); d != "" {
			t.Errorf("%s: (-want +got)\n%s", name, d)
		}
	}
}
