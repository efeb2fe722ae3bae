package envfile

import (
	"bytes"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/joho/godotenv"

	"assay/pkg/exitcode"
	"assay/pkg/regular"
)

// loadDotenv parses the file. Nothing in it is executed.
func loadDotenv(o Options) (Vars, error) {
	data, err := regular.ReadFile(o.Path, maxFile)
	if err != nil {
		return Vars{}, exitcode.Errorf(exitcode.Invalid, "env_file %s: %w", o.Path, err)
	}
	vars, fault := readDotenv(data)
	if fault != nil {
		where := o.Path
		if fault.Line > 0 {
			where = fmt.Sprintf("%s:%d", o.Path, fault.Line)
		}
		return Vars{}, exitcode.Errorf(exitcode.Invalid, "env_file %s: %s", where, fault.Message)
	}
	after := toMap(o.Base)
	maps.Copy(after, vars)
	return changes(toMap(o.Base), after), nil
}

// readDotenv returns the variables of a dotenv file, or why there are none.
func readDotenv(data []byte) (map[string]string, *SyntaxError) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	vars, err := parseDotenv(data)
	if err != nil {
		return nil, dotenvFault(data, err)
	}
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		if !identifier(name) {
			return nil, &SyntaxError{Message: "a line has no variable name in front of its '='; every line must be NAME=value"}
		}
		if strings.ContainsRune(vars[name], 0) {
			return nil, &SyntaxError{Message: fmt.Sprintf("the value of %s holds a NUL byte", name)}
		}
	}
	return vars, nil
}

// parseDotenv calls the parser and turns a panic of it into an error.
func parseDotenv(data []byte) (vars map[string]string, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("it cannot be parsed")
		}
	}()
	return godotenv.UnmarshalBytes(data)
}

// dotenvFault rewords the parser's error with a line number and without the rest
// of the file, which the parser quotes.
func dotenvFault(data []byte, err error) *SyntaxError {
	data = bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
	text := err.Error()
	if m := regexp.MustCompile(`(?s)^unexpected character (.+) in variable name near (".*")$`).FindStringSubmatch(text); m != nil {
		near, _ := strconv.Unquote(m[2])
		return &SyntaxError{Line: lineAt(data, len(data)-len(near)), Message: fmt.Sprintf("unexpected character %s in a variable name; every line must be NAME=value", m[1])}
	}
	if rest, ok := strings.CutPrefix(text, "unterminated quoted value "); ok {
		return &SyntaxError{Line: lineAt(data, bytes.LastIndex(data, []byte(rest))), Message: "a quoted value is not closed"}
	}
	return &SyntaxError{Message: "it is not a dotenv file; every line must be NAME=value"}
}

func lineAt(data []byte, offset int) int {
	offset = min(max(offset, 0), len(data))
	return 1 + bytes.Count(data[:offset], []byte("\n"))
}
