package container

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"assay/pkg/environ"
)

// maxLine is the longest line that every engine reads in an env-file, in bytes.
const maxLine = 32 << 10

// Environment is how variables reach a container without standing in an argument.
type Environment struct {
	File  []byte   // for --env-file: lines of NAME=value
	Names []string // for --env: names alone
	Env   []string // KEY=VALUE of these, for the environment of the command
}

// PackedName is the variable that carries what an engine cannot: see Divide.
const PackedName = "ASSAY_CONTAINED_ENV"

// Divide tells what a line of an env-file can carry, in the formats of docker and
// podman, from what cannot: line ends, values that begin or end in blanks or begin
// with a quote, very long ones. That goes by name, with its value in the environment
// of the engine's command. What no engine carries, text that is no UTF-8, and what the
// command itself would obey, is packed into one variable, which Unpack undoes inside.
// Of a name given twice the last counts.
func Divide(env []string) Environment {
	var e Environment
	var file bytes.Buffer
	var packed []string
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
		case steers(name) || !utf8.ValidString(kv):
			packed = append(packed, kv)
		default:
			e.Names = append(e.Names, name)
			e.Env = append(e.Env, kv)
		}
	}
	if len(packed) > 0 {
		e.Names = append(e.Names, PackedName)
		e.Env = append(e.Env, PackedName+"="+base64.StdEncoding.EncodeToString([]byte(strings.Join(packed, "\x00"))))
	}
	e.File = file.Bytes()
	return e
}

// Unpack gives an environment with what Divide packed in its place.
func Unpack(env []string) ([]string, error) {
	packed := environ.Get(env, PackedName)
	if packed == "" {
		return env, nil
	}
	text, err := base64.StdEncoding.DecodeString(packed)
	if err != nil {
		return env, fmt.Errorf("%s cannot be read: %w", PackedName, err)
	}
	out := slices.DeleteFunc(slices.Clone(env), func(kv string) bool { return strings.HasPrefix(kv, PackedName+"=") })
	return append(out, strings.Split(string(text), "\x00")...), nil
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
		for _, prefix := range []string{
			"DOCKER_", "BUILDKIT_", "CONTAINER", "PODMAN_", "BUILDAH_", "STORAGE_", "REGISTRY_", "_CONTAINERS_",
			"XDG_", "LD_", "GODEBUG", "GOGC", "GOMEMLIMIT", "GOTRACEBACK", "GOMAXPROCS", "GOCOVERDIR", "SSL_CERT_", "DBUS_", "LISTEN_", "OTEL_", "APPTAINER", "SINGULARITY",
		} {
			if strings.HasPrefix(upper, prefix) {
				return true
			}
		}
	}
	return false
}
