// Package discover finds model cards below a directory and selects some of them
// by tag or name. Cards are declared in
//
//	models.json                      a list of cards
//	scripts/<dir>/models.json        a list of cards, named <dir>/<name>
//	scripts/<dir>/get_models_json*   an executable that prints such a list
//	models/*.yaml, *.yml, *.json     one card a file, or a list of them
//	models/<dir>/*.yaml …            likewise; models/suites holds no cards
//
// Paths in the cards of scripts/<dir> are relative to that directory and come out
// relative to the root; all other cards have paths relative to the root.
//
// Everything that is wrong with a card is reported with exit code INVALID.
package discover

import (
	"context"
	"time"

	"assay/pkg/card"
)

// Options say where to look and what to select.
type Options struct {
	// Root is the directory that cards are looked for in.
	Root string
	// Tags are selectors, see ParseSelectors. None selects every card.
	Tags []string
	// RequireTags refuses an empty Tags with an error that lists what there is.
	RequireTags bool
	// AllowDynamic runs scripts/<dir>/get_models_json*. It executes code that the
	// root holds.
	AllowDynamic bool
	// DynamicTimeout bounds each of these programs; zero stands for 60 s.
	DynamicTimeout time.Duration
	// Env is the environment of these programs; nil stands for the caller's own.
	Env []string
}

// Found is a card and where it was declared.
type Found struct {
	Name    string // as the manifest will have it: <dir>/<name> for a card of scripts/<dir>
	Scope   string // <dir> for a card of scripts/<dir> or models/<dir>, else empty
	File    string // relative to the root, with slashes
	Pointer string // JSON pointer of the card in File; empty when it is the whole file
	Line    int    // of the card in File, from 1; 0 when not known
	Column  int    // from 1; 0 when not known
	// Digest is "sha256:" and the hex sum of the card as declared: its JSON with
	// sorted keys and without white space. Other cards of the file do not change it.
	Digest    string
	Overrides []Override // arguments given on selection; already part of Raw and Card
	// Raw is the card with every key it has, unknown ones too. Numbers are
	// json.Number, so that they are written again as they were read.
	Raw  map[string]any
	Card card.Card // the same, typed
}

// Result is what Find found.
type Result struct {
	Cards    []Found  // in the order of declaration, files in the order above
	Warnings []string // one sentence each
}

// Find reads all cards below the root and returns the selected ones. The error
// has code INVALID when a card file cannot be read, a selected card is malformed,
// a selector matches nothing or a name is declared twice among the selected.
func Find(ctx context.Context, o Options) (Result, error) {
	cat, err := load(ctx, o)
	if err != nil {
		return Result{}, err
	}
	if len(o.Tags) == 0 && o.RequireTags {
		return Result{}, cat.untagged()
	}
	selectors, err := ParseSelectors(o.Tags)
	if err != nil {
		return Result{}, err
	}
	cards, err := cat.choose(selectors)
	if err != nil {
		return Result{}, err
	}
	return Result{Cards: cards, Warnings: cat.warnings}, nil
}
