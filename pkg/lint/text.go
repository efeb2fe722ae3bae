package lint

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"assay/pkg/phrase"
)

// The escapes of a terminal.
const (
	bold   = "\x1b[1m"
	red    = "\x1b[31m"
	yellow = "\x1b[33m"
	faint  = "\x1b[2m"
	reset  = "\x1b[0m"
)

// writeText writes one line a finding, with the source line under it when that
// is asked for.
func writeText(w io.Writer, results []*Result, opt WriteOptions) {
	paint := func(escape, s string) string {
		if !opt.Color {
			return s
		}
		return escape + s + reset
	}
	for _, r := range results {
		for _, f := range r.Findings {
			colour := yellow
			if f.Severity == Error {
				colour = red
			}
			line := paint(bold, where(f)) + " " + paint(colour, f.Severity.String()+":") + " " + f.Code + ": " + phrase.Line(f.Message)
			if f.Pointer != "" {
				line += " " + paint(faint, "("+phrase.Line(f.Pointer)+")")
			}
			fmt.Fprintln(w, line)
			if opt.Source {
				writeSource(w, r.excerpts[placeOf(f)], f, paint)
			}
		}
	}
}

func where(f Finding) string {
	return fmt.Sprintf("%s:%d:%d:", phrase.Escape(f.File), f.Line, f.Column)
}

// excerptWidth is how many characters of a source line are shown.
const excerptWidth = 110

// writeSource writes the source line, a caret under the place, and the fix.
func writeSource(w io.Writer, source excerpt, f Finding, paint func(escape, s string) string) {
	if source.text != "" {
		// Tabs are one space wide, so that the caret stands where it should.
		line := []rune(strings.ReplaceAll(source.text, "\t", " "))
		at := max(0, min(source.column-1, len(line)))
		before, after := phrase.Escape(string(line[:at])), phrase.Escape(string(line[at:]))
		number := fmt.Sprintf("%5d", f.Line)
		fmt.Fprintf(w, "%s %s %s\n", paint(faint, number), paint(faint, "|"), before+after)
		fmt.Fprintf(w, "%s %s %s%s\n", strings.Repeat(" ", len(number)), paint(faint, "|"), strings.Repeat(" ", utf8.RuneCountInString(before)), paint(bold, "^"))
	}
	if f.Fix != "" {
		fmt.Fprintf(w, "      %s %s\n", paint(faint, "= fix:"), phrase.Line(f.Fix))
	}
}
