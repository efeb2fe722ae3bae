package environ_test

import (
	"testing"

	"assay/pkg/environ"
)

func TestGet(t *testing.T) {
	env := []string{"A=1", "AB=2", "A=3=4", "=C", "D", "E="}
	for name, want := range map[string]string{"A": "3=4", "AB": "2", "B": "", "D": "", "E": ""} {
		if got := environ.Get(env, name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}
