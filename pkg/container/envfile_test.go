package container_test

import (
	"bufio"
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"assay/pkg/container"
)

// readEnvFile reads an env-file as docker and podman both do: a line is a name and
// what follows the first =.
func readEnvFile(t interface{ Fatalf(string, ...any) }, data []byte) map[string]string {
	got := map[string]string{}
	for in := bufio.NewScanner(bytes.NewReader(data)); in.Scan(); {
		line := strings.TrimLeft(in.Text(), " \t")
		name, value, ok := strings.Cut(line, "=")
		if !ok || !utf8.ValidString(line) || strings.HasPrefix(line, "#") || strings.ContainsAny(name, " \t") || len(line) >= bufio.MaxScanTokenSize {
			t.Fatalf("an engine does not take the line %q", line)
		}
		if trimmed := strings.TrimSpace(value); trimmed != value || strings.HasPrefix(value, `"`) || strings.HasPrefix(value, "'") {
			t.Fatalf("an engine may change the value of %q", line)
		}
		got[name] = value
	}
	return got
}

// TestDivideLosesNothing gives any environment to either way, each variable to one.
func TestDivideLosesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := map[string]string{}
		var env []string
		value := rapid.OneOf(rapid.String(), rapid.StringMatching("[ -~\n\r\t\"']{0,40}"), rapid.Map(rapid.SliceOf(rapid.ByteRange(1, 255)), func(b []byte) string { return string(b) }))
		for range rapid.IntRange(0, 8).Draw(t, "variables") {
			name := rapid.OneOf(rapid.StringMatching("V[A-Z_0-9]{0,4}"), rapid.StringMatching("[#a. -]{1,4}")).Draw(t, "name")
			v := strings.ReplaceAll(value.Draw(t, "value"), "\x00", "")
			env = append(env, name+"="+v)
			want[name] = v
		}
		got := container.Divide(env)
		all := readEnvFile(t, got.File)
		if len(got.Names) != len(got.Env) {
			t.Fatalf("%d names and %d values", len(got.Names), len(got.Env))
		}
		for i, kv := range got.Env {
			name, v, _ := strings.Cut(kv, "=")
			if _, twice := all[name]; twice || got.Names[i] != name {
				t.Fatalf("%s is given twice, or as %s", name, got.Names[i])
			}
			if !utf8.ValidString(kv) {
				t.Fatalf("no engine carries %q", kv)
			}
			all[name] = v
		}
		var inside []string
		for name, v := range all {
			inside = append(inside, name+"="+v)
		}
		inside, err := container.Unpack(inside)
		if err != nil {
			t.Fatalf("%v", err)
		}
		clear(all)
		for _, kv := range inside {
			name, v, _ := strings.Cut(kv, "=")
			all[name] = v
		}
		if len(all) != len(want) {
			t.Fatalf("%d variables, want %d", len(all), len(want))
		}
		for name, v := range want {
			if all[name] != v {
				t.Fatalf("%s is %q, want %q", name, all[name], v)
			}
		}
	})
}

// TestDivideShields keeps from the engine's command what it would obey itself.
func TestDivideShields(t *testing.T) {
	for _, name := range []string{"PATH", "LD_PRELOAD", "DOCKER_HOST", "https_proxy", "HOME", "XDG_RUNTIME_DIR"} {
		kv := name + "=s3cret\nx"
		got := container.Divide([]string{kv})
		if len(got.Names) != 1 || got.Names[0] != container.PackedName || strings.Contains(got.Env[0], "s3cret") {
			t.Errorf("%s: %q", name, got)
		}
		inside, err := container.Unpack(append([]string{"A=b"}, got.Env...))
		if err != nil || len(inside) != 2 || inside[1] != kv {
			t.Errorf("%s: %q inside (%v)", name, inside, err)
		}
	}
	if _, err := container.Unpack([]string{container.PackedName + "=?"}); err == nil {
		t.Error("nonsense is unpacked")
	}
}
