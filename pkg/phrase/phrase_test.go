package phrase

import (
	"math"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestCount(t *testing.T) {
	for want, got := range map[string]string{
		"1 job":       Count(1, "job"),
		"0 jobs":      Count(0, "job"),
		"3 jobs":      Count(3, "job"),
		"2 processes": Count(2, "process"),
		"1 process":   Count(1, "process"),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestSeconds(t *testing.T) {
	tests := map[float64]string{
		-1: "0.00 s", 0: "0.00 s", 0.512: "0.51 s", 9.994: "9.99 s", 9.996: "10.0 s", 12.34: "12.3 s",
		59.94: "59.9 s", 59.97: "1m00s", 75.2: "1m15s", 119.6: "2m00s", 3599.4: "59m59s", 3599.6: "1h00m",
		3600: "1h00m", 7530: "2h05m", 360000: "100h00m", math.Inf(-1): "0.00 s",
	}
	for s, want := range tests {
		if got := Seconds(s); got != want {
			t.Errorf("Seconds(%v) = %q, want %q", s, got, want)
		}
	}
	for _, s := range []float64{math.NaN(), math.Inf(1), math.MaxFloat64} {
		if got := Seconds(s); got == "" {
			t.Errorf("Seconds(%v) says nothing", s)
		}
	}
}

func TestClip(t *testing.T) {
	for _, tt := range []struct {
		s    string
		n    int
		want string
	}{{"", 0, ""}, {"a", 0, "…"}, {"abc", 3, "abc"}, {"abcd", 3, "abc…"}, {"äöüß", 3, "äöü…"}, {"\xff\xfe\xfd", 2, "\xff\xfe…"}} {
		if got := Clip(tt.s, tt.n); got != tt.want {
			t.Errorf("Clip(%q, %d) = %q, want %q", tt.s, tt.n, got, tt.want)
		}
	}
}

func TestClean(t *testing.T) {
	const hostile = "a\x1b[2Jb\r\xff\u009b\u202e\u2066c\u200b\u2028\n\té\x00\x7f\ufffd\U000e0041"
	const shown = `a\x1b[2Jb\r\xff\u009b\u202e\u2066c\u200b\u2028`
	const end = `é\x00\x7f` + "\ufffd" + `\U000e0041`
	for name, tt := range map[string]struct{ got, want string }{
		"Clean":  {Clean(hostile), shown + "\n\t" + end},
		"Escape": {Escape(hostile), shown + `\n\t` + end},
		"Line":   {Line(" " + hostile + "\r\n"), shown + "  " + end},
	} {
		if tt.got != tt.want {
			t.Errorf("%s: %q, want %q", name, tt.got, tt.want)
		}
	}
	if got := Clean("Grüße, 温度 30\u00a0°C ✓"); got != "Grüße, 温度 30\u00a0°C ✓" {
		t.Errorf("plain text became %q", got)
	}
}

func TestNothingCleanSteersATerminal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) })).Draw(t, "s")
		steers := func(r rune) bool { return !unicode.IsGraphic(r) }
		keeps := func(r rune) bool { return r != '\n' && r != '\t' && steers(r) }
		for name, bad := range map[string]bool{
			"Clean":  strings.ContainsFunc(Clean(s), keeps) || !utf8.ValidString(Clean(s)) || Clean(Clean(s)) != Clean(s),
			"Escape": strings.ContainsFunc(Escape(s), steers) || !utf8.ValidString(Escape(s)),
			"Line":   strings.ContainsFunc(Line(s), steers) || Line(Line(s)) != Line(s),
		} {
			if bad {
				t.Fatalf("%s of %q: %q, %q, %q", name, s, Clean(s), Escape(s), Line(s))
			}
		}
	})
}
