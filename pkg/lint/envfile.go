package lint

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"assay/pkg/document"
	"assay/pkg/envfile"
)

// envFile checks the env_file of a deployment without running it.
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
	var f *Finding
	if config.Get("env_file_format").Text() == "dotenv" {
		f = dotenvSyntax(data)
	} else {
		f = shellSyntax(data)
	}
	if f == nil {
		return
	}
	f.File, f.Severity, f.Code = path, Error, EnvFileSyntax
	c.entries = append(c.entries, entry{*f, n.Position()})
	c.result.excerpts[placeOf(*f)] = cut(excerptOf(data)(f.Line), f.Column)
}

// shellSyntax parses the file as bash would. Columns of the parser count bytes.
func shellSyntax(data []byte) *Finding {
	if i := bytes.IndexByte(data, 0); i >= 0 {
		line := bytes.Count(data[:i], []byte("\n")) + 1
		return &Finding{Line: line, Column: 1, Message: "the file has a NUL byte, which no shell reads"}
	}
	_, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(bytes.NewReader(data), "")
	if err == nil {
		return nil
	}
	f := &Finding{Line: 1, Column: 1, Message: "bash would refuse this: " + err.Error()}
	var pos syntax.Pos
	var parse syntax.ParseError
	var lang syntax.LangError
	switch {
	case errors.As(err, &parse):
		pos, f.Message = parse.Pos, "bash would refuse this: "+parse.Text
	case errors.As(err, &lang):
		pos, f.Message = lang.Pos, "bash would refuse this: "+lang.Feature
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
	return &Finding{Line: max(fault.Line, 1), Column: 1, Message: fault.Message}
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
