package lint

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"assay/pkg/phrase"
)

// Formats returns the names of the output formats.
func Formats() []string { return []string{"text", "json", "github", "sarif"} }

// WriteOptions say how findings are shown. They matter for text only, but for
// Version.
type WriteOptions struct {
	Source  bool   // put the source line and a caret under each finding
	Color   bool   // use terminal colours
	Version string // of the program, for SARIF
}

// Write writes the findings of the results, in order, in one of Formats.
func Write(w io.Writer, format string, results []*Result, opt WriteOptions) error {
	b := bufio.NewWriter(w)
	var err error
	switch format {
	case "text":
		writeText(b, results, opt)
	case "json":
		err = writeJSON(b, results)
	case "github":
		writeGitHub(b, results)
	case "sarif":
		err = writeSARIF(b, results, opt)
	default:
		return fmt.Errorf("there is no format %q; the formats are %s", format, strings.Join(Formats(), ", "))
	}
	if err != nil {
		return err
	}
	return b.Flush()
}

// writeJSON writes one array of findings.
func writeJSON(w io.Writer, results []*Result) error {
	all := []Finding{}
	for _, r := range results {
		all = append(all, r.Findings...)
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(all)
}

// writeGitHub writes workflow commands, which the runner shows at the lines.
func writeGitHub(w io.Writer, results []*Result) {
	data := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	property := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
	for _, r := range results {
		for _, f := range r.Findings {
			fmt.Fprintf(w, "::%s file=%s,line=%d,col=%d", f.Severity, property.Replace(phrase.Escape(f.File)), f.Line, f.Column)
			message := f.Message
			if f.Pointer != "" {
				message += " (" + f.Pointer + ")"
			}
			if f.Fix != "" {
				message += "\n" + f.Fix
			}
			fmt.Fprintf(w, ",title=%s::%s\n", property.Replace(f.Code), data.Replace(phrase.Clean(message)))
		}
	}
}
