package discover

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"sort"
	"strconv"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"

	"assay/pkg/card"
	"assay/pkg/document"
)

// sourceKind says what a file may hold.
type sourceKind int

const (
	unknownSource sourceKind = iota
	listSource               // a list of cards
	cardSource               // a card, or a list of cards
	looseSource              // the same, or something that has nothing to do with cards
)

// source is one file, or the output of one program, that declares cards.
type source struct {
	file   string // relative to the root
	scope  string
	prefix bool // names and paths get the scope put before them
	kind   sourceKind
}

// entry is a card of the catalog: enough is known of it to select it.
type entry struct {
	Found
	tags     card.Tags
	position func(pointer string) (line, column int)
}

// add takes the cards of a document into the catalog.
func (c *catalog) add(s source, doc Decoded) error {
	dec := json.NewDecoder(bytes.NewReader(doc.JSON))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return fmt.Errorf("%s: %w", s.file, err)
	}
	if s.kind == looseSource && !looksLikeCards(v) {
		return nil
	}
	switch v := v.(type) {
	case []any:
		return c.addList(s, doc, v)
	case map[string]any:
		if s.kind != listSource {
			return c.addCard(s, doc, "", v)
		}
	}
	want := "a card, which is an object with a name, or a list of cards"
	if s.kind == listSource {
		want = "a list of cards"
	}
	return fmt.Errorf("%s: %s is expected, not %s", s.file, want, kindOf(v))
}

func (c *catalog) addList(s source, doc Decoded, list []any) error {
	var errs []error
	for i, v := range list {
		pointer := "/" + strconv.Itoa(i)
		m, ok := v.(map[string]any)
		if !ok {
			errs = append(errs, fmt.Errorf("%s: a card is expected, which is an object with a name, not %s",
				place(s.file, doc.Position, pointer), kindOf(v)))
			continue
		}
		errs = append(errs, c.addCard(s, doc, pointer, m))
	}
	return errors.Join(errs...)
}

func (c *catalog) addCard(s source, doc Decoded, pointer string, raw map[string]any) error {
	name, err := cardName(raw)
	if err != nil {
		return fmt.Errorf("%s: %w", place(s.file, doc.Position, pointer), err)
	}
	e := entry{position: doc.Position, Found: Found{
		Name: name, Scope: s.scope, File: s.file, Pointer: pointer, Raw: raw,
	}}
	if e.Digest, err = digest(raw); err != nil {
		return fmt.Errorf("%s: %w", place(s.file, doc.Position, pointer), err)
	}
	e.Line, e.Column = doc.Position(pointer)
	if err := remarshal(raw["tags"], &e.tags); err != nil {
		return fmt.Errorf("%s: card %q: tags: a list of strings, or one string, is expected",
			place(s.file, doc.Position, pointer+"/tags"), name)
	}
	if s.prefix {
		e.prefix()
	}
	c.entries = append(c.entries, e)
	return nil
}

// prefix gives a card of scripts/<dir> its full name and paths from the root.
func (e *entry) prefix() {
	e.Name = e.Scope + "/" + e.Name
	e.Raw["name"] = e.Name
	dir := path.Join("scripts", e.Scope)
	if p, ok := e.Raw["dockerfile"].(string); ok && p != "" {
		e.Raw["dockerfile"] = below(dir, p)
	}
	switch p := e.Raw["scripts"].(type) {
	case string:
		if p != "" || e.Raw["command"] == nil {
			e.Raw["scripts"] = below(dir, p)
		}
	case nil:
		if e.Raw["command"] == nil {
			e.Raw["scripts"] = dir // its run.sh
		}
	}
}

func below(dir, p string) string {
	if path.IsAbs(p) {
		return path.Clean(p)
	}
	return path.Join(dir, p)
}

func cardName(raw map[string]any) (string, error) {
	v, ok := raw["name"]
	if !ok {
		return "", errors.New("the card has no name")
	}
	name, ok := v.(string)
	if !ok {
		return "", fmt.Errorf("name: a string is expected, not %s", kindOf(v))
	}
	if err := card.ValidName(name); err != nil {
		return "", fmt.Errorf("name: %w", err)
	}
	return name, nil
}

// check decodes the card and reports every field that has the wrong shape, in the
// order of the file where it is known.
func (e *entry) check() error {
	type finding struct {
		line, column int
		err          error
	}
	var found []finding
	wrong := func(pointer, message string) {
		full := e.Pointer + pointer
		f := finding{err: fmt.Errorf("%s: card %q: %s: %s", place(e.File, e.position, full),
			e.Name, strings.TrimPrefix(pointer, "/"), message)}
		if e.position != nil {
			f.line, f.column = e.position(full)
		}
		found = append(found, f)
	}
	e.Card = card.Card{}
	if len(found) == 0 && strict(e.Raw, &e.Card) == nil {
		return nil
	}
	// One value at a time, so that one wrong field does not hide the next.
	try := func(k string, v any) {
		err := strict(map[string]any{k: v}, &e.Card)
		if err == nil {
			return
		}
		var at *jsonv2.SemanticError
		pointer := "/" + document.Escape(k)
		if errors.As(err, &at) && at.JSONPointer != "" {
			pointer = string(at.JSONPointer)
		}
		wrong(pointer, explain(err))
	}
	for _, k := range sortedKeys(e.Raw) {
		env, ok := e.Raw[k].(map[string]any)
		if !ok || k != "env_vars" {
			try(k, e.Raw[k])
			continue
		}
		for _, name := range sortedKeys(env) {
			try(k, map[string]any{name: env[name]})
		}
	}
	sort.SliceStable(found, func(i, j int) bool {
		a, b := found[i], found[j]
		return a.line < b.line || a.line == b.line && a.column < b.column
	})
	errs := make([]error, len(found))
	for i, f := range found {
		errs[i] = f.err
	}
	return errors.Join(errs...)
}

// looksLikeCards tells cards from configuration files that lie beside them.
func looksLikeCards(v any) bool {
	if list, ok := v.([]any); ok && len(list) > 0 {
		v = list[0]
	}
	m, ok := v.(map[string]any)
	if !ok {
		return false
	}
	for _, k := range []string{"scripts", "command", "dockerfile", "n_gpus", "multiple_results"} {
		if _, ok := m[k]; ok {
			return true
		}
	}
	return false
}

func digest(raw map[string]any) (string, error) {
	b, err := json.Marshal(raw)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}

func remarshal(from, to any) error {
	b, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return json.Unmarshal(b, to)
}

func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

// place is file:line:column as far as it is known.
func place(file string, position func(string) (int, int), pointer string) string {
	if position != nil {
		if line, col := position(pointer); line > 0 {
			return fmt.Sprintf("%s:%d:%d", file, line, col)
		}
	}
	if pointer != "" {
		return file + " at " + pointer
	}
	return file
}
