package document_test

import (
	"strings"
	"testing"

	"assay/pkg/document"
)

// TestYAMLMistakesHaveTheirPlace: the place is that of the mistake, not of the
// construct around it.
func TestYAMLMistakesHaveTheirPlace(t *testing.T) {
	steps := func(n int) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(strings.Repeat(" ", i) + "a:\n")
		}
		return b.String()
	}
	const deep = "DEPTH the nesting is deeper than 1000 levels"
	for _, c := range []struct{ name, data, want string }{
		{"unknown alias", "a: 1\nb:\n  c: *nope\n", "3:6 SYNTAX the alias *nope has no anchor &nope before it"},
		{"unknown alias in a list", "a: &x 1\né: [*x, *no, y]\n", "2:9 SYNTAX the alias *no has no anchor &no before it"},
		{"unknown alias in a large file", strings.Repeat("# "+strings.Repeat("x", 998)+"\n", 400) + "b: *nope\n", "401:4 SYNTAX the alias *nope has no anchor &nope before it"},
		{"unknown alias with CRLF", "a: 1\r\nb: *n\r\n", "2:4 SYNTAX the alias *n has no anchor &n before it"},
		{"not UTF-8", "a: 1\nb: \"é\xff\"\n", "2:6 SYNTAX the file is not UTF-8 here"},
		{"not UTF-8, late", strings.Repeat("# é\n", 9000) + "b: \xff\n", "9001:4 SYNTAX the file is not UTF-8 here"},
		{"control character", "a: 1\nb: x\x01y\n", `2:5 SYNTAX YAML may not contain the control character '\x01' as it stands`},
		{"list not closed", "a: 1\nb: [1, [2]\nc: 3\n", "2:4 SYNTAX the [ that opens here is not closed"},
		{"list not closed at the end", "a: 1\nb:\n  c: [1, 2\n", "3:6 SYNTAX the [ that opens here is not closed"},
		{"object not closed", "a: 'x: {'\nb: {x: 1 # }\nc: 3\n", "2:4 SYNTAX the { that opens here is not closed"},
		{"quote not closed", "a: it's \" ok\nb: 'x''\nc: 3\n", "2:4 SYNTAX the ' that opens here is not closed"},
		{"double quote not closed", "a: 1\nb: \"x\\\"\nc: 3\n", `2:4 SYNTAX the " that opens here is not closed`},
		{"indentation", "a:\n  b: 1\n c: 2\n", "3:2 SYNTAX did not find expected key"},
		{"indentation of a list", "a:\n  - b: 1\n    c: 2\n   d: 3\n", "4:4 SYNTAX did not find expected '-' indicator"},
		{"a list among keys", "a: 1\n- b\n", "2:1 SYNTAX did not find expected key"},
		{"one bracket too many", "a: [1, 2]]\n", "1:10 SYNTAX did not find expected key"},
		{"text after a quote", "a: 1\nb: \"c\" d\n", "2:8 SYNTAX did not find expected key"},
		{"comma missing", "a: {b: 1 c: 2}\n", "1:11 SYNTAX did not find expected ',' or '}'"},
		{"escape", "a: 1\nb: \"x\\q\"\n", "2:7 SYNTAX found unknown escape character"},
		{"tab", "a:\n  b: 1\n\tc: 1\n", "3:1 SYNTAX found a tab character that violates indentation"},
		{"second colon", "a: 1\nb: c: d\n", "2:5 SYNTAX mapping values are not allowed in this context"},
		{"percent sign", "a: |\n  [ ' \" {\nb: %x\n", "3:4 SYNTAX found character that cannot start any token"},
		{"no colon", "a: 1\nbc\nc: 1\n", "2:1 SYNTAX could not find expected ':'"},
		{"conflict mark", "a: 1\n<<<<<<< HEAD\nb: 1\n", "2:1 SYNTAX could not find expected ':'"},
		{"in the second document", "a: 1\n---\nb: @x\n", "3:4 SYNTAX found character that cannot start any token"},
		{"an alias of itself", "a: &a\n  b: [1, *a]\n", "2:10 YAML_UNSUPPORTED the alias *a stands inside of what it stands for"},
		{"deep lists in brackets", "a: " + strings.Repeat("[", 100_000), "1:1004 " + deep},
		{"deep lists of dashes", strings.Repeat("- ", 20_000), "1:2001 " + deep},
		{"deep lists of dashes, read", strings.Repeat("- ", 2_000), "1:2001 " + deep},
		{"deep objects", steps(1100), "1001:1001 " + deep},
	} {
		t.Run(c.name, func(t *testing.T) {
			doc, problems := document.Parse("a.yaml", []byte(c.data))
			if got := say(problems); doc != nil || got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			for _, p := range problems {
				if len(p.Pointer) > 100 {
					t.Errorf("a pointer of %d characters", len(p.Pointer))
				}
			}
		})
	}
}

// TestYAMLSurprises: what YAML changes or leaves out is said.
func TestYAMLSurprises(t *testing.T) {
	for data, want := range map[string]string{
		"a: !!binary aGk=\n":          "1:4 YAML_UNSUPPORTED the tag !!binary is ignored: the value is taken as it is written",
		"a:\n- !mine {b: 1}\n":        "2:3 YAML_UNSUPPORTED the tag !mine is ignored: the value is taken as it is written",
		"a: &x 1\nb: &x 2\n":          "2:4 YAML_UNSUPPORTED the anchor &x is already on line 1; an alias means the one that stands nearest before it",
		"timeout: 010\n":              "1:10 YAML_UNSUPPORTED 010 is the number 8 to YAML",
		"n: 1_000\n":                  "1:4 YAML_UNSUPPORTED 1_000 is the number 1000 to YAML",
		"n: [0x10, 0.5, 0, -1, 1e3]":  "1:5 YAML_UNSUPPORTED 0x10 is the number 16 to YAML",
		"a: !!str 010\nb: '1_0'\n":    "",
		"env_vars: {A: 010, B: 1_0}":  "",
		"a: &x {n: 010}\nb: [*x, *x]": "1:11 YAML_UNSUPPORTED 010 is the number 8 to YAML",
	} {
		doc, problems := document.Parse("a.yaml", []byte(data))
		if doc == nil {
			t.Fatalf("%s: %s", data, say(problems))
		}
		if got := say(problems); got != want {
			t.Errorf("%q:\ngot  %s\nwant %s", data, got, want)
		}
		for _, p := range problems {
			if !p.Warning {
				t.Errorf("%q: not a warning", data)
			}
		}
	}
	if _, problems := document.Parse("a.yaml", []byte("a: 1\nb: 1e999\n")); say(problems) != "2:4 NUMBER_RANGE 1e999 is not a finite number: its magnitude is beyond 1.8e308" {
		t.Error(say(problems))
	}
}

// TestYAMLEnvironmentIsText: a program gets what the file has.
func TestYAMLEnvironmentIsText(t *testing.T) {
	doc, problems := document.Parse("a.yaml", []byte(`
base: &base {MERGED: 007}
built_models:
  a:
    env_vars: {OCT: 010, SEP: 1_000, HEX: 0x10, EXP: 1e3, BIG: 1e999, YES: yes, YELL: TRUE, QUOTED: "010", DATE: 2026-01-31, NIL: ~, _note: [1, 010]}
context:
  docker_env_vars: {<<: *base, INF: .inf}
  docker_build_arg:
    V: 1.50
  other: 1.50
`))
	if doc == nil {
		t.Fatal(say(problems))
	}
	for pointer, want := range map[string]string{
		"/built_models/a/env_vars":  `{"OCT":"010","SEP":"1_000","HEX":"0x10","EXP":"1e3","BIG":"1e999","YES":"yes","YELL":"TRUE","QUOTED":"010","DATE":"2026-01-31","NIL":null,"_note":[1,8]}`,
		"/context/docker_env_vars":  `{"INF":".inf","MERGED":"007"}`,
		"/context/docker_build_arg": `{"V":"1.50"}`,
		"/context/other":            `1.50`,
	} {
		if got := doc.Find(pointer).Raw(); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", pointer, got, want)
		}
	}
}
