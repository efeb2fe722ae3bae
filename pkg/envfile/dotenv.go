package envfile

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"

	"github.com/joho/godotenv"

	"assay/pkg/exitcode"
)

// loadDotenv parses the file. Nothing in it is executed.
func loadDotenv(o Options) (Vars, error) {
	data, err := os.ReadFile(o.Path)
	if err != nil {
		return Vars{}, exitcode.Errorf(exitcode.Invalid, "env_file %s: %w", o.Path, err)
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	vars, err := parseDotenv(data)
	if err != nil {
		return Vars{}, exitcode.Errorf(exitcode.Invalid, "env_file %s%s", o.Path, dotenvMessage(data, err))
	}
	after := toMap(o.Base)
	for name, value := range vars {
		if !identifier(name) {
			return Vars{}, exitcode.Errorf(exitcode.Invalid,
				"env_file %s: a line has no variable name in front of its '='; every line must be NAME=value", o.Path)
		}
		if strings.ContainsRune(value, 0) {
			return Vars{}, exitcode.Errorf(exitcode.Invalid, "env_file %s: the value of %s holds a NUL byte", o.Path, name)
		}
		after[name] = value
	}
	return changes(toMap(o.Base), after), nil
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

// dotenvMessage rewords the parser's error with a line number and without the
// rest of the file, which the parser quotes.
func dotenvMessage(data []byte, err error) string {
	data = bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
	text := err.Error()
	if m := regexp.MustCompile(`(?s)^unexpected character (.+) in variable name near (".*")$`).FindStringSubmatch(text); m != nil {
		near, _ := strconv.Unquote(m[2])
		return fmt.Sprintf(":%d: unexpected character %s in a variable name; every line must be NAME=value",
			lineAt(data, len(data)-len(near)), m[1])
	}
	if rest, ok := strings.CutPrefix(text, "unterminated quoted value "); ok {
		return fmt.Sprintf(":%d: a quoted value is not closed", lineAt(data, bytes.LastIndex(data, []byte(rest))))
	}
	return ": it is not a dotenv file; every line must be NAME=value"
}

func lineAt(data []byte, offset int) int {
	offset = min(max(offset, 0), len(data))
	return 1 + bytes.Count(data[:offset], []byte("\n"))
}
