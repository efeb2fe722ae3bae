package envfile

import (
	"os"
	"regexp"
	"strings"

	"assay/pkg/phrase"
)

// messagesLimit is how much of what the tool prints is looked at, in bytes.
const messagesLimit = 1 << 20

// messages are what the tool printed.
type messages struct {
	before  string // while the command was looked for
	missing bool   // there is none
	modules []moduleMessages
}

// readMessages reads them. What lies beyond a bound is left out.
func readMessages(f *os.File) messages {
	data := make([]byte, messagesLimit)
	n, _ := f.ReadAt(data, 0)
	parts := strings.Split(string(data[:n]), markModule)
	m := messages{missing: strings.Contains(parts[0], markMissing)}
	m.before, _, _ = strings.Cut(parts[0], markMissing)
	for _, part := range parts[1:] {
		text, status, _ := strings.Cut(part, markStatus)
		m.modules = append(m.modules, moduleMessages{
			text: text, status: strings.SplitN(status, "\x00", 2)[0],
			idle: strings.Contains(status, markIdle), absent: strings.Contains(status, markAbsent),
		})
	}
	return m
}

// initial is what the search for the command printed, to end an error with.
func (m messages) initial(hide secrets) string {
	if text := tidy(m.before, hide); text != "" {
		return ": " + text
	}
	return ""
}

// tidy makes one line of what a tool printed.
func tidy(text string, hide secrets) string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); strings.Trim(line, "-=*") != "" {
			lines = append(lines, phrase.Line(hide.hide(line)))
		}
	}
	whole := strings.Join(lines, "; ")
	if len(whole) > messageLimit {
		whole = strings.ToValidUTF8(whole[:messageLimit], "") + "…"
	}
	return whole
}

// moduleMessages are what was printed while one module was loaded.
type moduleMessages struct {
	text   string
	status string // of `module load`; empty when it never came back
	idle   bool   // the list of loaded modules is as before
	absent bool   // and it is not in there, nor does the tool say that it is loaded
}

// refusals are in what a tool says of a module that it did not load: Environment
// Modules 3 and 4, whose status says nothing, those of today, and Lmod. What a
// module file itself prints is none.
const refusals = `:ERROR:\d+:|^\s*Module ERROR:|^\s*ERROR: (?:Module cannot be loaded|Load of |Magic cookie)|` +
	`(?i:unable to locate a modulefile)|Lmod has detected the following error`

// toolMissing is what bash says when the program behind the function is gone; the
// function succeeds all the same.
const toolMissing = `: line \d+: /\S+: (?:No such file or directory|Permission denied|cannot execute\b.*)$`

// failed reports whether the module was not loaded.
func (m moduleMessages) failed() bool {
	found := func(pattern string) bool { return regexp.MustCompile(`(?m)` + pattern).MatchString(m.text) }
	return (m.status != "0" && m.status != "") || m.absent || found(`(?:`+refusals+`)`) || (m.idle && found(toolMissing))
}

// words is what the tool said, from its refusal on.
func (m moduleMessages) words(hide secrets) string {
	text := m.text
	if at := regexp.MustCompile(`(?m)^.*(?:` + refusals + `)`).FindStringIndex(text); at != nil {
		text = text[at[0]:]
	}
	if said := tidy(text, hide); said != "" {
		return said
	}
	if m.absent {
		return "`module load` said nothing, and it is not loaded"
	}
	return "`module load` returned status " + m.status + " and said nothing"
}
