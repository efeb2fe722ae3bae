package metric

import "strings"

// isLogPrefix reports whether s is what launchers and loggers put before the
// line of a program: nothing, "[default0]:", "[1,0]<stdout>:", "node-a: ",
// "INFO:root:", "2024-05-01 12:00:00,123 - train - INFO - ". Words of a sentence
// or of a shell trace ("+ echo") are none, so that text which only mentions a
// reading is not taken for one.
func isLogPrefix(s string) bool {
	if s == "" {
		return true
	}
	if last := s[len(s)-1]; last != ' ' && last != '\t' && !endsPrefix(last) {
		return false
	}
	words := strings.Fields(s)
	for i, w := range words {
		separated := i+1 < len(words) && (words[i+1] == "-" || words[i+1] == "|")
		if !separated && !isPrefixWord(w) {
			return false
		}
	}
	return true
}

// endsPrefix reports whether a reading may follow c without a space.
func endsPrefix(c byte) bool { return strings.IndexByte(":]>)|", c) >= 0 }

func isPrefixWord(w string) bool {
	if w == "-" || endsPrefix(w[len(w)-1]) || strings.IndexByte("[<(|", w[0]) >= 0 {
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
	return seen
}
