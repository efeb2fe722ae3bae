package slurm

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"assay/pkg/batch"
)

// history asks the accounting about jobs, with every start of each and its steps.
func (r *rest) history(ctx context.Context, ids []string) ([]row, error) {
	v, err := r.ask(ctx)
	if err != nil {
		return nil, asked(ctx, err)
	}
	var rows []row
	for chunk := range slices.Chunk(ids, idsPerCall) {
		some, err := r.accounted(ctx, v, url.Values{"step": {strings.Join(chunk, ",")}})
		if err != nil {
			return nil, err
		}
		rows = append(rows, some...)
	}
	return rows, nil
}

// accounted asks the accounting for jobs, oldest start first.
func (r *rest) accounted(ctx context.Context, v *api, query url.Values) ([]row, error) {
	if !v.history {
		return nil, fmt.Errorf("%w: slurmrestd has no /slurmdb of version %s", batch.ErrNoHistory, v.name())
	}
	if v.duplicates {
		query.Set("show_duplicates", "true")
	}
	var jobs []pastJob
	got := jobList[pastJob]{each: func(j pastJob) { jobs = append(jobs, j) }}
	err := r.call(ctx, http.MethodGet, v.slurmdb("jobs")+"?"+query.Encode(), nil, &got)
	if f := failureOf(err); f != nil && f.has(nothingFound) {
		return nil, nil
	}
	if err != nil {
		return nil, asked(ctx, err)
	}
	slices.SortStableFunc(jobs, func(a, b pastJob) int { return cmp.Compare(a.Time.Submission.n, b.Time.Submission.n) })
	r.mu.Lock()
	defer r.mu.Unlock()
	var rows []row
	for _, j := range jobs {
		rows = append(rows, j.rows(r.web.who.uidOf, r.ended)...)
	}
	return rows, nil
}

// find looks for a job by its name: in the queue, then in the accounting.
func (r *rest) find(ctx context.Context, name, user string) (string, error) {
	rows, err := r.queue(ctx, []string{user})
	if err != nil {
		return "", err
	}
	if id := newest(rows, name, user); id != "" {
		return id, nil
	}
	v, err := r.ask(ctx)
	if err != nil {
		return "", asked(ctx, err)
	}
	rows, err = r.accounted(ctx, v, url.Values{"job_name": {name}})
	if err != nil {
		return "", nil //nolint:nilerr // a site without accounting: what the queue says is all there is
	}
	return newest(rows, name, user), nil
}

// newest is the id of the last job of a name, "" when there is none.
func newest(rows []row, name, user string) string {
	id, last := "", int64(-1)
	for _, j := range rows {
		at, _ := strconv.ParseInt(j.submit, 10, 64)
		if j.step == "" && j.name == name && j.user == user && at >= last {
			id, last = j.job, at
		}
	}
	return id
}

// cancel ends a job if it still has the name it was submitted with: ids are
// recycled.
func (r *rest) cancel(ctx context.Context, id, name string) error {
	ctx = context.WithoutCancel(ctx)
	err := r.cancelOurs(ctx, id, name)
	if f := failureOf(err); f != nil && (f.has(invalidJob) || f.has(alreadyDone)) {
		return nil // it has ended
	}
	if err != nil {
		return fmt.Errorf("job %s could not be cancelled: %w", id, err)
	}
	return nil
}

func (r *rest) cancelOurs(ctx context.Context, id, name string) error {
	v, err := r.ask(ctx)
	if err != nil {
		return err
	}
	if _, err := strconv.ParseUint(id, 10, 64); err != nil {
		return fmt.Errorf("%q is no job id", id)
	}
	ours := false
	got := jobList[liveJob]{each: func(j liveJob) { ours = ours || j.ID.text() == id && j.Name == name }}
	if err := r.call(ctx, http.MethodGet, v.slurm("job/"+id), nil, &got); err != nil || !ours {
		return err
	}
	return r.call(ctx, http.MethodDelete, v.slurm("job/"+id), nil, nil)
}
