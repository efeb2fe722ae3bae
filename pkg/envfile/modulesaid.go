package envfile

import (
	"regexp"
	"strings"
)

// moduleMessages are what was printed while one module was loaded.
type moduleMessages struct {
	text   string
	status string // of `module load`; empty when it never came back
	idle   bool   // the list of loaded modules is as before
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
	return (m.status != "0" && m.status != "") || found(`(?:`+refusals+`)`) || (m.idle && found(toolMissing))
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
	return strings.TrimSpace("`module load` returned status " + m.status + " and said nothing")
}
