package slurm

import (
	"context"
	"regexp"
	"strings"

	"assay/deploy"
	"assay/pkg/batch"
	"assay/pkg/rundir"
)

// List implements deploy.Lister: every job of this user that carries our name.
func (t *Target) List(ctx context.Context) ([]deploy.Listed, error) {
	out, err := t.s.tools.ofUsers(ctx, nil, "--noheader", "--user="+uid(), "--Format=JobID:20|,State:24|,Name:160|,Comment:4096")
	if err != nil {
		return nil, err
	}
	ours := regexp.MustCompile("^" + namePrefix + `([0-9a-f]{12})-.+-[0-9]+$`)
	var found []deploy.Listed
	for line := range strings.Lines(out) {
		f := strings.SplitN(line, "|", 4)
		if len(f) < 4 {
			continue
		}
		for i := range f {
			f[i] = strings.TrimSpace(f[i])
		}
		name := ours.FindStringSubmatch(f[2])
		if name == nil { // "assay-notes" is somebody's own
			continue
		}
		h, err := t.HandleFor(batch.Ref{ID: f[0], Name: f[2], User: uid()})
		if err != nil {
			return nil, err
		}
		l := deploy.Listed{Handle: h, State: f[1], Nonce: name[1]}
		if m := regexp.MustCompile(`^assay run=(\S+) nonce=(\S+) .*?host=(\S+) dir=(.*)$`).FindStringSubmatch(f[3]); m != nil {
			l.RunID, l.Nonce, l.Host, l.RunDir = m[1], m[2], m[3], rundir.Of(m[4])
		}
		found = append(found, l)
	}
	return found, nil
}
