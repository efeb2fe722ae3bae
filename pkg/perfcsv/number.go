package perfcsv

import (
	"math"
	"regexp"
	"strconv"
)

// Number is a cell that holds a plain decimal number, or nothing.
type Number string

var plain = regexp.MustCompile(`^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$`)

// NumberOf returns the cell for v: text itself when it is a plain decimal
// number that says exactly v, else the shortest text that reads back as v. NaN
// and infinities give an empty cell, since they are no measurement.
func NumberOf(v float64, text string) Number {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return ""
	}
	if plain.MatchString(text) {
		if got, err := strconv.ParseFloat(text, 64); err == nil && got == v {
			return Number(text)
		}
	}
	if a := math.Abs(v); a != 0 && (a < 1e-6 || a >= 1e21) {
		return Number(strconv.FormatFloat(v, 'e', -1, 64))
	}
	return Number(strconv.FormatFloat(v, 'f', -1, 64))
}

// Float returns the number; ok is false when the cell is empty or is none.
func (n Number) Float() (v float64, ok bool) {
	if !plain.MatchString(string(n)) {
		return 0, false
	}
	v, err := strconv.ParseFloat(string(n), 64)
	return v, err == nil
}
