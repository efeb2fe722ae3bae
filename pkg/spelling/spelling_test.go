package spelling

import (
	"strings"
	"testing"
)

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0},
		{"a", "", 1},
		{"partiton", "partition", 1},
		{"partiiton", "partition", 1},
		{"ab", "ba", 1},
		{"kitten", "sitting", 3},
		{"é", "e", 1},
		{"漢字", "字漢", 1},
		{"abc", "xyz", 3},
		{"abcd", "wxyz", 4},
	} {
		if got := Distance(c.a, c.b, 3); got != c.want {
			t.Errorf("Distance(%q, %q) is %d, want %d", c.a, c.b, got, c.want)
		}
		if got := Distance(c.b, c.a, 3); got != c.want {
			t.Errorf("Distance(%q, %q) is %d, want %d", c.b, c.a, got, c.want)
		}
	}
}

func TestNearest(t *testing.T) {
	words := []string{"partition", "account", "nodes", "time", "sglang-disagg"}
	for word, want := range map[string]string{
		"partiton": "partition", "Partition": "partition", "acount": "account", "node": "nodes", "tmie": "time",
		"sglang_disagg": "sglang-disagg", "xy": "", "": "", "colour": "", "timeout": "", "name": "", "nodelist": "",
		strings.Repeat("x", 1000): "",
	} {
		if got := Nearest(word, words); got != want {
			t.Errorf("Nearest(%q) is %q, want %q", word, got, want)
		}
	}
}
