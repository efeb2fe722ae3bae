// Package build freezes selected cards into a manifest, build_manifest.json.
//
// The same cards, context, revision and stamp give the same bytes: keys are
// sorted, numbers stay as they were written, and no clock is read.
//
// Beside the keys that a manifest needs, it has
//
//	model_dir                      the models root, relative to the manifest's
//	                               directory, when that is another directory;
//	                               scripts are relative to it
//	stamp                          what the caller wants to mark the build with
//	suite                          the tests that the entries are, in their order
//	built_models/*/card_file       the file that declares the card, from the root
//	built_models/*/card_digest     sha256 of the card as declared
//	built_models/*/git_commit      of the root, when it lies in a repository
//	built_models/*/git_dirty       tracked files differ from that commit
package build

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"assay/pkg/discover"
	"assay/pkg/durable"
	"assay/pkg/exitcode"
	"assay/pkg/suite"
)

// Validate checks the bytes of a manifest.
type Validate func(manifest []byte) error

// Options are the input of Manifest.
type Options struct {
	Cards   []discover.Found
	Root    string         // the models root that Cards were found in
	Output  string         // where the manifest is going to lie; decides relative paths, nothing is written
	Context map[string]any // additional context, see ParseContext
	Git     Revision       // of Root
	Stamp   string         // free text; empty for none
	// Deployment is what a suite says of it; Context wins, block by block and key by key.
	Deployment map[string]any
	// Suite is what Cards are run as, tests in an order; nil: each card is run once.
	Suite *suite.Frozen
	// Images makes the images of cards; nil refuses those that have a dockerfile, and
	// NoBuilder says why there is none and what helps.
	Images    ImageBuilder
	NoBuilder error
	NoImages  bool // freeze every card to run directly on the host
	// Validate has the last word on the result; nil for no check.
	Validate Validate
}

// Result is a manifest and what to tell about it.
type Result struct {
	JSON     []byte
	Summary  map[string]any // what became of the builds, as in the manifest
	Warnings []string       // one sentence each
}

// Manifest freezes the cards. The error has code INVALID when cards or context
// are refused. When an image build or a push failed it has code BUILD_FAILURE, and the
// result then holds the manifest of everything else, with the failures in its
// summary.
func Manifest(ctx context.Context, o Options) (Result, error) {
	if len(o.Cards) == 0 {
		return Result{}, exitcode.Errorf(exitcode.Invalid, "no card is selected: there is nothing to build")
	}
	paths, err := newPaths(o.Root, o.Output)
	if err != nil {
		return Result{}, err
	}
	land, err := landContext(o.Context, o.Deployment)
	if err != nil {
		return Result{}, err
	}
	land.relocate(paths)
	if err := checkImages(o, land); err != nil {
		return Result{}, err
	}
	if err := o.validateDraft(ctx, paths, land); err != nil {
		return Result{}, err
	}
	built, err := freeze(ctx, o, land)
	if err != nil {
		return Result{}, err
	}
	data, err := o.encode(paths, land, built)
	if err != nil {
		return Result{}, err
	}
	return Result{JSON: data, Summary: built.summary(), Warnings: append(land.warnings, missing(o, paths)...)}, built.failure()
}

// validateDraft checks what the manifest is going to be, as if its cards had no
// images: what is wrong with them must not be said after an hour of building.
func (o Options) validateDraft(ctx context.Context, p paths, land landing) error {
	if o.Images == nil || o.NoImages {
		return nil
	}
	o.NoImages = true
	draft, err := freeze(ctx, o, land)
	if err != nil {
		return err
	}
	_, err = o.encode(p, land, draft)
	return err
}

// encode returns the bytes of a valid manifest. One of nothing but failures would run
// nothing: that it is not valid is no news.
func (o Options) encode(p paths, land landing, b built) ([]byte, error) {
	data, err := Encode(assemble(o, p, land, b))
	if err != nil || o.Validate == nil || len(b.models) == 0 {
		return data, err
	}
	if err := o.Validate(data); err != nil {
		return nil, invalid(err)
	}
	return data, nil
}

// Write puts a manifest at path, whole or not at all, readable by its owner only:
// its env_vars may hold what is nobody else's business. The error has code INVALID
// when path cannot be a file, and ERROR when writing failed.
func Write(path string, data []byte) error {
	const mode fs.FileMode = 0o600
	info, err := os.Stat(filepath.Dir(path))
	if err != nil || !info.IsDir() {
		return exitcode.Errorf(exitcode.Invalid, "the manifest cannot be written to %s: %s is no directory; create it first",
			path, filepath.Dir(path))
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return exitcode.Errorf(exitcode.Invalid, "the manifest cannot be written to %s: it exists and is no regular file", path)
	}
	if err := durable.WriteFile(path, data, mode); err != nil {
		return exitcode.Errorf(exitcode.Error, "the manifest cannot be written: %w", err)
	}
	return nil
}

// invalid gives err the code INVALID unless it already has one.
func invalid(err error) error {
	if exitcode.Of(err) != exitcode.Internal {
		return err
	}
	return exitcode.With(exitcode.Invalid, err)
}

// assemble puts the parts of the manifest together.
func assemble(o Options, p paths, land landing, b built) map[string]any {
	doc := map[string]any{
		"built_images":         b.images,
		"built_models":         b.models,
		"context":              land.context,
		"deployment_config":    land.deployment,
		"credentials_required": credentials(b.models),
		"summary":              b.summary(),
	}
	if p.root != "." {
		doc["model_dir"] = p.root
	}
	if o.Stamp != "" {
		doc["stamp"] = o.Stamp
	}
	if o.Suite != nil {
		doc["suite"] = suiteBlock(*o.Suite, b.keys)
	}
	return doc
}

// credentials lists the names of the credentials that the models ask for.
func credentials(models map[string]any) []string {
	set := map[string]bool{}
	for _, m := range models {
		if cred, ok := m.(map[string]any)["cred"].(string); ok && cred != "" {
			set[cred] = true
		}
	}
	list := make([]string, 0, len(set))
	for cred := range maps.Keys(set) {
		list = append(list, cred)
	}
	sort.Strings(list)
	return list
}

// missing warns about programs that are not there. They may be there later, or
// in an image, so it is no error.
func missing(o Options, p paths) []string {
	var out []string
	for _, c := range o.Cards {
		if len(c.Card.Command) > 0 {
			continue
		}
		if c.Card.Scripts == "" {
			out = append(out, fmt.Sprintf("card %q (%s) has neither scripts nor command: there is nothing to run", c.Name, c.File))
			continue
		}
		at := c.Card.Scripts
		if !filepath.IsAbs(at) {
			at = filepath.Join(p.absRoot, at)
		}
		if _, err := os.Stat(at); errors.Is(err, fs.ErrNotExist) {
			out = append(out, fmt.Sprintf("card %q (%s): scripts: %s does not exist in %s%s",
				c.Name, c.File, c.Card.Scripts, o.Root, beside(p, c)))
		}
	}
	return out
}

// beside adds a hint for a path that was meant relative to the card.
func beside(p paths, c discover.Found) string {
	dir := filepath.ToSlash(filepath.Dir(c.File))
	guess := strings.TrimPrefix(dir+"/"+c.Card.Scripts, "./")
	if dir == "." || filepath.IsAbs(c.Card.Scripts) {
		return ""
	}
	if _, err := os.Stat(filepath.Join(p.absRoot, guess)); err != nil {
		return ""
	}
	return fmt.Sprintf("; paths are relative to the models root, was %s meant?", guess)
}
