package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"assay/pkg/exitcode"
	"assay/pkg/report"
	"assay/pkg/run"
	"assay/pkg/rundir"
)

// conclude turns the end of a run into its exit code and last line. err is what
// went wrong with keeping the evidence or the rows: a verdict of PASS is not
// enough then.
func (a *app) conclude(r *rundir.Run, rep report.Run, o run.Outcome, err error) error {
	code := rep.ExitCode
	if o.Signal != nil {
		code = exitcode.Interrupted
		if o.Signal == syscall.SIGTERM {
			code = exitcode.Terminated
		}
		fmt.Fprintln(a.Err, "assay: "+o.Describe(rep, a.nameOf(r)))
	}
	if err != nil {
		fmt.Fprintf(a.Err, "assay: error: %v\nthe run is in %s; go on with: assay attach %s\n", err, r.Dir, a.nameOf(r))
		if code != exitcode.Fail && o.Signal == nil {
			code = exitcode.Of(classify(err))
		}
	}
	return exit(code)
}

// printRun prints the verdict object, as a table or as JSON.
func (a *app) printRun(rep report.Run, asJSON bool) error {
	if asJSON {
		data, err := report.Encode(rep)
		if err != nil {
			return err
		}
		_, err = a.Out.Write(data)
		return err
	}
	return report.Text(a.Out, rep, a.reportOptions())
}

func (a *app) reportOptions() report.Options {
	return report.Options{Color: a.color(a.OutTTY), Width: a.Width, Verbose: a.verbose}
}

// stepSummary adds the verdicts to the summary page of a GitHub Actions step.
func (a *app) stepSummary(rep report.Run) error {
	path := a.getenv("GITHUB_STEP_SUMMARY")
	if path == "" {
		return nil
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	return errors.Join(report.Markdown(f, rep), f.Close())
}

// short writes a path relative to the working directory where that is shorter.
func (a *app) short(path string) string {
	if rel, err := filepath.Rel(a.Dir, path); err == nil && len(rel) < len(path) {
		return rel
	}
	return path
}
