package envfile

import (
	"regexp"
	"strings"
)

// phrases are bash's own words. What else stands in a complaint of it are words
// of the file, any of which may be a part of a value.
const phrases = `syntax error near unexpected token .+'|syntax error in conditional expression|syntax error in expression|` +
	`syntax error: unexpected end of file|syntax error|` +
	`unexpected end of file|unexpected EOF while looking for matching .+'|operand expected|invalid arithmetic operator|` +
	`invalid arithmetic base|arithmetic syntax error|invalid integer constant|expression expected|attempted assignment to non-variable|` +
	`expression recursion level exceeded|exponent less than 0|value too great for base|division by 0|invalid number|` +
	`missing hex digit for \\x|invalid format character|missing unicode digit for \\u|missing \W\]?'|` +
	`integer expression expected|integer expected|unary operator expected|binary operator expected|conditional binary operator expected|` +
	`argument expected|too many arguments|numeric argument required|option requires an argument|not enough arguments|` +
	`unbound variable|cannot unset: readonly variable|cannot unset|readonly variable|readonly function|` +
	`parameter null or not set|parameter not set|bad substitution|bad array subscript|invalid indirect expansion|` +
	`invalid variable name for name reference|invalid variable name|circular name reference|not a valid identifier|` +
	`substring expression < 0|cannot assign list to array member|cannot assign in this way|must use subscript when assigning associative array|` +
	`cannot convert associative to indexed array|cannot convert indexed to associative array|cannot destroy array variables in this way|` +
	`not an indexed array|not an array variable|not a function|maximum function nesting level exceeded|maximum source nesting level exceeded|` +
	`command not found|No such file or directory|Permission denied|Is a directory|Not a directory|` +
	`cannot execute binary file: Exec format error|cannot execute binary file|Exec format error|cannot execute: required file not found|cannot execute|bad interpreter|` +
	`cannot open|Argument list too long|File name too long|Text file busy|Too many levels of symbolic links|Too many open files|` +
	`Input/output error|Operation not permitted|Read-only file system|No space left on device|Stale file handle|Broken pipe|` +
	`cannot create temp file for here-document|here-document at line \d+ delimited by end-of-file|` +
	`command substitution: ignored null byte in input|ambiguous redirect|cannot overwrite existing file|cannot redirect standard input from /dev/null|` +
	`Bad file descriptor|Invalid argument|Resource temporarily unavailable|No child processes|Cannot allocate memory|` +
	`can only be used in a function|can only .return' from a function or sourced script|only meaningful in a .+' loop|` +
	`HOME not set|OLDPWD not set|null directory|filename argument required|file not found|not found|invalid option name|invalid option|invalid shell option name|not a shell builtin|` +
	`invalid signal specification|No such process|no such job|no job control|arguments must be process or job IDs|` +
	`cannot modify limit|invalid limit|octal number out of range|invalid symbolic mode operator|invalid symbolic mode character|` +
	`Killed|Terminated|Segmentation fault|Aborted|Bus error|Hangup|Floating point exception|Illegal instruction|core dumped`

// builtins begin the complaints of the builtins themselves.
const builtins = `\[\[|\[|\(\(|\.|alias|builtin|caller|cd|command|declare|dirs|disown|enable|eval|exec|exit|export|getopts|hash|jobs|` +
	`kill|let|local|mapfile|popd|printf|pushd|pwd|read|readarray|readonly|return|set|shift|shopt|source|test|trap|type|typeset|` +
	`ulimit|umask|unalias|unset|wait`

// programs are those that an env_file calls: their names are no part of a value.
const programs = `apptainer|awk|aws|az|conda|curl|docker|gcloud|git|hostname|ibstat|ip|jq|kubectl|lspci|mamba|micromamba|ml|module|` +
	`nproc|numactl|nvidia-smi|podman|python|python3|rocm-smi|rocminfo|scontrol|sed|sinfo|singularity|spack|squeue|srun|vault|wget`

// complaintOf is what may be shown of a complaint: the builtin that makes it,
// the name of the program or the variable that it is about, the message that the file has for
// a missing variable, phrases, and the advice. The rest is blanked. It is finished
// when it has a phrase; else it may go on with the next line.
func (t sourceText) complaintOf(complaint, advice string, hide secrets) (text string, finished bool) {
	if message, ok := t.demand(complaint, hide); ok {
		return message, true
	}
	var shown []string
	if m := regexp.MustCompile(`^(` + builtins + `)(?:: | )`).FindStringSubmatch(complaint); m != nil {
		shown = append(shown, m[1])
		complaint = complaint[len(m[0]):]
	}
	found := regexp.MustCompile(`(?:^|[\s:(])(?:` + phrases + `)(?:$|[\s:;,()])`)
	var said []string
	rest := found.ReplaceAllStringFunc(complaint, func(phrase string) string {
		said = append(said, withoutWords(strings.Trim(phrase, " :;,()\t")))
		return " "
	})
	switch name := strings.Trim(rest, " :"); {
	case !regexp.MustCompile(`[^\s:;,()]`).MatchString(strings.ReplaceAll(rest, "warning", "")):
	case len(said) == 1 && advice == "" && t.concerns(name, said[0]):
		shown = append(shown, hide.hide(name))
	default:
		shown = append(shown, blank)
	}
	return strings.Join(append(shown, said...), ": ") + advice, len(said) > 0
}

// demand is the complaint about a variable that is missing, in the words that
// the file has for it: ${NAME:?words}. Where not all values are known they are
// shown as far as they stand in the file.
func (t sourceText) demand(complaint string, hide secrets) (string, bool) {
	name, message, _ := strings.Cut(complaint, ": ")
	if !identifier(name) || message == "" {
		return "", false
	}
	at := regexp.MustCompile(`\$\{`+name+`(?:\[[^\]]*\])?:?\?`).FindAllStringIndex(t.text, -1)
	if at == nil {
		return "", false
	}
	if !hide.complete {
		for _, m := range at {
			if strings.HasPrefix(strings.TrimLeft(t.text[m[1]:], `"'`), message) {
				return name + ": " + hide.hide(message), true
			}
		}
		return name + ": " + blank, true
	}
	return name + ": " + hide.hide(message), true
}

// concerns reports whether a name in front of a phrase is that of a program, or
// of a variable which the file uses as one.
func (t sourceText) concerns(name, phrase string) bool {
	use := `\$\{?#?` + name + `\b`
	switch phrase {
	case "command not found":
		return regexp.MustCompile(`^(?:` + programs + `)$`).MatchString(name)
	case "unbound variable", "parameter null or not set", "parameter not set":
	case "readonly variable", "cannot unset: readonly variable":
		use += `|(?m:^|[\s;&|(])` + name + `(?:\[[^\]]*\])?\+?=`
	default:
		return false
	}
	return identifier(name) && regexp.MustCompile(use).MatchString(t.text)
}
