package run

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"

	"assay/pkg/durable"
	"assay/pkg/exitcode"
	"assay/pkg/perfcsv"
	"assay/pkg/report"
	"assay/pkg/rundir"
)

// Finish judges every job, keeps the verdicts and the reports in the run
// directory, and adds the rows of the run to perf.csv once every job has ended.
// Doing it again changes nothing. notice is told what a person should know.
func Finish(r *rundir.Run, notice func(string)) (report.Run, error) {
	var errs []error
	jobs := make([]report.Job, len(r.Ledger.Jobs))
	all := make([][]judged, len(r.Ledger.Jobs))
	for i, e := range r.Ledger.Jobs {
		all[i] = judgeAttempts(r, e, false)
		for _, t := range all[i] {
			errs = append(errs, writeAttempt(r, t))
		}
		jobs[i] = fold(r, e, all[i])
	}
	rep := assemble(r, jobs)
	gather(r, rep, notice)
	if rep.Pending() > 0 {
		return rep, errors.Join(errs...)
	}
	// A report that cannot be written keeps no rows from perf.csv.
	errs = append(errs, writeReports(r, rep), appendPerf(r, rep, all, notice))
	if err := Unclaim(r); err != nil {
		notice(fmt.Sprintf("the nodes of the run could not be given free at once, which the next run does: %v", err))
	}
	return rep, errors.Join(errs...)
}

// writeReports writes what can be made again from the evidence, so it does not
// wait for the disk.
func writeReports(r *rundir.Run, rep report.Run) error {
	data, err := report.Encode(rep)
	if err != nil {
		return err
	}
	if err := durable.Replace(filepath.Join(r.Dir, rundir.VerdictFile), data, r.FileMode()); err != nil {
		return err
	}
	tails, err := reportTails(r, rep)
	if err != nil {
		return err
	}
	var junit, html bytes.Buffer
	if err := errors.Join(report.JUnit(&junit, rep), report.HTML(&html, rep, tails)); err != nil {
		return err
	}
	return errors.Join(
		durable.Replace(filepath.Join(r.Dir, rundir.JUnitFile), junit.Bytes(), r.FileMode()),
		durable.Replace(filepath.Join(r.Dir, rundir.ReportFile), html.Bytes(), r.FileMode()),
	)
}

// appendPerf adds the rows of a finished run to its perf.csv, once. Where they
// will begin is on disk before the append, so that after a crash between the
// append and the record of it only the end of the file has to be searched.
func appendPerf(r *rundir.Run, rep report.Run, all [][]judged, notice func(string)) error {
	path := r.Ledger.PerfCSV
	if path == "" {
		return nil
	}
	rec, begun, err := r.ReadPerf()
	if err != nil || rec.Done {
		return err
	}
	rows, names, err := perfRows(r, rep, all, rec.Attempts)
	if err != nil {
		return err
	}
	if !begun {
		rec.Path = path
		if rec.Offset, err = perfcsv.Size(path); err != nil {
			return perfError(path, err)
		}
		if err := r.WritePerf(rec); err != nil {
			return err
		}
	}
	done, err := perfcsv.AppendMissing(rec.Path, rows, rec.Offset)
	if err != nil {
		return perfError(path, err)
	}
	if done.Torn != "" {
		notice(fmt.Sprintf("%s ended in a row that its writer, killed in the middle, had not finished; that piece is now in %s", path, done.Torn))
	}
	rec.Done, rec.Attempts = true, names
	return r.WritePerf(rec)
}

func perfError(path string, err error) error {
	return exitcode.With(exitcode.Error, fmt.Errorf("the verdicts are in, but their rows could not be added to %s: %w", path, err))
}
