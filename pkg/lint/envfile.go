package lint

import (
	"bytes"
	"errors"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/joho/godotenv"
	"mvdan.cc/sh/v3/syntax"

	"assay/pkg/document"
)

// envFile checks the env_file of a deployment without running it.
func (c *checker) envFile(config document.Node) {
	n := config.Get("env_file")
	if c.opt.NoFiles || n.Kind() != document.KindString || n.Text() == "" {
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

// dotenvSyntax parses the file as a dotenv file. The library's error quotes the
// rest of the file from where it stopped, which tells the place; the rest itself
// may hold secrets and is not repeated.
func dotenvSyntax(data []byte) *Finding {
	_, err := godotenv.UnmarshalBytes(data)
	if err == nil {
		return nil
	}
	f := &Finding{Line: 1, Column: 1, Message: "this is no KEY=value line of a dotenv file"}
	what, rest, ok := strings.Cut(err.Error(), " near ")
	if !ok {
		if strings.HasPrefix(err.Error(), "unterminated quoted value") {
			f.Message = "a quoted value is not closed"
		}
		return f
	}
	f.Message += ": " + what
	text := strings.ReplaceAll(string(data), "\r\n", "\n")
	if near, err := strconv.Unquote(rest); err == nil && strings.HasSuffix(text, near) {
		before := text[:len(text)-len(near)]
		f.Line = strings.Count(before, "\n") + 1
		f.Column = len([]rune(before[strings.LastIndexByte(before, '\n')+1:])) + 1
	}
	return f
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
