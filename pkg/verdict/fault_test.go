package verdict

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"assay/pkg/evidence"
)

func failedRank(rank, code int, seconds float64) evidence.Rank {
	return evidence.Rank{Rank: rank, State: evidence.RankEnded, Outcome: evidence.OutcomeExited, ExitCode: code, ElapsedSeconds: seconds}
}

func TestFirstFailing(t *testing.T) {
	stopped := failedRank(0, 143, 1)
	stopped.Outcome = evidence.OutcomeStopped
	refused := failedRank(1, 4, 9)
	refused.Outcome = evidence.OutcomeRefused
	lost := evidence.Rank{Rank: 1, State: evidence.RankLost}
	for name, c := range map[string]struct {
		ranks []evidence.Rank
		want  int
		ok    bool
	}{
		"none":                        {[]evidence.Rank{failedRank(0, 0, 1), failedRank(1, 0, 1)}, 0, false},
		"earliest":                    {[]evidence.Rank{failedRank(0, 1, 9), failedRank(1, 2, 3)}, 1, true},
		"tie":                         {[]evidence.Rank{failedRank(1, 1, 3), failedRank(0, 2, 3)}, 0, true},
		"an end beats a loss":         {[]evidence.Rank{lost, failedRank(0, 1, 99)}, 0, true},
		"refused comes first":         {[]evidence.Rank{refused, failedRank(0, 1, 1)}, 1, true},
		"one that never began has no": {[]evidence.Rank{{Rank: 0, State: evidence.RankNotStarted}, lost}, 1, true},
		"one that runs is no failure": {[]evidence.Rank{{Rank: 0, State: evidence.RankRunning}, failedRank(1, 0, 1)}, 0, false},
		"nobody expected it":          {[]evidence.Rank{failedRank(0, 0, 1), failedRank(1, 0, 1), failedRank(2, 1, 1)}, 0, false},
		"told to stop, because":       {[]evidence.Rank{stopped, lost}, 1, true},
	} {
		e := evidence.Evidence{
			WorldSize: 2, Ranks: c.ranks, Launch: evidence.Launch{State: evidence.LaunchSubmitted},
			Scheduler: &evidence.Observation{Phase: evidence.PhaseRunning, Word: "TIMEOUT", Bad: true},
		}
		if got, ok := FirstFailing(e); got != c.want || ok != c.ok {
			t.Errorf("%s: rank %d, %v, want %d, %v", name, got, ok, c.want, c.ok)
		}
	}
}

// The rank whose log is shown is the one that the verdict names first.
func TestFirstFailingIsNamedFirst(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, e := drawJob(t)
		if rapid.Bool().Draw(t, "running") {
			e.Scheduler.Phase, e.Scheduler.Bad = evidence.PhaseRunning, false
			e.Ranks[0] = evidence.Rank{State: evidence.RankRunning}
		}
		heard := lookAt(x, e).heard()
		v := Judge(x, e)
		named, any := 0, false
		for _, r := range slices.Concat(v.Reasons, v.Warnings) {
			i := slices.IndexFunc(heard, func(ft fault) bool { return ft.reason == r })
			if i >= 0 {
				named, any = heard[i].rank, true
				break
			}
		}
		if rank, ok := FirstFailing(e); rank != named || ok != any {
			t.Fatalf("FirstFailing %d, %v; the verdict names %d, %v: %+v", rank, ok, named, any, v)
		}
	})
}
