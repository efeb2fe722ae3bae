package envfile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

// How an evaluation fails.
var (
	errNoBash  = errors.New("bash was not found")
	errTimeout = errors.New("not done in time")
	errEnded   = errors.New("bash did not do all of it")
)

// endedError is an errEnded that says how bash ended.
type endedError struct{ how string }

func (e endedError) Error() string        { return e.how }
func (e endedError) Is(target error) bool { return target == errEnded }

// outcome is what an evaluation gave.
type outcome struct {
	after    map[string]string // the environment; nil unless bash did all of it
	said     string            // the last it wrote to stderr
	declared string            // its variables before and after, as `declare -p` prints them; empty when not known
}

func (o Options) timeout() time.Duration {
	if o.Timeout <= 0 {
		return DefaultTimeout
	}
	return o.Timeout
}

// evaluate has bash source the file, with further open files from descriptor 5
// on. An error is errNoBash, errTimeout or errEnded, or says what the system
// refused; when ctx ended it means nothing.
func evaluate(ctx context.Context, o Options, files ...*os.File) (outcome, error) {
	bash, err := findTool("bash", o.Base)
	if err != nil {
		return outcome{}, errNoBash
	}
	env, err := findTool("env", o.Base)
	if err != nil {
		return outcome{}, err
	}
	dump, err := memoryFile()
	if err != nil {
		return outcome{}, err
	}
	defer dump.Close()
	variables, err := memoryFile()
	if err != nil {
		return outcome{}, err
	}
	defer variables.Close()
	limited, cancel := context.WithTimeout(ctx, o.timeout())
	defer cancel()
	said, runErr := source(limited, o, append([]*os.File{dump, variables}, files...), bash, env)
	out := outcome{said: said}
	if limited.Err() != nil {
		return out, errTimeout
	}
	if declared, err := readAll(variables); err == nil { // else only what is safe without it is said
		out.declared = declared
	}
	if runErr != nil {
		return out, endedError{ending(runErr)}
	}
	if out.after, err = readDump(dump); err != nil {
		return out, err
	}
	restoreLanguage(o.Base, out.after)
	return out, nil
}

// restoreLanguage takes our own setting out of an environment.
func restoreLanguage(base []string, after map[string]string) {
	if after[messageLanguage] != "C" {
		return
	}
	delete(after, messageLanguage)
	if old, had := toMap(base)[messageLanguage]; had {
		after[messageLanguage] = old
	}
}

// readDump parses NUL-separated NAME=VALUE words. Every environment that was
// really read back has at least `_`.
func readDump(f *os.File) (map[string]string, error) {
	data, err := readAll(f)
	if err != nil {
		return nil, fmt.Errorf("the variables cannot be read back: %w", err)
	}
	if len(data) == 0 {
		return nil, endedError{"it ended bash (exit, exec or set -n) before its variables could be read back"}
	}
	return toMap(strings.Split(strings.TrimSuffix(data, "\x00"), "\x00")), nil
}
