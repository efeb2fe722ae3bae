package slurm

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"assay/deploy"
	"assay/pkg/batch"
	"assay/pkg/evidence"
	"assay/pkg/plan"
	"assay/pkg/regular"
)

// rest talks to SLURM through slurmrestd. It trusts slurmctld (/slurm) with exit
// codes, and the accounting (/slurmdb) with states and signals only: version
// 22.05 says SUCCESS of every exit that was no signal.
type rest struct {
	web         *web
	environment []variable // of the batch script

	mu    sync.Mutex
	api   *api              // what the server speaks, nil until it was asked
	ended map[string]ending // by job id: what slurmctld said of jobs that ended
}

// ending is how slurmctld saw the end of one start of a job.
type ending struct{ submit, exit string }

// sourcesOf names the queue and the accounting of a way of talking to SLURM, where
// they are not the usual ones.
func sourcesOf(c controller) (queue, history string) {
	if _, ok := c.(*rest); ok {
		return "slurmrestd", "slurmdb"
	}
	return "", ""
}

// attribute says of some answers, given or not, whose they are.
func attribute(out []batch.Answer, mine []int, source string) {
	for _, i := range mine {
		out[i].Source = source
	}
}

// restClients are the ways of talking to servers, one each: what was learned of a
// server is not asked for again. The zero value has none.
type restClients struct {
	mu      sync.Mutex
	clients map[string]*rest
}

// rest returns the way to talk to slurmrestd.
func (s *scheduler) rest(more map[string]string) controller {
	return s.restClient(more["rest_url"], more["rest_token_file"])
}

func (s *scheduler) restClient(rawURL, tokenFile string) *rest {
	s.rests.mu.Lock()
	defer s.rests.mu.Unlock()
	key := rawURL + "\x00" + tokenFile
	if r := s.rests.clients[key]; r != nil {
		return r
	}
	if s.rests.clients == nil {
		s.rests.clients = map[string]*rest{}
	}
	r := newRest(rawURL, tokenFile, s.opt.Env, s.environment(plan.Job{})) // the script sets the rest
	s.rests.clients[key] = r
	return r
}

func newRest(rawURL, tokenFile string, env []string, environment []variable) *rest {
	return &rest{web: newWeb(rawURL, identity{tokenFile: tokenFile, env: env}), environment: environment, ended: map[string]ending{}}
}

// maxScript is the largest batch script that is sent, in bytes.
const maxScript = 4 << 20

// submit hands over the batch script of an attempt. Like sbatch it is not cut
// short by the end of ctx: whether the job was submitted would not be known.
func (r *rest) submit(ctx context.Context, a plan.Attempt) (string, error) {
	ctx = context.WithoutCancel(ctx)
	script, err := regular.ReadFile(filepath.Join(a.Dir, batch.ScriptFile), maxScript)
	if err != nil {
		return "", fmt.Errorf("%w: the batch script: %w", deploy.ErrRefused, err)
	}
	if err := r.web.ready(); err != nil {
		return "", fmt.Errorf("%w: %w", deploy.ErrRefused, err)
	}
	v, err := r.ask(ctx)
	if err != nil {
		return "", fmt.Errorf("%w: %w", unsent(err), err)
	}
	body, err := submission(v.version, a, string(script), r.environment)
	if err != nil {
		return "", fmt.Errorf("%w: %w", deploy.ErrRefused, err)
	}
	// A controller that does not accept the token answers a submission as if its
	// answer had been lost, so it is asked before about something harmless.
	if err := r.accepted(ctx, v); err != nil {
		return "", fmt.Errorf("%w: %w", unsent(err), err)
	}
	var got submitted
	if err := r.call(ctx, http.MethodPost, v.slurm("job/submit"), body, &got); err != nil {
		return "", submitFailure(err)
	}
	if got.ID.set && got.ID.n > 0 {
		return got.ID.text(), nil
	}
	return "", fmt.Errorf("%w: slurmrestd gave neither a job id nor an error", deploy.ErrAmbiguous)
}

// unsent is the kind of an error of what goes before a submission: what another
// try may mend, or not.
func unsent(err error) error {
	if f := failureOf(err); f != nil && !f.refusesUser() {
		return deploy.ErrUnavailable
	}
	return deploy.ErrRefused
}

// submitFailure says of what kind the failure of a submission is.
func submitFailure(err error) error {
	f := failureOf(err)
	switch {
	case f == nil || f.lost():
		return fmt.Errorf("%w: %w", deploy.ErrAmbiguous, err)
	case f.unsent():
		return fmt.Errorf("%w: %w", deploy.ErrUnavailable, err)
	}
	return fmt.Errorf("%w: %w", deploy.ErrRefused, err)
}

// queue lists the jobs of some users, with one question. The server lists those
// of everybody, and those that ended a moment ago.
func (r *rest) queue(ctx context.Context, users []string) ([]row, error) {
	v, err := r.ask(ctx)
	if err != nil {
		return nil, asked(ctx, err)
	}
	var rows []row
	var got jobList[liveJob]
	got.each = func(j liveJob) {
		if row := j.row(); slices.Contains(users, row.user) {
			rows = append(rows, row)
		}
	}
	if err := r.call(ctx, http.MethodGet, v.slurm("jobs"), nil, &got); err != nil {
		return nil, asked(ctx, err)
	}
	r.remember(rows)
	return rows, nil
}

// asked is the error of a question that had no answer.
func asked(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("%w: %w", deploy.ErrUnavailable, err)
}

// remember keeps the exit codes that slurmctld gives: the accounting has none
// that can be trusted.
func (r *rest) remember(rows []row) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, j := range rows {
		over := lookup(firstWord(j.state)).phase == evidence.PhaseEnded
		if over && j.exit != "" && strings.HasPrefix(j.name, namePrefix) {
			r.ended[j.job] = ending{submit: j.submit, exit: j.exit}
		}
	}
}

// call asks a question and decodes the answer. What a server speaks is looked up
// again after it did not know a path: it may be another one by now.
func (r *rest) call(ctx context.Context, method, path string, body any, into answering) error {
	err := r.web.do(ctx, method, path, body, into)
	if f := failureOf(err); f != nil && f.status == http.StatusNotFound && len(f.errors) == 0 {
		r.mu.Lock()
		r.api = nil
		r.mu.Unlock()
	}
	return err
}

// ask returns what the server speaks. It is asked once.
func (r *rest) ask(ctx context.Context) (*api, error) {
	r.mu.Lock()
	known := r.api
	r.mu.Unlock()
	if known != nil {
		return known, nil
	}
	var doc description
	if err := r.web.do(ctx, http.MethodGet, "openapi/v3", nil, &doc); err != nil {
		return nil, err
	}
	v, err := doc.choose()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.web.name, err)
	}
	r.mu.Lock()
	r.api = v
	r.mu.Unlock()
	return v, nil
}

// accepted asks the controller whether it accepts the token, once for each token
// and while its end is not near.
func (r *rest) accepted(ctx context.Context, v *api) error {
	tok, err := r.web.who.token()
	if err != nil {
		return err
	}
	if r.web.accepted(tok) {
		return nil
	}
	if err := r.call(ctx, http.MethodGet, v.slurm("ping"), nil, nil); err != nil {
		if why := tok.expired(); why != "" {
			return fmt.Errorf("%w (%s)", err, why)
		}
		return err
	}
	r.web.accept(tok)
	return nil
}
