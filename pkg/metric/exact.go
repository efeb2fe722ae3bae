package metric

import (
	"cmp"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// exactWhole is the number from which on not every whole number is a float64.
const exactWhole = 1 << 53

// Rounded says where the number that a text spells lies of v, the float64 nearest to
// it: -1 below, 1 above, 0 at v. That is told of whole numbers and of what became 0;
// other decimals are hardly ever a float64, and count as the one nearest to them.
func Rounded(text string, v float64) int {
	switch {
	case text == "" || numberLen(text) != len(text):
		return 0
	case v == 0:
		digits, _, _ := strings.Cut(strings.ToLower(text), "e")
		switch {
		case !strings.ContainsAny(digits, "123456789"):
			return 0
		case text[0] == '-':
			return -1
		}
		return 1
	case math.Abs(v) < exactWhole || !finite(v):
		return 0
	}
	written, ok := new(big.Rat).SetString(strings.TrimPrefix(text, "+"))
	if !ok || !written.IsInt() {
		return 0
	}
	return written.Cmp(new(big.Rat).SetFloat64(v))
}

// compareExact orders numbers as they were written, as far as Rounded tells them apart.
func compareExact(a, b Reading) int {
	if c := cmp.Compare(a.Value, b.Value); c != 0 {
		return c
	}
	if a.Value == 0 || Rounded(a.Text, a.Value) == 0 || Rounded(b.Text, b.Value) == 0 {
		return cmp.Compare(Rounded(a.Text, a.Value), Rounded(b.Text, b.Value))
	}
	x, _ := new(big.Rat).SetString(strings.TrimPrefix(a.Text, "+"))
	y, _ := new(big.Rat).SetString(strings.TrimPrefix(b.Text, "+"))
	return x.Cmp(y)
}

// total is the sum of the numbers as they were written, divided by n. It is rounded
// once, so that three times 0.7 is 0.7 in the mean. A whole number is spelled out
// where float64 may not hold it.
func (g *group) total(n int) (float64, string) {
	sum := new(big.Rat)
	for _, v := range g.values {
		if v.number() {
			sum.Add(sum, writtenNumber(v.reading))
		}
	}
	sum.Quo(sum, new(big.Rat).SetInt64(int64(n)))
	v, _ := sum.Float64()
	if sum.IsInt() && math.Abs(v) >= exactWhole && finite(v) {
		return v, sum.Num().String()
	}
	return v, formatNumber(v)
}

// maxExact is the longest text that is read exactly: what comes later in a number makes
// no difference, and must not cost any memory.
const maxExact = 1 << 10

// writtenNumber is the number that the text of a reading spells. Where the text is
// another number, or one that became 0 (1e-999999999), it is the value.
func writtenNumber(r Reading) *big.Rat {
	text := strings.TrimPrefix(r.Text, "+")
	if v, err := strconv.ParseFloat(text, 64); err == nil && v == r.Value && v != 0 && len(text) <= maxExact && numberLen(text) == len(text) {
		if n, ok := new(big.Rat).SetString(text); ok {
			return n
		}
	}
	return new(big.Rat).SetFloat64(r.Value)
}

// OtherUnit returns the unit of a text that is a number in another unit than that of
// its metric, which is why it is a label.
func OtherUnit(text, unit string) (string, bool) {
	q, err := parseQuantity(text)
	if err != nil || q.unit == "" || SameUnit(q.unit, unit) {
		return "", false
	}
	return q.unit, true
}
