package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"assay/deploy"
	"assay/pkg/plan"
)

// Check implements deploy.Checker: a program that is not on this machine is
// known before anything runs.
func (t *Target) Check(ctx context.Context, req deploy.CheckRequest) []deploy.Finding {
	found := t.checkContainers(ctx, req)
	for _, j := range deploy.OnePerEntry(req.Jobs) {
		if j.Container != nil { // its programs may be in the image
			continue
		}
		problems := missing(j)
		for _, p := range problems {
			found = append(found, deploy.Finding{Subject: "entry " + j.Key, State: deploy.FindingProblem, Message: p})
		}
		if len(problems) == 0 {
			found = append(found, deploy.Finding{Subject: "entry " + j.Key, State: deploy.FindingOK, Message: "its programs are on this machine"})
		}
	}
	return found
}

// missing names what a job needs and this machine has not.
func missing(j plan.Job) []string {
	var problems []string
	if p := missingProgram(j); p != "" {
		problems = append(problems, p)
	}
	for _, s := range append(append([]plan.Script{}, j.PreScripts...), j.PostScripts...) {
		if path := in(j.ModelDir, s.Path); !exists(path) {
			problems = append(problems, fmt.Sprintf("entry %q: the pre- or post-script %s does not exist", j.Key, path))
		}
	}
	return problems
}

// missingProgram says what a job cannot run, or "". A command without a slash is
// left to PATH, which the env_file may change.
func missingProgram(j plan.Job) string {
	if c := j.Program.Command; len(c) > 0 {
		if strings.ContainsRune(c[0], filepath.Separator) && !exists(in(j.ModelDir, c[0])) {
			return fmt.Sprintf("entry %q: the command %s does not exist", j.Key, in(j.ModelDir, c[0]))
		}
		return ""
	}
	path := in(j.ModelDir, j.Program.Script)
	if exists(path) {
		return ""
	}
	return fmt.Sprintf("entry %q: the script %s does not exist; scripts are relative to MODEL_DIR when it is set, else to the manifest", j.Key, path)
}

func in(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// exists says no only when it is sure: a directory that may not be searched is
// left to the rank, which says what it cannot read.
func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}
