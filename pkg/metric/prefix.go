package metric

import (
	"slices"
	"strings"
	"unicode"
)

// isLogPrefix reports whether s is what launchers and loggers put before the
// line of a program: nothing, "[default0]:", "[1,0]<stdout>:", "node-a: ",
// "INFO:root:", "2024-05-01 12:00:00,123 - train - INFO - ". Words of a sentence
// or of a shell trace ("+ echo") are none, nor are marks of a list, a quotation,
// a table or a prompt ("- ", "> ", "| ", ">>> "), nor words that make the line a
// statement ("expected: "), so that text which only mentions a reading is not
// taken for one.
func isLogPrefix(s string) bool {
	if s == "" {
		return true
	}
	if last := s[len(s)-1]; last != ' ' && last != '\t' && !endsPrefix(last) {
		return false
	}
	if !paired(s, "(", ")") || !paired(s, "<", ">") || isStatement(s) {
		return false
	}
	words := strings.Fields(s)
	for i, w := range words {
		if isSeparator(w) && i > 0 && !isSeparator(words[i-1]) {
			continue
		}
		separated := i+1 < len(words) && isSeparator(words[i+1])
		if !hasWord(w) || !separated && !isPrefixWord(w) {
			return false
		}
	}
	return len(words) > 0
}

// paired reports whether s has as many closing as opening brackets. Square ones
// need not: glog writes "main.cc:12] ".
func paired(s, opening, closing string) bool {
	return strings.Count(s, opening) == strings.Count(s, closing)
}

// isSeparator reports whether loggers set w between the parts of a prefix.
func isSeparator(w string) bool { return w == "-" || w == "|" }

func hasWord(w string) bool {
	return strings.ContainsFunc(w, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) })
}

// isStatement reports whether s holds a word that says of what follows that it
// was not measured here and now.
func isStatement(s string) bool {
	words := strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return !unicode.IsLetter(r) })
	return slices.ContainsFunc(words, func(w string) bool {
		switch w {
		case "baseline", "best", "budget", "example", "expect", "expected", "expects", "format", "goal", "golden", "ideal",
			"last", "limit", "max", "maximum", "min", "minimum", "nominal", "old", "prev", "previous", "previously", "prior",
			"ref", "reference", "required", "requirement", "target", "targets", "theoretical", "threshold", "usage", "want",
			"wanted", "was", "worst":
			return true
		}
		return false
	})
}

// endsPrefix reports whether a reading may follow c without a space.
func endsPrefix(c byte) bool { return strings.IndexByte(":]>)|", c) >= 0 }

func isPrefixWord(w string) bool {
	if endsPrefix(w[len(w)-1]) || strings.IndexByte("[<(", w[0]) >= 0 {
		return true
	}
	return isLevel(w) || isTimestamp(w) || strings.HasSuffix(w, ",") && strings.Contains(w, "=")
}

func isLevel(w string) bool {
	switch w {
	case "TRACE", "DEBUG", "INFO", "NOTICE", "WARN", "WARNING", "ERROR", "CRITICAL", "FATAL":
		return true
	}
	return false
}

// isTimestamp accepts dates, times, plain numbers and the "I0102" of glog.
func isTimestamp(w string) bool {
	if len(w) > 4 && strings.IndexByte("IWEF", w[0]) >= 0 {
		w = w[1:]
	}
	seen := false
	for i := range len(w) {
		switch c := w[i]; {
		case isDigit(c):
			seen = true
		case strings.IndexByte("-:.,/+TZ_", c) < 0:
			return false
		}
	}
	return seen && !strings.HasSuffix(w, ".") // "1." is of a list
}
