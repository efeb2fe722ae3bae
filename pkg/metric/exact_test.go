package metric

import (
	"cmp"
	"math"
	"math/big"
	"strconv"
	"strings"
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

// Sums and means are those of the decimals that were written, rounded once.
func TestSumsAndMeansAreRoundedOnce(t *testing.T) {
	for _, tt := range []struct {
		how   string
		texts []string
		want  float64
	}{
		{AggregateMean, []string{"0.7", "0.7", "0.7"}, 0.7},
		{AggregateMean, []string{"0.1", "+0.1", "1e-1"}, 0.1},
		{AggregateSum, []string{"0.1", "0.2"}, 0.3},
		{AggregateSum, []string{".1", "2.", "0.7"}, 2.8},
		{AggregateSum, []string{"1e300", "1", "-1e300"}, 1},
		{AggregateMean, []string{"1e308", "1.7e308"}, 1.35e308},
		{AggregateSum, []string{"1e-999999999", "5"}, 5},
		{AggregateSum, []string{"0e999999999", "5"}, 5},
	} {
		if m := combined(t, tt.how, tt.texts); m.Value != tt.want || tt.want < exactWhole && m.Text != formatNumber(tt.want) {
			t.Errorf("the %s of %v is %v (%s), want %v", tt.how, tt.texts, m.Value, m.Text, tt.want)
		}
	}
	if m := combined(t, AggregateMean, []string{"9007199254740993", "9007199254740993"}); m.Text != "9007199254740993" {
		t.Errorf("the mean of one large number is %s", m.Text)
	}
	if _, err := parseValue("1e999999999"); err == nil {
		t.Error("1e999999999 is a number")
	}
	rapid.Check(t, func(t *rapid.T) {
		cents := rapid.SliceOfN(rapid.Int64Range(-1e6, 1e6), 1, 9).Draw(t, "cents")
		sum := new(big.Rat)
		var texts []string
		for _, c := range cents {
			r := big.NewRat(c, 100)
			sum.Add(sum, r)
			texts = append(texts, r.FloatString(2))
		}
		want, _ := sum.Float64()
		if m := combined(t, AggregateSum, texts); m.Value != want {
			t.Fatalf("the sum is %v, want %v", m.Value, want)
		}
		want, _ = sum.Quo(sum, big.NewRat(int64(len(cents)), 1)).Float64()
		if m := combined(t, AggregateMean, texts); m.Value != want {
			t.Fatalf("the mean is %v, want %v", m.Value, want)
		}
	})
}

// combined is what numbers give, each of a rank of its own.
func combined(t interface{ Fatalf(string, ...any) }, how string, texts []string) Measurement {
	var ranks []RankReadings
	for i, text := range texts {
		q, err := parseValue(text)
		if err != nil {
			t.Fatalf("%v", err)
		}
		ranks = append(ranks, on(i, Reading{Name: "x", Value: q.value, Text: q.text, Source: SourceKeyValue}))
	}
	ms, problems := Aggregate([]Spec{{Name: "x", Aggregate: how}}, ranks)
	if len(ms) != 1 || len(problems) > 0 {
		t.Fatalf("%+v %+v", ms, problems)
	}
	return ms[0]
}

// A value whose text is another number is added up as it is, and a long text costs nothing.
func TestWrittenNumber(t *testing.T) {
	for _, r := range []Reading{{Value: 7, Text: "1"}, {Value: 7, Text: "7 ms"}, {Value: 7}, {Value: 7, Text: "7." + strings.Repeat("0", 2*maxExact)}} {
		if got, _ := writtenNumber(r).Float64(); got != 7 {
			t.Errorf("%q is %v", clip(r.Text), got)
		}
	}
}
