package discover

import (
	"strings"

	"assay/pkg/exitcode"
)

// All is the tag that every card has.
const All = "all"

// Override is an argument given on selection.
type Override struct {
	Key   string // without dashes
	Value string
	Flag  bool // it has no value
}

// Selector is one element of --tags.
type Selector struct {
	Text string // as it was written
	// Target is a tag, a card's name, or "all"; with a scope before it,
	// <dir>/<target>, it means cards of scripts/<dir> and models/<dir> only.
	Target    string
	Overrides []Override
}

// ParseSelectors reads elements of --tags, each of which may be a list separated
// by commas:
//
//	tag                      the cards that have the tag
//	name                     the card of that name
//	all                      every card
//	dir/tag  dir:tag         the cards of scripts/<dir> or models/<dir> with the tag
//	dir/name dir:name        that card of them; dir/all is all of them
//	X:key=value:key=value    as X, with "--key value" added to the arguments
//	X:flag:key=value         likewise with "--flag"; a first word that makes
//	                         dir:tag or dir:name with X is taken as that
//
// A backslash takes the meaning from a following comma, colon or backslash.
func ParseSelectors(tags []string) ([]Selector, error) {
	var out []Selector
	for _, element := range tags {
		for _, text := range split(element, ',') {
			text = strings.TrimSpace(text)
			if text == "" {
				continue
			}
			s, err := parseSelector(text)
			if err != nil {
				return nil, err
			}
			out = append(out, s)
		}
	}
	if len(tags) > 0 && len(out) == 0 {
		return nil, exitcode.Errorf(exitcode.Invalid, "the list of tags is empty: name at least one tag or card")
	}
	return out, nil
}

func parseSelector(text string) (Selector, error) {
	parts := split(text, ':')
	s := Selector{Text: text, Target: unescape(strings.TrimSpace(parts[0]))}
	if s.Target == "" {
		return s, exitcode.Errorf(exitcode.Invalid, "tag %q: there is no tag or name before the colon", text)
	}
	for _, part := range parts[1:] {
		part = unescape(strings.TrimSpace(part))
		if part == "" {
			continue
		}
		key, value, valued := strings.Cut(part, "=")
		key = strings.TrimSpace(key)
		if strings.TrimLeft(key, "-") != key || key == "" || strings.ContainsAny(key, " \t\r\n'\"\\$`") {
			return s, exitcode.Errorf(exitcode.Invalid,
				"tag %q: %q is no name of an argument; write name:key=value, without dashes or quotes", text, key)
		}
		s.Overrides = append(s.Overrides, Override{Key: key, Value: value, Flag: !valued})
	}
	return s, nil
}

// split cuts at sep where no backslash stands before it. Backslashes stay.
func split(text string, sep byte) []string {
	var out []string
	start := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case sep:
			out = append(out, text[start:i])
			start = i + 1
		}
	}
	return append(out, text[start:])
}

func unescape(text string) string {
	return strings.NewReplacer(`\\`, `\`, `\:`, `:`, `\,`, `,`).Replace(text)
}
