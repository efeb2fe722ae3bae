package lint

import (
	"strings"

	"assay/pkg/document"
)

// Severity says whether a finding refuses a run.
type Severity int

// The severities. The zero value is Unknown.
const (
	Unknown Severity = iota
	Warning
	Error // `run` refuses the file
)

// String returns the spelling used in reports.
func (s Severity) String() string {
	switch s {
	case Warning:
		return "warning"
	case Error:
		return "error"
	case Unknown:
	}
	return "unknown"
}

// MarshalText returns the spelling used in reports.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Finding is one thing that is wrong, with its place. Line and Column begin at 1
// and count characters; what is wrong with the file as a whole is at 1:1.
type Finding struct {
	File     string   `json:"file"`
	Line     int      `json:"line"`
	Column   int      `json:"column"`
	Severity Severity `json:"severity"`
	Code     string   `json:"code"`    // one of Codes
	Pointer  string   `json:"pointer"` // JSON pointer (RFC 6901); empty for the file as a whole
	Message  string   `json:"message"`
	Fix      string   `json:"fix"` // what to write instead; empty where that is not known
}

type place struct {
	file         string
	line, column int
}

// excerpt is a source line, cut to what is shown, and the column of the finding
// in it.
type excerpt struct {
	text   string
	column int
}

func placeOf(f Finding) place { return place{f.File, f.Line, f.Column} }

// cut makes the excerpt of a whole line.
func cut(line string, column int) excerpt {
	text, at := document.Cut(strings.ToValidUTF8(line, "\ufffd"), column, excerptWidth, false)
	return excerpt{text, at}
}
