package metric

import (
	"cmp"
	"math"
	"math/big"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

func TestRounded(t *testing.T) {
	for text, want := range map[string]int{
		"9007199254740992": 0, "9007199254740993": 1, "9007199254740995": -1, "-9007199254740993": -1, "+9007199254740993": 1,
		"9007199254740993.0": 1, "9007199254740993.5": 0, "1e22": 0, "1e23": 1, "18446744073709551615": -1,
		"1e-400": 1, "-1e-400": -1, "0": 0, "-0": 0, "0e5": 0, "0.000": 0, "0e-999999999": 0, "5e-324": 0,
		"0.1": 0, "0.30000000000000001": 0, "4503599627370497.5": 0, "": 0, "x": 0, "3 ms": 0, "n/a": 0,
	} {
		v, _ := strconv.ParseFloat(text, 64)
		if got := Rounded(text, v); got != want {
			t.Errorf("Rounded(%q, %v) = %d, want %d", text, v, got, want)
		}
	}
	if got := Rounded("9007199254740993", 5); got != 0 {
		t.Errorf("of another number: %d", got)
	}
}

// Whole numbers are ordered as they are, however many of them are one float64.
func TestWholeNumbersAreComparedExactly(t *testing.T) {
	whole := rapid.Map(rapid.Int64Range(-1<<63+1, 1<<63-1), func(n int64) Reading {
		return Reading{Text: strconv.FormatInt(n, 10), Value: float64(n)}
	})
	rapid.Check(t, func(t *rapid.T) {
		a := whole.Draw(t, "a")
		b := whole.Draw(t, "b")
		if rapid.Bool().Draw(t, "near") {
			n, _ := strconv.ParseInt(a.Text, 10, 64)
			n -= n>>63*2 + 1 // towards 0
			b = Reading{Text: strconv.FormatInt(n, 10), Value: float64(n)}
		}
		x, _ := new(big.Int).SetString(a.Text, 10)
		y, _ := new(big.Int).SetString(b.Text, 10)
		if got, want := compareExact(a, b), x.Cmp(y); got != want {
			t.Fatalf("%s and %s: %d, want %d", a.Text, b.Text, got, want)
		}
		if got, want := Rounded(a.Text, a.Value), x.Cmp(nearest(a.Value)); got != want {
			t.Fatalf("%s at %v: %d, want %d", a.Text, a.Value, got, want)
		}
	})
	small, smaller := Reading{Text: "1e-400"}, Reading{Text: "0"}
	if compareExact(small, smaller) != 1 || compareExact(smaller, small) != -1 || cmp.Compare(small.Value, smaller.Value) != 0 {
		t.Error("what is nearly 0 is 0")
	}
}

func nearest(v float64) *big.Int {
	n, _ := new(big.Float).SetFloat64(v).Int(nil)
	return n
}

// A sum of counts is exact however large it is.
func TestSumsOfWholeNumbersAreExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := new(big.Int)
		var ranks []RankReadings
		for i, n := range rapid.SliceOfN(rapid.Int64(), 2, 6).Draw(t, "counts") {
			text := strconv.FormatInt(n, 10)
			want.Add(want, big.NewInt(n))
			ranks = append(ranks, on(i, Reading{Name: "x", Value: float64(n), Text: text, Source: SourceKeyValue}))
		}
		ms, problems := Aggregate([]Spec{{Name: "x", Aggregate: AggregateSum}}, ranks)
		if len(ms) != 1 || len(problems) > 0 {
			t.Fatalf("%+v %+v", ms, problems)
		}
		got := ms[0].Text
		if new(big.Int).Abs(want).IsInt64() && math.Abs(ms[0].Value) < exactWhole {
			return // in float64
		}
		if v, _ := new(big.Float).SetInt(want).Float64(); got != want.String() || ms[0].Value != v {
			t.Fatalf("%s (%v), want %s", got, ms[0].Value, want)
		}
	})
	ms, _ := Aggregate([]Spec{{Name: "x", Aggregate: AggregateSum}}, []RankReadings{on(0, reading("x", 0.5, SourceKeyValue)), on(1, reading("x", 1<<53, SourceKeyValue))})
	if got := ms[0].Text; got != "9.007199254740992e+15" {
		t.Errorf("a sum that is not whole is %s", got)
	}
}

func TestOtherUnit(t *testing.T) {
	for _, tt := range []struct {
		text, unit, want string
	}{
		{"3 ms", "us", "ms"},
		{"3ms", "us", "ms"},
		{"3 us", "us", ""},
		{"3 GBs", "GB/s", ""},
		{"3", "us", ""},
		{"word", "us", ""},
		{"3 ms", "", "ms"},
		{"3 of 4", "us", ""},
	} {
		if got, ok := OtherUnit(tt.text, tt.unit); got != tt.want || ok != (tt.want != "") {
			t.Errorf("OtherUnit(%q, %q) = %q, %v", tt.text, tt.unit, got, ok)
		}
	}
}
