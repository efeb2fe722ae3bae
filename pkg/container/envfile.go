package container

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxLine is the longest line that every engine reads in an env-file, in bytes.
const maxLine = 32 << 10

// Environment is how variables reach a container without standing in an argument.
type Environment struct {
	File  []byte   // for --env-file: lines of NAME=value
	Names []string // for --env: names alone
	Env   []string // KEY=VALUE of these, for the environment of the command
}

// Divide tells what a line of an env-file can carry, in the formats of docker and
// podman, from what cannot: line ends, values that begin or end in blanks or begin
// with a quote, text that is no UTF-8. That goes by name, with its value in the
// environment of the engine's command, unless it would change how the command works:
// then the error names it, never its value. Of a name given twice the last counts.
func Divide(env []string) (Environment, error) {
	var e Environment
	var file bytes.Buffer
	last := map[string]int{}
	for i, kv := range env {
		name, _, _ := strings.Cut(kv, "=")
		last[name] = i
	}
	for i, kv := range env {
		name, value, ok := strings.Cut(kv, "=")
		switch {
		case !ok || name == "" || last[name] != i:
		case plainName(name) && plainValue(value) && len(kv) < maxLine:
			file.WriteString(kv + "\n")
		case steers(name):
			return Environment{}, fmt.Errorf("the value of %s cannot be handed to a container: it has line ends, blanks at an end, or is very long, "+
				"and the engine's own command would obey a variable of that name; set it in a pre-script or the script itself", name)
		default:
			e.Names = append(e.Names, name)
			e.Env = append(e.Env, kv)
		}
	}
	e.File = file.Bytes()
	return e, nil
}

func plainName(name string) bool {
	return strings.IndexFunc(name, func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	}) < 0
}

func plainValue(value string) bool {
	if value == "" {
		return true
	}
	first, _ := utf8.DecodeRuneInString(value)
	last, _ := utf8.DecodeLastRuneInString(value)
	return utf8.ValidString(value) && strings.IndexFunc(value, unicode.IsControl) < 0 &&
		!strings.ContainsAny(value, "\u2028\u2029") &&
		!unicode.IsSpace(first) && !unicode.IsSpace(last) && first != '"' && first != '\'' && first != '\ufeff'
}

// steers reports whether the command of an engine obeys a variable.
func steers(name string) bool {
	switch upper := strings.ToUpper(name); upper {
	case "PATH", "HOME", "TMPDIR", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "NOTIFY_SOCKET", "SSH_AUTH_SOCK":
		return true
	default:
		for _, prefix := range []string{"DOCKER_", "BUILDKIT_", "CONTAINER", "PODMAN_", "BUILDAH_", "STORAGE_", "REGISTRY_", "_CONTAINERS_",
			"XDG_", "LD_", "GODEBUG", "GOGC", "GOMEMLIMIT", "GOTRACEBACK", "GOMAXPROCS", "GOCOVERDIR", "SSL_CERT_", "DBUS_", "LISTEN_", "OTEL_", "APPTAINER", "SINGULARITY"} {
			if strings.HasPrefix(upper, prefix) {
				return true
			}
		}
	}
	return false
}
