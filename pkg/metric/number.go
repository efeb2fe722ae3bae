package metric

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"assay/pkg/phrase"
)

// quantity is a value as a workload wrote it: a number with an optional unit, or
// the finding "n/a".
type quantity struct {
	value         float64
	text          string
	unit          string
	notApplicable bool
}

// parseQuantity reads "12.5", "12.5GB/s", "12.5 GB/s" and "n/a". The error says
// what is wrong with anything else, as the rest of a sentence about the value.
func parseQuantity(s string) (quantity, error) {
	fields := strings.Fields(s)
	switch len(fields) {
	case 0:
		return quantity{}, errors.New("the value is empty")
	case 1:
		return parseValue(fields[0])
	case 2:
		q, err := parseValue(fields[0])
		if err != nil {
			return quantity{}, err
		}
		if q.notApplicable || q.unit != "" || !isUnit(fields[1]) {
			break
		}
		q.unit = fields[1]
		return q, nil
	}
	return quantity{}, fmt.Errorf("%q is not a number with at most a unit", clip(s))
}

// parseValue reads one word: a number, a number with its unit, or "n/a".
func parseValue(s string) (quantity, error) {
	if strings.EqualFold(s, "n/a") {
		return quantity{text: s, notApplicable: true}, nil
	}
	if notFinite(s) {
		return quantity{}, fmt.Errorf("%q is not a finite number", clip(s))
	}
	n := numberLen(s)
	if n == 0 {
		return quantity{}, fmt.Errorf("%q is not a number", clip(s))
	}
	number, unit := s[:n], s[n:]
	if err := checkRest(s, number, unit); err != nil {
		return quantity{}, err
	}
	v, err := strconv.ParseFloat(number, 64)
	if err != nil || math.IsInf(v, 0) {
		return quantity{}, fmt.Errorf("%q does not fit a 64-bit number", clip(s))
	}
	return quantity{value: v, text: number, unit: unit}, nil
}

// checkRest explains what follows the number when that is not a unit.
func checkRest(whole, number, rest string) error {
	if rest == "" {
		return nil
	}
	next := byte(0)
	if len(rest) > 1 {
		next = rest[1]
	}
	switch c := rest[0]; {
	case (c == ',' || c == '_' || c == '\'') && isDigit(next):
		return fmt.Errorf("%q has a thousands separator or a decimal comma, which cannot be told apart; write digits and a decimal point only", clip(whole))
	case (c == 'x' || c == 'X') && strings.TrimLeft(number, "+-") == "0":
		return fmt.Errorf("%q is hexadecimal; write a decimal number", clip(whole))
	case (c == 'e' || c == 'E') && (len(rest) == 1 || next == '+' || next == '-'):
		return fmt.Errorf("%q ends in an incomplete exponent", clip(whole))
	case !isUnit(rest):
		return fmt.Errorf("%q is not a number", clip(whole))
	}
	return nil
}

// numberLen returns how many leading bytes of s are one decimal number, with an
// optional sign, fraction and exponent.
func numberLen(s string) int {
	i := 0
	if i < len(s) && (s[i] == '+' || s[i] == '-') {
		i++
	}
	whole := digits(s[i:])
	i += whole
	fraction := 0
	if i < len(s) && s[i] == '.' {
		fraction = digits(s[i+1:])
		if whole+fraction == 0 {
			return 0
		}
		i += 1 + fraction
	}
	if whole+fraction == 0 {
		return 0
	}
	if j := i; j < len(s) && (s[j] == 'e' || s[j] == 'E') {
		j++
		if j < len(s) && (s[j] == '+' || s[j] == '-') {
			j++
		}
		if n := digits(s[j:]); n > 0 {
			i = j + n
		}
	}
	return i
}

func digits(s string) int {
	i := 0
	for i < len(s) && isDigit(s[i]) {
		i++
	}
	return i
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// notFinite recognises the spellings of NaN and infinity of common languages.
func notFinite(s string) bool {
	low := strings.ToLower(strings.TrimLeft(s, "+-"))
	for _, word := range []string{"nan", "infinity", "inf"} {
		if rest, ok := strings.CutPrefix(low, word); ok {
			r, _ := utf8.DecodeRuneInString(rest)
			return rest == "" || !unicode.IsLetter(r)
		}
	}
	return false
}

// isUnit reports whether s can be a unit: "/s", "GB/s", "%", "°C", "m^2".
func isUnit(s string) bool {
	for i, r := range s {
		switch {
		case unicode.IsLetter(r), r == '/', r == '%', r == '°':
		case i > 0 && (unicode.IsDigit(r) || strings.ContainsRune("*^·-_.²³", r)):
		default:
			return false
		}
	}
	return s != "" && utf8.ValidString(s)
}

// clip keeps quoted text short enough for a sentence.
func clip(s string) string { return phrase.Clip(s, 60) }

// formatNumber prints v with as few digits as read back to exactly v.
func formatNumber(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
