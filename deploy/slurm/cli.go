package slurm

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"assay/deploy"
	"assay/pkg/batch"
	"assay/pkg/plan"
)

// cli talks to SLURM with its commands. What they print is asked for field by
// field, for their JSON differs from version to version.
type cli struct {
	tools tools
	env   []string
}

// clock makes times seconds since 1970.
func clock() []string { return []string{"SLURM_TIME_FORMAT=%s"} }

// submit runs sbatch. It is not cut short by the end of ctx: whether the job was
// submitted would not be known.
func (c *cli) submit(ctx context.Context, a plan.Attempt) (string, error) {
	out, err := c.tools.run(context.WithoutCancel(ctx), nil, "sbatch", "--parsable", filepath.Join(a.Dir, batch.ScriptFile))
	if err != nil {
		return "", submitError(err)
	}
	id, _, _ := strings.Cut(strings.TrimSpace(out), ";") // "id;cluster"
	if _, err := strconv.ParseUint(id, 10, 64); err != nil {
		return "", fmt.Errorf("%w: sbatch printed %q and no job id", deploy.ErrAmbiguous, strings.TrimSpace(out))
	}
	return id, nil
}

// submitError says of what kind the failure of a submission is.
func submitError(err error) error {
	var f *failure
	if !errors.As(err, &f) {
		return err // no such tool
	}
	switch {
	case f.late, f.code < 0, says(f, "Socket timed out", "Zero Bytes were transmitted", "Unexpected message received", "Transport endpoint", "Connection reset", "Broken pipe"):
		return fmt.Errorf("%w: %w", deploy.ErrAmbiguous, err)
	case says(f, "Unable to contact slurm controller", "Connection refused", "in standby mode"):
		return fmt.Errorf("%w: %w", deploy.ErrUnavailable, err)
	}
	return fmt.Errorf("%w: %w", deploy.ErrRefused, err)
}

// says reports whether a command used one of some words.
func says(f *failure, words ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(f.said, w) })
}

// nodesWidth is the width of the column of nodes, at which squeue cuts the list.
const nodesWidth = 512

// queueFields are the columns of squeue.
// Names and reasons of other people's jobs may hold anything, so they are last.
const queueFields = "JobID:20|,State:24|,RestartCnt:10|,exit_code:16|,SubmitTime:20|,UserID:12|,NodeList:512|,Name:160|,Reason:128"

// queue lists the jobs of some users: one question, however many jobs there are.
// Those that ended a moment ago are among them.
func (c *cli) queue(ctx context.Context, users []string) ([]row, error) {
	out, err := c.tools.ofUsers(ctx, clock(), "--noheader", "--states=all", "--user="+strings.Join(users, ","), "--Format="+queueFields)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", deploy.ErrUnavailable, err)
	}
	return parseQueue(out), nil
}

// errNoUser says that the name of a user could not be looked up.
var errNoUser = errors.New("squeue looks up the names of users, and has none for one of them")

// ofUsers runs squeue for the jobs of some users. While the names of users cannot be
// looked up it lists none, complains, and ends with 0: that is no answer.
func (t tools) ofUsers(ctx context.Context, extra []string, args ...string) (string, error) {
	t.both = true
	out, err := t.run(ctx, extra, "squeue", args...)
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "squeue: error: Invalid user") {
			return "", fmt.Errorf("%w: %s", errNoUser, ownWords("squeue", line))
		}
	}
	return out, nil
}

func parseQueue(text string) []row {
	var rows []row
	for line := range strings.Lines(text) {
		f := strings.SplitN(line, "|", 9)
		if len(f) < 9 {
			continue // not a line of ours: a message among the rows
		}
		nodes := uncut(f[6])
		for i := range f {
			f[i] = strings.TrimSpace(f[i])
		}
		restarts, _ := strconv.Atoi(f[2])
		rows = append(rows, row{
			job: f[0], state: f[1], restarts: restarts, exit: exitStatus(f[3]), submit: f[4], user: f[5], nodes: nodes, name: f[7], reason: f[8],
		})
	}
	return rows
}

// exitStatus makes a raw wait status "code:signal".
func exitStatus(raw string) string {
	n, err := strconv.Atoi(raw)
	if err != nil {
		return raw
	}
	return fmt.Sprintf("%d:%d", n>>8&0xff, n&0x7f)
}

// uncut is the list of nodes in its column. Where it is cut, an ellipsis stands for
// the name that is not whole and for all that follow.
func uncut(column string) string {
	if nodes := strings.TrimSpace(column); len(nodes) < nodesWidth {
		return noList(nodes)
	}
	return column[:strings.LastIndexByte(column, ',')+1] + "…"
}

// noList returns a list of nodes, "" for what SLURM writes when there is none.
func noList(nodes string) string {
	switch nodes {
	case "None assigned", "(null)", "N/A":
		return ""
	}
	return nodes
}

// historyFields are the columns of sacct.
const historyFields = "JobIDRaw,State,ExitCode,DerivedExitCode,UID,Submit,NodeList,Reason,JobName"

// idsPerCall bounds the ids of one call of sacct.
const idsPerCall = 1000

// history asks the accounting about jobs, with every start of each (-D) and its
// steps.
func (c *cli) history(ctx context.Context, ids []string) ([]row, error) {
	var rows []row
	for chunk := range slices.Chunk(ids, idsPerCall) {
		out, err := c.tools.run(ctx, clock(), "sacct", "--noheader", "--parsable2", "--duplicates", "--format="+historyFields, "--jobs="+strings.Join(chunk, ","))
		var f *failure
		switch {
		case errors.As(err, &f) && says(f, "accounting storage is disabled"):
			return nil, batch.ErrNoHistory
		case errors.As(err, &f):
			return nil, fmt.Errorf("%w: %w", deploy.ErrUnavailable, err)
		case errors.Is(err, deploy.ErrUnavailable): // no such tool
			return nil, fmt.Errorf("%w: %w", batch.ErrNoHistory, err)
		case err != nil:
			return nil, err
		}
		rows = append(rows, parseHistory(out)...)
	}
	return rows, nil
}

func parseHistory(text string) []row {
	var rows []row
	for line := range strings.Lines(text) {
		f := strings.SplitN(strings.TrimRight(line, "\n"), "|", 9)
		if len(f) < 9 {
			continue
		}
		job, step, _ := strings.Cut(f[0], ".")
		rows = append(rows, row{job: job, step: step, state: f[1], exit: f[2], user: f[4], submit: f[5], nodes: noList(f[6]), reason: f[7], name: f[8]})
	}
	return rows
}

// find looks for a job by its name: in the queue, then in the accounting.
func (c *cli) find(ctx context.Context, name, user string) (string, error) {
	rows, err := c.queue(ctx, []string{user})
	if err != nil {
		return "", err
	}
	id := ""
	for _, r := range rows {
		if r.name == name && r.user == user {
			id = r.job
		}
	}
	if id != "" {
		return id, nil
	}
	out, err := c.tools.run(ctx, clock(), "sacct", "--noheader", "--parsable2", "--allocations", "--format=JobIDRaw,JobName", "--user="+user, "--name="+name, "--starttime=now-30days")
	if err != nil {
		return "", nil //nolint:nilerr // a site without accounting: what the queue says is all there is
	}
	for line := range strings.Lines(out) {
		if job, n, _ := strings.Cut(strings.TrimSpace(line), "|"); n == name {
			id = job
		}
	}
	return id, nil
}

// cancel ends a job if it still has the name it was submitted with: ids are
// recycled.
func (c *cli) cancel(ctx context.Context, id, name string) error {
	_, err := c.tools.run(context.WithoutCancel(ctx), nil, "scancel", "--name="+name, id)
	var f *failure
	if errors.As(err, &f) && says(f, "Invalid job id", "already completing or completed") {
		return nil // it has ended
	}
	if err != nil {
		return fmt.Errorf("job %s: %w", id, err)
	}
	return nil
}
