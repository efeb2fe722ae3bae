package hostlist_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"assay/pkg/hostlist"
)

// testCase is one line of testdata/cases.json. What scontrol of SLURM 22.05
// does with the list: "same" as hosts, "refuses" it, or "differs" because it
// prints names that nobody wrote.
type testCase struct {
	List     string   `json:"list"`
	Scontrol string   `json:"scontrol"`
	Hosts    []string `json:"hosts"`
	Error    string   `json:"error"`
	Offset   int      `json:"offset"`
}

func cases(t *testing.T) []testCase {
	t.Helper()
	data, err := os.ReadFile("testdata/cases.json")
	if err != nil {
		t.Fatal(err)
	}
	var out []testCase
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	if len(out) < 80 {
		t.Fatalf("only %d cases", len(out))
	}
	return out
}

func TestCases(t *testing.T) {
	for _, c := range cases(t) {
		hosts, err := hostlist.Expand(c.List)
		first, ferr := hostlist.First(c.List)
		if c.Error != "" {
			var at *hostlist.Error
			if !errors.As(err, &at) || at.Message != c.Error || at.Offset != c.Offset || hosts != nil {
				t.Errorf("%q: %q, %v; want byte %d: %s", c.List, hosts, err, c.Offset, c.Error)
			}
			if ferr == nil || err == nil || ferr.Error() != err.Error() {
				t.Errorf("%q: the first: %v; all: %v", c.List, ferr, err)
			}
			continue
		}
		if d := cmp.Diff(c.Hosts, hosts); err != nil || d != "" {
			t.Errorf("%q: %v (-want +got):\n%s", c.List, err, d)
		}
		if ferr != nil || first != c.Hosts[0] {
			t.Errorf("%q: the first is %q, %v; want %q", c.List, first, ferr, c.Hosts[0])
		}
	}
}

func TestBounds(t *testing.T) {
	hosts, err := hostlist.Expand("n[1-1000][0001-1000]")
	if err != nil || len(hosts) != hostlist.MaxHosts || hosts[1000] != "n20001" || hosts[len(hosts)-1] != "n10001000" {
		t.Errorf("%d hosts, %v", len(hosts), err)
	}
	for list, want := range map[string]string{
		"n[1-1000][0001-1000],m":                     "byte 21: more than 1000000 hosts up to here",
		strings.Repeat("n[0-99999999999999999]", 40): "byte 0: more than 1000000 hosts up to here",
		"n[0-999999999999999999]":                    "byte 0: more than 1000000 hosts up to here",
		"a," + strings.Repeat("x", 254) + "[9-10]":   "byte 2: a host name of 256 bytes; at most 255",
	} {
		_, err := hostlist.Expand(list)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v; want %s", list, err, want)
		}
		if len(err.Error()) > 200 {
			t.Errorf("%.40q: an error of %d bytes", list, len(err.Error()))
		}
	}
	if hosts, err := hostlist.Expand(strings.Repeat("x", 254) + "[8-9]"); err != nil || len(hosts) != 2 {
		t.Errorf("%d hosts, %v", len(hosts), err)
	}
}

func TestCompress(t *testing.T) {
	for _, c := range []struct {
		hosts []string
		want  string
	}{
		{nil, ""},
		{[]string{"a"}, "a"},
		{[]string{"n1"}, "n1"},
		{[]string{"n01", "n02", "n03"}, "n[01-03]"},
		{[]string{"n8", "n9", "n10", "n011"}, "n[8-10,011]"},
		{[]string{"n3", "n1", "n1", "m", "m2", "m"}, "n[3,1,1],m,m2,m"},
		{[]string{"rack0_blade01", "rack0_blade02", "rack1_blade01"}, "rack0_blade[01-02],rack1_blade01"},
		{[]string{"1", "2", "n1-ib", "n2-ib"}, "[1-2],n1-ib,n2-ib"},
	} {
		if got := hostlist.Compress(c.hosts); got != c.want {
			t.Errorf("%q: %q, want %q", c.hosts, got, c.want)
		}
	}
}

func TestExpandUndoesCompress(t *testing.T) {
	host := rapid.Custom(func(t *rapid.T) string {
		name := rapid.StringMatching(`(n|m|rack0_)?[0-9]{1,4}(-ib)?|login|n[0-9]{17,21}`).Draw(t, "host")
		return name
	})
	run := rapid.Custom(func(t *rapid.T) []string { // neighbours, as clusters have them
		from, width := rapid.IntRange(0, 1200).Draw(t, "from"), rapid.IntRange(1, 5).Draw(t, "width")
		var hosts []string
		for i := range rapid.IntRange(1, 12).Draw(t, "length") {
			hosts = append(hosts, fmt.Sprintf("n%0*d", width, from+i))
		}
		return hosts
	})
	rapid.Check(t, func(t *rapid.T) {
		hosts := rapid.SliceOfN(host, 1, 20).Draw(t, "hosts")
		for _, more := range rapid.SliceOfN(run, 0, 4).Draw(t, "runs") {
			hosts = append(hosts, more...)
		}
		list := hostlist.Compress(hosts)
		got, err := hostlist.Expand(list)
		if d := cmp.Diff(hosts, got); err != nil || d != "" {
			t.Fatalf("%q: %v\n%s", list, err, d)
		}
	})
}

// A list of lists is the lists one after the other.
func TestConcatenation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := randomList(t), randomList(t)
		ha, erra := hostlist.Expand(a)
		hb, errb := hostlist.Expand(b)
		both, err := hostlist.Expand(a + "," + b)
		if d := cmp.Diff(append(ha, hb...), both); erra != nil || errb != nil || err != nil || d != "" {
			t.Fatalf("%q and %q: %v %v %v\n%s", a, b, erra, errb, err, d)
		}
	})
}

// randomList draws a list that SLURM takes too.
func randomList(t *rapid.T) string {
	number := rapid.IntRange(0, 120)
	padded := func() (string, int) {
		n := number.Draw(t, "number")
		return fmt.Sprintf("%0*d", rapid.IntRange(1, 4).Draw(t, "width"), n), n
	}
	var words []string
	for range rapid.IntRange(1, 4).Draw(t, "elements") {
		word := ""
		for range rapid.IntRange(0, 3).Draw(t, "brackets") {
			var spans []string
			for range rapid.IntRange(1, 3).Draw(t, "spans") {
				text, n := padded()
				if rapid.Bool().Draw(t, "range") {
					text += fmt.Sprintf("-%0*d", rapid.IntRange(1, 4).Draw(t, "width"), n+rapid.IntRange(0, 4).Draw(t, "more"))
				}
				spans = append(spans, text)
			}
			word += rapid.SampledFrom([]string{"n", "rack", "_b", "-", "a.b", ""}).Draw(t, "text") + "[" + strings.Join(spans, ",") + "]"
		}
		if word == "" {
			text, _ := padded()
			word = rapid.SampledFrom([]string{"n", "login", "x-"}).Draw(t, "name") + text
		}
		words = append(words, word)
	}
	return strings.Join(words, ",")
}

func FuzzExpand(f *testing.F) {
	for _, seed := range []string{"rack[0-1]_blade[01-03],n1", "n[0-10:2]-ib", "n[1", "n[3-1]", "n[1-1000000]", "a b\tc", ",", "[[", "n[1-2][3-4][5-6]"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, list string) {
		first, ferr := hostlist.First(list)
		hosts, err := hostlist.Expand(list)
		if (err == nil) != (ferr == nil) {
			t.Fatalf("%q: all: %v; the first: %v", list, err, ferr)
		}
		if err != nil {
			var at *hostlist.Error
			if !errors.As(err, &at) || at.Offset < 0 || at.Offset > len(list) {
				t.Fatalf("%q: %v", list, err)
			}
			return
		}
		if len(hosts) == 0 || len(hosts) > hostlist.MaxHosts || hosts[0] != first {
			t.Fatalf("%q: %d hosts, the first is %q", list, len(hosts), first)
		}
		for _, host := range hosts {
			if host == "" || len(host) > hostlist.MaxName || strings.ContainsAny(host, ", \t\n[]\x00") {
				t.Fatalf("%q: a host %q", list, host)
			}
		}
	})
}

func BenchmarkExpand(b *testing.B) {
	for b.Loop() {
		if _, err := hostlist.Expand("rack[00-99]_blade[01-40]"); err != nil {
			b.Fatal(err)
		}
	}
}
