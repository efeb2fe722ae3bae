package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"assay/pkg/exitcode"
)

// mayBeEmpty are the options whose empty value means something.
func mayBeEmpty() []string { return []string{"perf-csv"} }

// besideResume are the options that do not say what a run is, and go with --resume.
func besideResume() []string {
	return []string{"resume", "runs", "force", "json", "live-output", "quiet", "verbose", "help"}
}

// checkOptions refuses options by how they are given, before what they say is looked at.
func checkOptions(c *cobra.Command, _ []string) error {
	for _, check := range []func(*pflag.FlagSet) error{checkEmpty, checkDuration, checkResume} {
		if err := check(c.Flags()); err != nil {
			return err
		}
	}
	return nil
}

// checkEmpty refuses options that are given and empty, as by a variable of a shell that
// is not set: that is not the same as an option that is not given.
func checkEmpty(flags *pflag.FlagSet) error {
	var err error
	flags.Visit(func(f *pflag.Flag) {
		if err == nil && isEmpty(f.Value) && !slices.Contains(mayBeEmpty(), f.Name) {
			err = exitcode.Errorf(exitcode.Invalid, "--%s is given and empty: give it a value, or leave it out", f.Name)
		}
	})
	return err
}

// isEmpty says whether a text, or one of a list of texts, is empty.
func isEmpty(v pflag.Value) bool {
	if list, ok := v.(pflag.SliceValue); ok {
		texts := list.GetSlice()
		return len(texts) == 0 || slices.Contains(texts, "")
	}
	return v.String() == ""
}

// checkDuration refuses a duration that would stand instead of no other.
func checkDuration(flags *pflag.FlagSet) error {
	if f := flags.Lookup("duration"); f != nil && f.Changed && f.Value.String() == "0" {
		return exitcode.Errorf(exitcode.Invalid, "--duration 0: no test can pass for 0 seconds; give at least 1, or leave it out for the tests' own")
	}
	return nil
}

// checkResume refuses options that would change the run that is gone on with.
func checkResume(flags *pflag.FlagSet) error {
	if !flags.Changed("resume") {
		return nil
	}
	var given []string
	flags.Visit(func(f *pflag.Flag) {
		if !slices.Contains(besideResume(), f.Name) {
			given = append(given, "--"+f.Name)
		}
	})
	if len(given) == 0 {
		return nil
	}
	return exitcode.Errorf(exitcode.Invalid, "--resume goes on with a run as it was made: leave out %s", strings.Join(given, ", "))
}
