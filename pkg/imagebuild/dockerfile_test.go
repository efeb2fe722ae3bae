package imagebuild

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestBaseImage(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		args map[string]string
		want string
	}{
		"plain":                {text: "FROM scratch\n", want: "scratch"},
		"none":                 {text: "RUN true\n", want: ""},
		"argument":             {text: "ARG BASE_DOCKER=rocm/pytorch\nFROM $BASE_DOCKER\n", want: "rocm/pytorch"},
		"given argument":       {text: "ARG BASE_DOCKER=rocm/pytorch\nFROM ${BASE_DOCKER}:1\n", args: map[string]string{"BASE_DOCKER": "x"}, want: "x:1"},
		"quoted":               {text: "ARG A=\"rocm/x\"\nFROM \"$A\"\n", want: "rocm/x"},
		"argument of argument": {text: "ARG V=6.1\nARG B=rocm:${V}\nFROM $B\n", want: "rocm:6.1"},
		"not declared":         {text: "FROM $BASE\n", args: map[string]string{"BASE": "x"}, want: "$BASE"},
		"default in place":     {text: "FROM ${BASE:-alpine}\n", want: "alpine"},
		"default not needed":   {text: "ARG BASE=b\nFROM ${BASE:-alpine}\n", want: "b"},
		"empty":                {text: "ARG BASE=\nFROM ${BASE:-alpine}${BASE-x}\n", want: "alpine"},
		"replaced when set":    {text: "ARG BASE=b\nFROM a${BASE:+c}${NONE:+d}\n", want: "ac"},
		"platform":             {text: "FROM --platform=linux/amd64 debian AS x\n", want: "debian"},
		"last stage":           {text: "FROM golang AS build\nFROM debian\nCOPY --from=build /x /x\n", want: "debian"},
		"stage on a stage":     {text: "FROM golang AS Build\nRUN x\nFROM build as more\nFROM more\n", want: "golang"},
		"small letters":        {text: "from busybox\n", want: "busybox"},
		"continued":            {text: "FROM \\\n  # a comment\n  debian:12 \\\n  AS x\n", want: "debian:12"},
		"argument of a stage":  {text: "ARG A=one\nFROM a\nARG A=two\nFROM $A\n", want: "one"},
		"document inside":      {text: "FROM a\nRUN <<EOT\nFROM b\nEOT\nRUN cat <<-\"END\" >x\n\tFROM c\n\tEND\n", want: "a"},
		"windows lines":        {text: "FROM debian\r\nRUN x\r\n", want: "debian"},
	} {
		if got := baseImage(test.text, test.args); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func FuzzBaseImage(f *testing.F) {
	f.Add("ARG A=${B:-x}\nFROM --p \\\n $A AS b\nFROM b")
	f.Fuzz(func(_ *testing.T, text string) { baseImage(text, map[string]string{"A": "$A"}) })
}

func TestContextComment(t *testing.T) {
	for text, want := range map[string]map[string]string{
		"# CONTEXT {'gpu_vendor': 'AMD', 'guest_os': 'UBUNTU'}\nFROM x":   {"gpu_vendor": "AMD", "guest_os": "UBUNTU"},
		"# a licence\n#\n# CONTEXT {\"gpu_vendor\":\"NVIDIA\"}\r\nFROM x": {"gpu_vendor": "NVIDIA"},
		"1\n2\n3\n4\n# CONTEXT {'a': 'b'}":                                {"a": "b"},
		"1\n2\n3\n4\n5\n# CONTEXT {'a': 'b'}":                             {},
		"FROM x":                                                          {},
		"":                                                                {},
	} {
		if diff := cmp.Diff(want, contextComment(text)); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
}
