package slurm

import (
	"context"
	"fmt"
	"slices"
	"time"

	"assay/deploy"
	"assay/pkg/plan"
)

// restFindings says of each slurmrestd that jobs are to be submitted through
// whether it can be reached, what it speaks, and whether it lets this user in.
func (s *scheduler) restFindings(ctx context.Context, jobs []plan.Job) []deploy.Finding {
	var found []deploy.Finding
	var seen []*rest
	for _, j := range jobs {
		m := more(j)
		if m == nil {
			continue
		}
		r := s.restClient(m["rest_url"], m["rest_token_file"])
		if !slices.Contains(seen, r) {
			seen = append(seen, r)
			found = append(found, r.findings(ctx)...)
		}
		found = append(found, r.unspeakable(j)...)
	}
	return found
}

// What findings are about.
const (
	subjectServer = "slurmrestd"
	subjectUser   = "slurmrestd: user"
)

func (r *rest) findings(ctx context.Context) []deploy.Finding {
	problem := func(subject string, err error) deploy.Finding {
		f := failureOf(err)
		return deploy.Finding{Subject: subject, State: deploy.FindingProblem, Message: err.Error(), Unavailable: f != nil && !f.refusesUser()}
	}
	if r.web.broken != nil {
		return []deploy.Finding{problem(subjectServer, r.web.broken)}
	}
	var found []deploy.Finding
	if r.web.exposed() {
		found = append(found, deploy.Finding{
			Subject: subjectServer, State: deploy.FindingWarning,
			Message: fmt.Sprintf("the token goes to %s unencrypted, and whoever reads it on the way can act as its user", r.web.base),
			Fix:     "give an https:// or unix:// rest_url, or a tunnel to 127.0.0.1",
		})
	}
	if err := r.web.ready(); err != nil {
		return append(found, problem(subjectUser, err))
	}
	v, err := r.ask(ctx)
	if err != nil {
		return append(found, problem(subjectServer, err))
	}
	speaks := deploy.Finding{Subject: subjectServer, State: deploy.FindingOK, Message: fmt.Sprintf("%s speaks %s", r.web.name, v.name())}
	if !v.history {
		speaks.Message += ", and has no accounting"
	}
	found = append(found, speaks)
	if err := r.accepted(ctx, v); err != nil {
		return append(found, problem(subjectUser, err))
	}
	return append(found, r.lasting())
}

// lasting says how long the token that was accepted will be.
func (r *rest) lasting() deploy.Finding {
	f := deploy.Finding{Subject: subjectUser, State: deploy.FindingOK, Message: "slurmctld accepts what slurmrestd asks for this user"}
	tok, err := r.web.who.token()
	if err != nil || tok.end.IsZero() {
		return f
	}
	f.Message = "slurmctld accepts the token, which ends at " + tok.end.UTC().Format(time.RFC3339)
	if tok.endsSoon() {
		f.State = deploy.FindingWarning
		f.Fix = "ask for a new one (scontrol token lifespan=SECONDS) that outlives the run; rest_token_file is read at each use"
	}
	return f
}

// unspeakable says what a job asks for that cannot be said in the server's version.
func (r *rest) unspeakable(j plan.Job) []deploy.Finding {
	r.mu.Lock()
	v := r.api
	r.mu.Unlock()
	if v == nil {
		return nil
	}
	if _, err := submission(v.version, plan.Attempt{Job: j, Dir: "/"}, "", r.environment); err != nil {
		return []deploy.Finding{{Subject: "job " + j.ID, State: deploy.FindingProblem, Message: err.Error()}}
	}
	return nil
}
