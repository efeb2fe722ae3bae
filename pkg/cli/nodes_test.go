package cli

import "testing"

func TestNamesOf(t *testing.T) {
	for want, nodes := range map[string][]string{
		"1 node (n1) is a name for ranks on this one machine":      {"n1"},
		"2 nodes (n[1-2]) are names for ranks on this one machine": {"n1", "n2"},
	} {
		if got := namesOf(nodes); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
