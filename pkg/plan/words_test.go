package plan_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
	"pgregory.net/rapid"

	"assay/pkg/plan"
)

func TestSplitWords(t *testing.T) {
	for _, c := range []struct {
		in   string
		want []string
	}{
		{"", nil},
		{" \t\n ", nil},
		{"a b\tc\nd", []string{"a", "b", "c", "d"}},
		{`''`, []string{""}},
		{`"" a`, []string{"", "a"}},
		{`'a b'"c d"e`, []string{"a bc de"}},
		{`$HOME ${X:-y} $(id) *.py ?[a] ~`, []string{"$HOME", "${X:-y}", "$(id)", "*.py", "?[a]", "~"}},
		{"a|b ; c > d && e # f `g`", []string{"a|b", ";", "c", ">", "d", "&&", "e", "#", "f", "`g`"}},
		{`"$HOME" "a\"b" "\$x" "\n" "\\"`, []string{"$HOME", `a"b`, "$x", `\n`, `\`}},
		{`a\ b \' \\ \n`, []string{"a b", "'", `\`, "n"}},
		{"a\\\nb \"c\\\nd\"", []string{"ab", "cd"}},
		{`--opt='{"a": [1, 2]}'`, []string{`--opt={"a": [1, 2]}`}},
		{"größe '日本 語'", []string{"größe", "日本 語"}},
	} {
		got, err := plan.SplitWords(c.in)
		if err != nil {
			t.Errorf("%q: %v", c.in, err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", c.in, diff)
		}
	}
}

func TestSplitWordsUnbalanced(t *testing.T) {
	for in, want := range map[string]string{`it's`: "single quote", `a "b`: "double quote", `"a\"`: "double quote", `a\`: "backslash"} {
		if words, err := plan.SplitWords(in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %q, %v; want an error about a %s", in, words, err, want)
		}
	}
}

func TestSplitWordsUndoesQuoting(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOf(rapid.String()).Draw(t, "words")
		var single, library []string
		for _, w := range words {
			s := "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
			single = append(single, s)
			if q, err := syntax.Quote(w, syntax.LangPOSIX); err == nil {
				s = q
			}
			library = append(library, s)
		}
		for _, quoted := range [][]string{single, library} {
			text := strings.Join(quoted, " \t")
			got, err := plan.SplitWords(text)
			if err != nil {
				t.Fatalf("%q: %v", text, err)
			}
			if diff := cmp.Diff(words, got, cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("%q (-want +got):\n%s", text, diff)
			}
		}
	})
}

// TestSplitWordsAgreesWithAShell takes texts of nothing but letters, blanks,
// quotes and backslashes, in which a shell has nothing to expand.
func TestSplitWordsAgreesWithAShell(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOf(rapid.SampledFrom([]string{"a", "b", " ", "\t", "'", `"`, `\`, "=", "-"})).Draw(t, "text"), "")
		words, err := shellWords(text)
		got, gotErr := plan.SplitWords(text)
		if gotErr != nil && strings.Contains(gotErr.Error(), "backslash") {
			t.Skip("shells differ in what a last backslash means")
		}
		if (err != nil) != (gotErr != nil) {
			t.Fatalf("%q: shell says %v, SplitWords %v", text, err, gotErr)
		}
		if err != nil {
			return
		}
		want, err := expand.Fields(&expand.Config{}, words...)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("%q (-shell +got):\n%s", text, diff)
		}
	})
}

// shellWords parses a text as a POSIX shell would.
func shellWords(text string) ([]*syntax.Word, error) {
	var words []*syntax.Word
	for w, err := range syntax.NewParser(syntax.Variant(syntax.LangPOSIX)).WordsSeq(strings.NewReader(text)) {
		if err != nil {
			return nil, err
		}
		words = append(words, w)
	}
	return words, nil
}
