package slurm

import (
	"context"
	"errors"
	"fmt"
	"os/user"
	"slices"
	"strings"
	"sync"

	"assay/deploy"
	"assay/pkg/environ"
)

// asFailure returns a failed command.
func asFailure(err error) (*failure, bool) {
	var f *failure
	return f, errors.As(err, &f)
}

// accounting is what the database says of accounts.
type accounting struct {
	accounts told[[]string]
	mine     told[[]string] // those that this user may use
	qos      told[[]string]
}

// accountFindings say whether accounts and QOS are known. The database takes a
// fifth of a second to answer, so a run asks it only when sbatch has doubts.
func (s *scheduler) accountFindings(ctx context.Context, req deploy.CheckRequest, ws []wish, st site) []deploy.Finding {
	var asked []wish
	for i, w := range ws {
		if (w.Account != "" || w.QOS != "") && (req.Thorough || st.advice[i].err != nil) {
			asked = append(asked, w)
		}
	}
	if len(asked) == 0 {
		return nil
	}
	if kind := st.config.value["AccountingStorageType"]; strings.HasSuffix(kind, "/none") || kind == "(null)" {
		return []deploy.Finding{warning("account", "the site keeps no accounts: slurm.account and slurm.qos have no effect", "")}
	}
	acc := s.askAccounting(ctx)
	var found []deploy.Finding
	for _, w := range asked {
		found = append(found, decideAccount(w, acc, st.config.value["AccountingStorageEnforce"])...)
	}
	return found
}

func (s *scheduler) askAccounting(ctx context.Context) accounting {
	tools := s.tools
	tools.limit = checkLimit
	list := func(out *told[[]string], args ...string) {
		text, err := tools.run(ctx, nil, "sacctmgr", append([]string{"--noheader", "--parsable2", "--readonly", "show"}, args...)...)
		*out = told[[]string]{strings.Fields(text), err}
	}
	var acc accounting
	var wg sync.WaitGroup
	wg.Go(func() { list(&acc.accounts, "account", "format=Account") })
	wg.Go(func() { list(&acc.mine, "associations", "where", "user="+s.userName(), "format=Account") })
	wg.Go(func() { list(&acc.qos, "qos", "format=Name") })
	wg.Wait()
	return acc
}

// userName is the name of the user; the environment may know one that no local
// file does.
func (s *scheduler) userName() string {
	if u, err := user.LookupId(uid()); err == nil {
		return u.Username
	}
	return environ.Get(s.tools.env, "USER")
}

// decideAccount says what of a wish the database does not know. Where the site
// does not enforce associations, jobs run all the same.
func decideAccount(w wish, acc accounting, enforce string) []deploy.Finding {
	associations := slices.ContainsFunc([]string{"associations", "limits", "qos", "safe", "all"}, func(word string) bool { return enforces(enforce, word) })
	var found []deploy.Finding
	if w.Account != "" {
		found = append(found, known(w, "account", w.Account, acc.accounts, associations))
		if found[0].State == deploy.FindingOK && associations {
			found[0] = known(w, "account", w.Account, acc.mine, true)
			if found[0].State == deploy.FindingProblem {
				found[0].Message = fmt.Sprintf("%s: this user may not use account %q", w.who(), w.Account)
			}
		}
	}
	if w.QOS != "" {
		found = append(found, known(w, "qos", w.QOS, acc.qos, enforces(enforce, "qos") || enforces(enforce, "all")))
	}
	return found
}

func enforces(list, word string) bool {
	return slices.ContainsFunc(strings.Split(list, ","), func(w string) bool { return strings.EqualFold(strings.TrimSpace(w), word) })
}

// known looks a name up. It is a problem only where names are enforced.
func known(w wish, kind, name string, have told[[]string], enforced bool) deploy.Finding {
	subject := kind + " " + name
	switch {
	case have.err != nil:
		return unknown(subject, have.err)
	case slices.ContainsFunc(have.value, func(v string) bool { return strings.EqualFold(v, name) }):
		return ok(subject, "is known")
	}
	message := fmt.Sprintf("%s: the accounting knows no %s %q", w.who(), kind, name)
	fix := "there are: " + strings.Join(have.value, ", ")
	if !enforced {
		return warning(subject, message+"; the site does not enforce it", fix)
	}
	return fault(subject, message, fix)
}
