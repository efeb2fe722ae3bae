package build

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// gitLimit bounds each question to git.
const gitLimit = 10 * time.Second

// Revision is the state of the repository that a directory lies in. The zero
// value stands for a directory in none.
type Revision struct {
	Commit string // full hash
	Dirty  bool   // tracked files differ from the commit; untracked files do not count
}

// ReadRevision asks git about dir. A directory outside any repository, or in one
// without a commit, has the zero Revision. When git cannot be asked the second
// result says why, in a sentence fit for a warning.
func ReadRevision(ctx context.Context, dir string) (Revision, string) {
	head, problem := git(ctx, dir, "rev-parse", "--verify", "--quiet", "HEAD")
	commit := strings.TrimSpace(head)
	if problem != "" || commit == "" {
		return Revision{}, problem
	}
	changes, problem := git(ctx, dir, "status", "--porcelain", "--untracked-files=no")
	return Revision{Commit: commit, Dirty: changes != ""}, problem
}

// git returns what git prints; empty outside a repository.
func git(ctx context.Context, dir string, args ...string) (out, problem string) {
	ctx, cancel := context.WithTimeout(ctx, gitLimit)
	defer cancel()
	var stderr bytes.Buffer
	// A repository's own configuration must not make git start a program.
	cmd := exec.CommandContext(ctx, "git", append([]string{"--no-optional-locks", "-c", "core.fsmonitor=false", "-C", dir}, args...)...)
	cmd.Stderr = &stderr
	cmd.WaitDelay = time.Second
	for _, v := range cmd.Environ() {
		// Set inside a git hook, these would name another repository.
		if name, _, _ := strings.Cut(v, "="); name != "GIT_DIR" && name != "GIT_WORK_TREE" && name != "GIT_INDEX_FILE" && name != "LC_ALL" {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, "LC_ALL=C")
	b, err := cmd.Output()
	message := strings.TrimSpace(stderr.String())
	switch {
	case err == nil:
		return string(b), ""
	case errors.Is(err, exec.ErrNotFound):
		return "", "the git commit is not recorded: git is not installed"
	case ctx.Err() != nil:
		return "", fmt.Sprintf("the git commit is not recorded: git did not answer within %s", gitLimit)
	case message == "" || strings.Contains(message, "not a git repository"):
		return "", ""
	}
	line, _, _ := strings.Cut(message, "\n")
	return "", "the git commit is not recorded: " + line
}
