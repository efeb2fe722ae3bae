package lint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"assay/pkg/document"
	"assay/pkg/envfile"
)

// envFile checks the env_file of a deployment without running it. Findings have
// no source line: it may hold a value that is nobody else's business.
func (c *checker) envFile(config document.Node) {
	n := config.Get("env_file")
	if n.Kind() != document.KindString || n.Text() == "" {
		return
	}
	path := n.Text()
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(c.result.File), path)
	}
	data, err := document.Read(path)
	if err != nil {
		c.at(Error, EnvFileMissing, n, "the env_file "+err.Error(), "the path is relative to the manifest")
		return
	}
	check := shellSyntax
	if config.Get("env_file_format").Text() == "dotenv" {
		check = dotenvSyntax
	}
	if f := check(data); f != nil {
		f.File, f.Code = path, EnvFileSyntax
		c.entries = append(c.entries, entry{*f, n.Position()})
	}
}

// shellSyntax has bash parse the file.
func shellSyntax(data []byte) *Finding {
	fault, err := envfile.CheckShell(context.Background(), data)
	return shellFinding(data, fault, err)
}

// shellFinding words what bash said. Where bash could not be asked, another
// parser stands in, and what that refuses is only a suspicion: it does not
// understand all that bash does.
func shellFinding(data []byte, fault *envfile.SyntaxError, err error) *Finding {
	switch {
	case err != nil:
		f := parsed(data)
		if f != nil {
			f.Message = fmt.Sprintf("the env_file cannot be checked: %s, and the parser that stands in does not understand this: %s", err, f.Message)
		}
		return f
	case fault == nil:
		return nil
	case fault.Accepted:
		return &Finding{Line: max(fault.Line, 1), Column: 1, Severity: Warning, Message: "bash accepts this, with a warning: " + fault.Message}
	}
	f := &Finding{Line: max(fault.Line, 1), Column: 1, Severity: Error, Message: "bash refuses this: " + fault.Message}
	place := parsed(data)
	switch {
	case place == nil:
	case place.Line == f.Line:
		f.Column = place.Column
	case strings.Contains(fault.Message, "unexpected end of file") && unclosed.MatchString(place.Message):
		// bash names the end of the file, the other parser what is open there.
		f.Line, f.Column = place.Line, place.Column
		f.Message += " (" + place.Message + ")"
	}
	return f
}

// unclosed are the words of the parser about what is not complete; they quote
// the grammar, and nothing of the file.
var unclosed = regexp.MustCompile(`must be followed by|must end with|^reached EOF`)

// maxParsed bounds what is handed to the parser: it recurses, and a stack without
// bounds ends the process.
const maxParsed = 32 << 10

// parsed returns the place where the parser, whose columns count bytes, gives up.
func parsed(data []byte) *Finding {
	if len(data) > maxParsed {
		return nil
	}
	_, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(bytes.NewReader(data), "")
	f := &Finding{Line: 1, Column: 1, Severity: Warning}
	var pos syntax.Pos
	var parse syntax.ParseError
	var lang syntax.LangError
	switch {
	case errors.As(err, &parse):
		pos, f.Message = parse.Pos, parse.Text
	case errors.As(err, &lang):
		pos, f.Message = lang.Pos, lang.Feature
	default:
		return nil
	}
	if pos.IsValid() {
		f.Line, f.Column = int(pos.Line()), runeColumn(data, int(pos.Line()), int(pos.Col()))
	}
	return f
}

// runeColumn turns a column that counts bytes into one that counts characters.
func runeColumn(data []byte, line, column int) int {
	text := excerptOf(data)(line)
	return len([]rune(text[:max(0, min(column-1, len(text)))])) + 1
}

// dotenvSyntax parses the file as a dotenv file.
func dotenvSyntax(data []byte) *Finding {
	fault := envfile.CheckDotenv(data)
	if fault == nil {
		return nil
	}
	return &Finding{Line: max(fault.Line, 1), Column: 1, Severity: Error, Message: fault.Message}
}

// excerptOf returns a function that finds lines of a file, the byte order mark
// left out.
func excerptOf(data []byte) func(int) string {
	var starts []int
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	return func(line int) string {
		if starts == nil {
			starts = append(starts, 0)
			for i, b := range data {
				if b == '\n' {
					starts = append(starts, i+1)
				}
			}
		}
		if line < 1 || line > len(starts) {
			return ""
		}
		text := data[starts[line-1]:]
		if end := bytes.IndexByte(text, '\n'); end >= 0 {
			text = text[:end]
		}
		return strings.TrimSuffix(string(text), "\r")
	}
}
