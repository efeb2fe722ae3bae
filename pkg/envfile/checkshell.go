package envfile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// checkTimeout bounds the parsing of a shell file.
const checkTimeout = 5 * time.Second

// CheckShell has bash parse the content of a shell file and returns what it
// complains of; nil when it does not. bash runs with noexec (-n): nothing in the
// content is executed. The error says why bash could not be asked.
func CheckShell(ctx context.Context, data []byte) (*SyntaxError, error) {
	nul := bytes.IndexByte(data, 0)
	fault, err := bashParse(ctx, bytes.ReplaceAll(data, []byte{0}, nil))
	if fault == nil && err == nil && nul >= 0 {
		fault = &SyntaxError{Line: lineAt(data, nul), Message: "the file has a NUL byte, which is left out", Accepted: true}
	}
	return fault, err
}

// bashParse asks bash. A file that switches extglob on is parsed with it, because
// with -n no line of it takes effect.
func bashParse(ctx context.Context, data []byte) (*SyntaxError, error) {
	bash, err := findTool("bash", nil)
	if err != nil {
		if bash, err = exec.LookPath("bash"); err != nil {
			return nil, errors.New("bash was not found")
		}
	}
	// Of a pipe bash reads one byte at a time.
	content, err := memoryFile()
	if err != nil {
		return nil, err
	}
	defer content.Close()
	if _, err := content.Write(data); err != nil {
		return nil, err
	}
	if _, err := content.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	args := []string{"--noprofile", "--norc", "-n"}
	if bytes.Contains(data, []byte("extglob")) {
		args = append(args, "-O", "extglob")
	}
	var said bytes.Buffer
	cmd := exec.CommandContext(limited, bash, args...)
	cmd.Env = []string{"LC_ALL=C"}
	cmd.Stdin, cmd.Stderr = content, &said
	err = cmd.Run()
	var exit *exec.ExitError
	switch {
	case limited.Err() != nil:
		return nil, fmt.Errorf("bash did not parse it in %v", checkTimeout)
	case err != nil && (!errors.As(err, &exit) || !exit.Exited()):
		return nil, errors.New(ending(err))
	}
	return complaint(said.String(), err == nil), nil
}

// complaint reads the first message of bash, without words of the file.
func complaint(said string, accepted bool) *SyntaxError {
	m := regexp.MustCompile(`(?m)^\S*bash: line (\d+): (?:warning: )?(.*)$`).FindStringSubmatch(said)
	if m == nil {
		if accepted {
			return nil
		}
		return &SyntaxError{Message: "syntax error"}
	}
	line, _ := strconv.Atoi(m[1])
	return &SyntaxError{Line: line, Message: withoutWords(strings.TrimSpace(m[2])), Accepted: accepted}
}
