package k8s

import (
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"assay/pkg/evidence"
	"assay/pkg/phrase"
	"assay/pkg/pod"
)

// unended reports whether the newest pod of a rank has not ended.
func (j *job) unended(starts [][]*podView) bool {
	return slices.ContainsFunc(starts, func(pods []*podView) bool { return len(pods) > 0 && !pods[len(pods)-1].over() })
}

// abandoned reports whether a job does not end because nodes do not say that their
// pods have: each of its pods is over, or was told to go and did not for long.
func (j *job) abandoned(starts [][]*podView, now time.Time) bool {
	lost, all := false, true
	for _, pods := range starts {
		if len(pods) == 0 {
			all = false
			continue
		}
		p := pods[len(pods)-1]
		leaving := p.DeletionTimestamp != nil && !p.over()
		grace := time.Duration(0)
		if leaving && p.DeletionGracePeriodSeconds != nil {
			grace = time.Duration(*p.DeletionGracePeriodSeconds) * time.Second
		}
		gone := j.held("leaving "+string(p.UID), leaving, now) >= grace+lostAfter && leaving
		lost = lost || gone
		all = all && (gone || p.over())
	}
	return lost && all
}

// over: the job has ended, by its conditions, or was deleted.
func (j *job) over(o evidence.Observation, current *batchv1.Job, deleted bool, starts [][]*podView, now time.Time) evidence.Observation {
	o.Phase = evidence.PhaseEnded
	patience := lostAfter + time.Duration(j.Grace)*time.Second // a lost node never says that its pods have ended
	abandoned := !deleted && !ended(current)                   // what could be had of it is here
	unlisted := j.listed.IsZero() && j.lacksPods()
	if !abandoned && (j.awaited(starts) || j.unended(starts) || unlisted) && j.held("awaited", true, now) < patience {
		o.Phase = evidence.PhaseEnding
	}
	failed := condition(current, batchv1.JobFailed)
	if failed == nil {
		failed = condition(current, batchv1.JobFailureTarget)
	}
	heaviest := j.troubles(current, deleted, starts)
	refused := j.refused
	if refused == nil && !deleted && !j.asked {
		refused = j.whyRefused(starts)
	}
	switch {
	case refused != nil:
		o.Word, o.Bad, o.Detail = refused.word, true, refused.text
	case heaviest != nil && heaviest.word == wordCancelled:
		o.Word, o.Detail = heaviest.word, heaviest.text
	case heaviest != nil:
		o.Word, o.Bad, o.Detail = heaviest.word, true, heaviest.text
	case failed != nil:
		o.Word, o.Bad = failed.Reason, true
		o.Detail = strings.Join(append([]string{phrase.Line(failed.Message)}, j.wordless(starts)...), "; ")
	case condition(current, batchv1.JobComplete) != nil || condition(current, batchv1.JobSuccessCriteriaMet) != nil:
		o.Word = "Complete"
	case abandoned && current.DeletionTimestamp == nil:
		o.Word, o.Bad, o.Detail = wordNodeLost, true, "pods that were told to go do not say that they have ended: their nodes may be lost"
	default:
		o.Word, o.Detail = wordCancelled, "the "+j.kind()+" was deleted by somebody"
		if j.asked {
			o.Detail = "the " + j.kind() + " was deleted"
		}
	}
	if o.Bad && (refused != nil || !j.lacksPods()) && !j.began() {
		o.NotLaunched = o.Detail
		if o.NotLaunched == "" {
			o.NotLaunched = "it ended as " + o.Word + " before any rank began"
		}
		if refused != nil {
			o.NotLaunchedCode = refused.code
		}
	}
	o.Ranks = j.unfetched(starts)
	return o
}

// maxNamed is how many pods a detail names.
const maxNamed = 3

// wordless says what Kubernetes knows of ranks whose wrapper was killed: it says
// nothing itself.
func (j *job) wordless(starts [][]*podView) []string {
	var said []string
	for _, pods := range starts {
		if len(pods) == 0 || j.Unwrapped || len(said) == maxNamed {
			continue
		}
		p := pods[len(pods)-1]
		end := p.terminated()
		if end == nil || end.ExitCode == 0 || !p.began {
			continue
		}
		if _, err := pod.DecodeMessage([]byte(end.Message)); err == nil {
			continue
		}
		said = append(said, fmt.Sprintf("%s ended with exit code %d and left no word", p.name(), end.ExitCode))
	}
	return said
}

// whyRefused says why no pod of a job that has ended could start: it may have ended
// before it was given up for that.
func (j *job) whyRefused(starts [][]*podView) *refusal {
	if j.began() {
		return nil
	}
	for _, pods := range starts {
		if len(pods) > 0 {
			if r := pods[len(pods)-1].stuck(true); r != nil {
				return r
			}
		}
	}
	return nil
}

// began reports whether any rank began, in any of its pods.
func (j *job) began() bool {
	for _, p := range j.pods {
		if p.began {
			return true
		}
	}
	return false
}

// troubles is the heaviest trouble of the newest pods.
func (j *job) troubles(current *batchv1.Job, deleted bool, starts [][]*podView) (heaviest *trouble) {
	ours := j.asked || j.refused != nil || suspended(current) || deleted || current.DeletionTimestamp != nil ||
		condition(current, batchv1.JobFailureTarget) != nil && condition(current, batchv1.JobFailureTarget).Reason == batchv1.JobReasonDeadlineExceeded
	for _, pods := range starts {
		if len(pods) == 0 {
			continue
		}
		if t := pods[len(pods)-1].trouble(ours); t != nil && (heaviest == nil || t.weight > heaviest.weight) {
			heaviest = t
		}
	}
	return heaviest
}

// ended reports whether a Job has ended by its conditions: counts say nothing, for
// a pod that succeeded may be one of many, and one that failed may be started again.
func ended(j *batchv1.Job) bool {
	return condition(j, batchv1.JobComplete) != nil || condition(j, batchv1.JobFailed) != nil
}

func suspended(j *batchv1.Job) bool { return j.Spec.Suspend != nil && *j.Spec.Suspend }

// earlier is how the starts of ranks before the newest ended.
func (j *job) earlier(starts [][]*podView) []evidence.Earlier {
	var list []evidence.Earlier
	for n, pods := range starts {
		for _, p := range pods[:max(len(pods)-1, 0)] {
			rank := n
			list = append(list, evidence.Earlier{Word: p.endWord(j.paused), Nodes: p.Spec.NodeName, Rank: &rank})
		}
	}
	return list
}

// endWord says in a word or two how a pod ended.
func (p *podView) endWord(paused bool) string {
	switch t := p.trouble(false); {
	case t != nil && t.weight == weightDeleted && paused: // that is how a suspension ends pods
		return "Suspended"
	case t != nil:
		return t.word
	}
	if end := p.terminated(); end != nil {
		return fmt.Sprintf("exit code %d", end.ExitCode)
	}
	return "ended without a status"
}
