package lint

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

func TestSlurmSeconds(t *testing.T) {
	for text, want := range map[string]string{
		"30": "1800", "30:15": "1815", "1:30:15": "5415", "02:30:00": "9000", "24:00:00": "86400", "100:0:0": "360000",
		"1-0": "86400", "2-12": "216000", "1-2:3": "93780", "1-2:3:4": "93784", " 5 ": "300",
		"0": "unlimited", "UNLIMITED": "unlimited", "infinite": "unlimited", "-1": "unlimited",
		"": "bad", "soon": "bad", "1:2:3:4": "bad", "1-": "bad", "-5": "bad", "1-2:3:4:5": "bad", "1.5": "bad", "1:-2": "bad", "1--2": "bad",
		"9999999999": "bad", "2h": "bad", "１": "bad",
	} {
		seconds, unlimited, ok := slurmSeconds(text)
		got := fmt.Sprint(seconds)
		switch {
		case !ok:
			got = "bad"
		case unlimited:
			got = "unlimited"
		}
		if got != want {
			t.Errorf("%q is %s, want %s", text, got, want)
		}
	}
}

func TestSlurmSecondsAddsUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, h := rapid.IntRange(0, 400).Draw(t, "days"), rapid.IntRange(0, 99).Draw(t, "hours")
		m, s := rapid.IntRange(0, 99).Draw(t, "minutes"), rapid.IntRange(0, 99).Draw(t, "seconds")
		want := ((d*24+h)*60+m)*60 + s
		for _, text := range []string{fmt.Sprintf("%d-%d:%d:%d", d, h, m, s), fmt.Sprintf("%d:%02d:%02d", d*24+h, m, s), fmt.Sprintf("%d:%d", (d*24+h)*60+m, s)} {
			if got, unlimited, ok := slurmSeconds(text); !ok || unlimited || got != want {
				t.Fatalf("%s is %d (%v, %v), want %d", text, got, unlimited, ok, want)
			}
		}
	})
}
