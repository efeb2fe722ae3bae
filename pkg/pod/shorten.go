package pod

import (
	"strings"

	"assay/pkg/evidence"
)

// dropLists leaves out the lists of places where results were looked for.
func dropLists(end *evidence.End) string {
	r := end.Results
	if r == nil || len(r.Tried)+len(r.Stale)+len(r.Refused)+len(r.Nearby) == 0 {
		return ""
	}
	r.Tried, r.Stale, r.Refused, r.Nearby = nil, nil, nil, nil
	return "the places where results were looked for"
}

func dropStepMessages(end *evidence.End) string {
	cut := ""
	for i := range end.Steps {
		if end.Steps[i].Message != "" {
			end.Steps[i].Message = ""
			cut = "the messages of steps"
		}
	}
	return cut
}

// shortenTexts shortens what has no bound. Where the name of a results file is too
// long there is nothing to be said about that file: half of a name is a wrong name.
func shortenTexts(end *evidence.End) string {
	before := size(*end)
	texts := []*string{&end.Message, &end.Lost, &end.Host, &end.Node, &end.By, &end.Code}
	if r := end.Results; r != nil {
		if jsonSize(r.File) > longText {
			end.Results = nil
		}
		texts = append(texts, &r.Declared, &r.Path)
	}
	for _, text := range texts {
		*text = shorten(*text, longText)
	}
	if size(*end) == before {
		return ""
	}
	return "the rest of long texts"
}

func dropSteps(end *evidence.End) string {
	if len(end.Steps) == 0 {
		return ""
	}
	cut := missing(0, len(end.Steps), "steps")
	end.Steps = nil
	return cut
}

// bound makes an end marker fit whatever is in it.
func bound(end *evidence.End) string {
	end.Results = nil
	for _, text := range []*string{&end.Message, &end.Lost, &end.Host, &end.Node, &end.By, &end.Code, &end.Signal} {
		*text = shorten(*text, shortText)
	}
	for _, text := range []*string{&end.RunID, &end.Nonce, &end.ManifestDigest, &end.Job} {
		*text = shorten(*text, maxIdentity)
	}
	return "what became of the results file, and most of all texts"
}

// shorten cuts a text at a rune so that its JSON has at most limit bytes.
func shorten(s string, limit int) string {
	if jsonSize(s) <= limit {
		return s
	}
	const dots = "…"
	n := 0
	for i, r := range s {
		if n += cost(r); n > limit-len(dots) {
			return strings.ToValidUTF8(s[:i], "\uFFFD") + dots
		}
	}
	return s
}

// jsonSize is at least the size of a text in JSON, without its quotes.
func jsonSize(s string) int {
	n := 0
	for _, r := range s {
		n += cost(r)
	}
	return n
}

// cost is at least the size of a rune in JSON.
func cost(r rune) int {
	switch {
	case r < ' ', r == 0x7f, r == '\u2028', r == '\u2029', r == '\uFFFD':
		return 6
	case r == '"', r == '\\':
		return 2
	}
	return len(string(r))
}
