package document

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"assay/pkg/phrase"
)

// quote puts a text of the document into double quotes for a message, cut to a
// length that a line can hold.
func quote(s string) string { return strconv.Quote(phrase.Clip(s, 60)) }

// or joins words: "a", "a or b", "a, b or c".
func or(words []string, none string) string {
	switch len(words) {
	case 0:
		return none
	case 1:
		return words[0]
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// wantWords names the types of a schema in words. That null is accepted too is
// left out: nobody who wrote a wrong value is helped by it.
func wantWords(types []string) []string {
	var words []string
	for _, t := range types {
		switch t {
		case "integer":
			words = append(words, "an integer")
		case "number":
			words = append(words, "a number")
		case "string":
			words = append(words, "a string")
		case "boolean":
			words = append(words, "true or false")
		case "array":
			words = append(words, "a list")
		case "object":
			words = append(words, "an object")
		}
	}
	if len(words) == 0 {
		return []string{"null"}
	}
	return words
}

// describe shows a value in a message.
func describe(n Node) string {
	switch n.Kind() {
	case KindString:
		return "the string " + quote(n.Text())
	case KindNumber:
		return phrase.Clip(n.Raw(), 40)
	case KindBool, KindNull:
		return n.Raw()
	case KindArray:
		return "a list"
	case KindObject:
		return "an object"
	case KindUnknown:
	}
	return "nothing"
}

// typeFix shows how to write a value of the right type, where that is plain.
func typeFix(want []string, at Node) string {
	switch at.Kind() { //nolint:exhaustive // for the others there is no plain fix
	case KindString:
		text := strings.TrimSpace(at.Text())
		_, intErr := strconv.Atoi(text)
		_, floatErr := strconv.ParseFloat(text, 64)
		lower := strings.ToLower(text)
		switch {
		case slices.Contains(want, "integer") && intErr == nil,
			slices.Contains(want, "number") && floatErr == nil && intErr == nil:
			return "write " + text + " without quotes"
		case slices.Contains(want, "boolean") && (lower == "true" || lower == "false"):
			return "write " + lower + " without quotes"
		case slices.Contains(want, "array"):
			return fmt.Sprintf("write [%s]", quote(at.Text()))
		}
	case KindNumber, KindBool:
		if slices.Contains(want, "string") {
			return "write " + strconv.Quote(at.Raw())
		}
	}
	return ""
}
