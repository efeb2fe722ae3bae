package imagebuild

import (
	"fmt"
	"regexp"
	"strings"

	"assay/pkg/regular"
)

// dockerfileBytes bounds a Dockerfile.
const dockerfileBytes = 4 << 20

func readDockerfile(path string) (string, error) {
	data, err := regular.ReadFile(path, dockerfileBytes)
	if err != nil {
		return "", fmt.Errorf("the Dockerfile cannot be read: %w", err)
	}
	return string(data), nil
}

var (
	contextLine = regexp.MustCompile(`^#\s*CONTEXT\s+\{(.*)\}`)
	contextPair = regexp.MustCompile(`['"]([^'"]*)['"]\s*:\s*['"]([^'"]*)['"]`)
	heredoc     = regexp.MustCompile(`<<-?["']?([A-Za-z_][A-Za-z0-9_]*)["']?`)
	variable    = regexp.MustCompile(`\$(?:([A-Za-z_][A-Za-z0-9_]*)|\{([A-Za-z_][A-Za-z0-9_]*)(?:(:?[-+])([^}]*))?\})`)
)

// contextComment reads the comment among the first lines of a Dockerfile that says
// what it is made for: # CONTEXT {'gpu_vendor': 'AMD', 'guest_os': 'UBUNTU'}.
func contextComment(text string) map[string]string {
	out := map[string]string{}
	for i, line := range strings.SplitN(text, "\n", 6) {
		m := contextLine.FindStringSubmatch(strings.TrimSpace(line))
		if i == 5 || m == nil {
			continue
		}
		for _, pair := range contextPair.FindAllStringSubmatch(m[1], -1) {
			out[pair[1]] = pair[2]
		}
	}
	return out
}

// baseImage is the image that the last stage of a Dockerfile is built on, through
// stages that are built on each other, with the build arguments put in. It is empty
// when the file has no FROM.
func baseImage(text string, args map[string]string) string {
	global := map[string]string{}
	stages := map[string]string{} // name → base
	base := ""
	for _, in := range instructions(text) {
		words := strings.Fields(in)
		switch strings.ToUpper(words[0]) {
		case "ARG":
			if base == "" { // those of stages are not seen by FROM
				declare(global, words[1:], args)
			}
		case "FROM":
			words = words[1:]
			for len(words) > 0 && strings.HasPrefix(words[0], "--") {
				words = words[1:]
			}
			if len(words) == 0 {
				continue
			}
			base = expand(words[0], global)
			if under, ok := stages[strings.ToLower(base)]; ok {
				base = under
			}
			if len(words) >= 3 && strings.EqualFold(words[1], "AS") {
				stages[strings.ToLower(words[2])] = base
			}
		}
	}
	return base
}

// declare puts the arguments of an ARG instruction into vars: what the build is
// given, else the default.
func declare(vars map[string]string, words []string, given map[string]string) {
	for _, w := range words {
		name, value, _ := strings.Cut(w, "=")
		value = expand(strings.Trim(value, `"'`), vars)
		if v, ok := given[name]; ok {
			value = v
		}
		vars[name] = value
	}
}

// expand puts variables into a word; what is not known stays as it is written.
func expand(word string, vars map[string]string) string {
	word = strings.Trim(word, `"'`)
	return variable.ReplaceAllStringFunc(word, func(use string) string {
		m := variable.FindStringSubmatch(use)
		value, set := vars[m[1]+m[2]]
		if strings.HasPrefix(m[3], ":") && value == "" {
			set = false
		}
		switch strings.TrimPrefix(m[3], ":") {
		case "-":
			if !set {
				return m[4]
			}
		case "+":
			if set {
				return m[4]
			}
			return ""
		}
		if !set {
			return use
		}
		return value
	})
}

// instructions lists the instructions of a Dockerfile, each on one line, without
// comments and without the documents inside.
func instructions(text string) []string {
	var out []string
	joined, end := "", ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if end != "" {
			if line == end {
				end = ""
			}
			continue
		}
		if line == "" || line[0] == '#' {
			continue
		}
		if before, more := strings.CutSuffix(line, `\`); more {
			joined += before + " "
			continue
		}
		line, joined = joined+line, ""
		if m := heredoc.FindStringSubmatch(line); m != nil && !strings.HasPrefix(strings.ToUpper(line), "FROM") {
			end = m[1]
		}
		out = append(out, line)
	}
	return out
}
