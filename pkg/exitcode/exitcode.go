// Package exitcode holds the one table of process exit codes. Help texts and
// docs are generated from it, and it imports nothing, so any package may use it.
package exitcode

import (
	"errors"
	"fmt"
)

// Code is a process exit code. Codes name a kind of outcome; they never count
// anything.
type Code int

// The exit codes of assay. Their numbers are a stable interface: CI jobs branch
// on them.
const (
	Pass         Code = 0
	Internal     Code = 1
	BuildFailure Code = 2
	Fail         Code = 3
	Invalid      Code = 4
	NoMetric     Code = 5
	Error        Code = 6
	Skip         Code = 7
	Pending      Code = 8
	Interrupted  Code = 130
	Terminated   Code = 143
)

// Row is one line of the exit-code table.
type Row struct {
	Code Code
	Name string
	When string
}

// Table returns the exit codes in ascending order.
func Table() []Row {
	return []Row{
		{Pass, "PASS", "everything judged passed; for other commands: done"},
		{Internal, "INTERNAL", "an error nobody classified (a bug)"},
		{BuildFailure, "BUILD_FAILURE", "an image build or push failed"},
		{Fail, "FAIL", "at least one verdict is FAIL"},
		{Invalid, "INVALID", "arguments, card, manifest, suite or env_file refused"},
		{NoMetric, "NO_METRIC", "ranks ended clean, nothing was measured"},
		{Error, "ERROR", "not judged: submission refused, infrastructure, evidence unreadable"},
		{Skip, "SKIP", "nothing was judged: everything declared itself not applicable"},
		{Pending, "PENDING", "asked without waiting, and not finished"},
		{Interrupted, "INTERRUPTED", "stopped by SIGINT; what happened to the jobs is printed"},
		{Terminated, "TERMINATED", "stopped by SIGTERM; what happened to the jobs is printed"},
	}
}

// String returns the name of the code, or its number when it is not in the table.
func (c Code) String() string {
	for _, r := range Table() {
		if r.Code == c {
			return r.Name
		}
	}
	return fmt.Sprintf("exit code %d", int(c))
}

// codedError is an error that knows which exit code it stands for.
type codedError struct {
	code Code
	err  error
}

func (e *codedError) Error() string { return e.err.Error() }
func (e *codedError) Unwrap() error { return e.err }

// With attaches a code to err. A nil err stays nil.
func With(code Code, err error) error {
	if err == nil {
		return nil
	}
	return &codedError{code, err}
}

// Errorf formats an error that carries code.
func Errorf(code Code, format string, args ...any) error {
	return &codedError{code, fmt.Errorf(format, args...)}
}

// Of returns the code that err carries: Pass for nil, Internal for an error that
// nobody classified. The outermost code wins.
func Of(err error) Code {
	if err == nil {
		return Pass
	}
	var c *codedError
	if errors.As(err, &c) {
		return c.code
	}
	return Internal
}
