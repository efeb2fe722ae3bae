package lint

import (
	"fmt"
	"io"
	"strings"
	"unicode"
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
			line := paint(bold, where(f)) + " " + paint(colour, f.Severity.String()+":") + " " + f.Code + ": " + printable(f.Message)
			if f.Pointer != "" {
				line += " " + paint(faint, "("+printable(f.Pointer)+")")
			}
			fmt.Fprintln(w, line) //nolint:errcheck // the bufio.Writer keeps the error
			if opt.Source {
				writeSource(w, r.excerpts[place{f.File, f.Line}], f, paint)
			}
		}
	}
}

func where(f Finding) string {
	if f.Line == 0 {
		return printable(f.File) + ":"
	}
	return fmt.Sprintf("%s:%d:%d:", printable(f.File), f.Line, f.Column)
}

// printable keeps the bytes of a file from driving the terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\t' && !unicode.IsPrint(r) {
			return '\ufffd'
		}
		return r
	}, s)
}

// excerptWidth is how many characters of a source line are shown.
const excerptWidth = 110

// writeSource writes the source line, a caret under the place, and the fix.
func writeSource(w io.Writer, source string, f Finding, paint func(escape, s string) string) {
	if source != "" {
		text, column := window(source, f.Column)
		number := fmt.Sprintf("%5d", f.Line)
		fmt.Fprintf(w, "%s %s %s\n", paint(faint, number), paint(faint, "|"), text)                                                          //nolint:errcheck // as above
		fmt.Fprintf(w, "%s %s %s%s\n", strings.Repeat(" ", len(number)), paint(faint, "|"), strings.Repeat(" ", column-1), paint(bold, "^")) //nolint:errcheck // as above
	}
	if f.Fix != "" {
		fmt.Fprintf(w, "      %s %s\n", paint(faint, "= fix:"), printable(f.Fix)) //nolint:errcheck // as above
	}
}

// window cuts a long line around a column, and makes it fit to print: tabs are
// one space wide, so that the caret stands where it should.
func window(source string, column int) (text string, at int) {
	line := []rune(printable(strings.ReplaceAll(source, "\t", " ")))
	at = max(1, min(column, len(line)+1))
	if len(line) <= excerptWidth {
		return string(line), at
	}
	start := max(0, min(at-1-excerptWidth/2, len(line)-excerptWidth))
	end := min(len(line), start+excerptWidth)
	text = string(line[start:end])
	at -= start
	if start > 0 {
		text, at = "…"+text, at+1
	}
	if end < len(line) {
		text += "…"
	}
	return text, at
}
