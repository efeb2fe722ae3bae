package metric

import (
	"cmp"
	"math"
	"math/big"
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

// wholeSum makes a sum of whole numbers exact that float64 cannot add up.
func (g *group) wholeSum(m *Measurement) {
	if math.Abs(m.Value) < exactWhole {
		return
	}
	sum := new(big.Rat)
	for _, v := range g.values {
		if !v.number() {
			continue
		}
		n := new(big.Rat).SetFloat64(v.reading.Value)
		if Rounded(v.reading.Text, v.reading.Value) != 0 && v.reading.Value != 0 {
			n.SetString(strings.TrimPrefix(v.reading.Text, "+"))
		}
		if !n.IsInt() {
			return
		}
		sum.Add(sum, n)
	}
	m.Value, _ = sum.Float64()
	m.Text = sum.Num().String()
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
