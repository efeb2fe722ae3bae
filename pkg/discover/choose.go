package discover

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"

	"assay/pkg/exitcode"
)

const (
	maxShown = 20 // tags, and names, that an error lists at most
	maxNear  = 5  // suggestions
)

// choose selects, checks and completes cards, in the order of declaration. No
// selector selects all.
func (c *catalog) choose(selectors []Selector) ([]Found, error) {
	if len(selectors) == 0 {
		selectors = []Selector{{Text: All, Target: All}}
		if len(c.entries) == 0 {
			return nil, nil
		}
	}
	chosen := make([]bool, len(c.entries))
	given := make([][]Override, len(c.entries))
	var errs []error
	for _, s := range selectors {
		hits, overrides := c.match(s)
		if len(hits) == 0 {
			errs = append(errs, c.nothing(s))
		}
		for _, i := range hits {
			chosen[i] = true
			given[i] = append(given[i], overrides...)
		}
	}
	var out []*entry
	for i, yes := range chosen {
		if !yes {
			continue
		}
		e := c.entries[i]
		err := e.complete(given[i])
		errs = append(errs, err)
		out = append(out, &e)
	}
	errs = append(errs, duplicates(out)...)
	if err := errors.Join(errs...); err != nil {
		return nil, exitcode.With(exitcode.Invalid, err)
	}
	return foundOf(out), nil
}

func foundOf(entries []*entry) []Found {
	out := make([]Found, len(entries))
	for i, e := range entries {
		out[i] = e.Found
	}
	return out
}

// complete applies the overrides and decodes the card.
func (e *entry) complete(overrides []Override) error {
	for _, o := range overrides {
		i := slices.IndexFunc(e.Overrides, func(p Override) bool { return p.Key == o.Key })
		if i < 0 {
			e.Overrides = append(e.Overrides, o)
		} else if e.Overrides[i] != o {
			return fmt.Errorf("card %q is selected with two values of %s, %s and %s; build a manifest for each",
				e.Name, o.Key, e.Overrides[i].shown(), o.shown())
		}
	}
	if err := e.override(); err != nil {
		return err
	}
	return e.check()
}

func (o Override) shown() string {
	if o.Flag {
		return "none"
	}
	return fmt.Sprintf("%q", o.Value)
}

// match returns the cards that a selector means and the arguments it gives them.
func (c *catalog) match(s Selector) ([]int, []Override) {
	if len(s.Overrides) > 0 && s.Overrides[0].Flag {
		if hits := c.scoped(s.Target, s.Overrides[0].Key); len(hits) > 0 {
			return hits, s.Overrides[1:]
		}
	}
	if hits := c.filter(func(e *entry) bool { return e.Name == s.Target || e.tagged(s.Target) }); len(hits) > 0 {
		return hits, s.Overrides
	}
	scope, target, _ := strings.Cut(s.Target, "/")
	return c.scoped(scope, target), s.Overrides
}

// scoped returns the cards of one directory that have the tag or name.
func (c *catalog) scoped(scope, target string) []int {
	if scope == "" || target == "" {
		return nil
	}
	return c.filter(func(e *entry) bool {
		return e.Scope == scope && (e.Name == target || e.Name == scope+"/"+target || e.tagged(target))
	})
}

func (c *catalog) filter(keep func(*entry) bool) []int {
	var out []int
	for i := range c.entries {
		if keep(&c.entries[i]) {
			out = append(out, i)
		}
	}
	return out
}

func (e *entry) tagged(tag string) bool { return tag == All || slices.Contains(e.tags, tag) }

// duplicates reports names that are declared more than once.
func duplicates(entries []*entry) []error {
	var errs []error
	first := map[string]*entry{}
	for _, e := range entries {
		if was, twice := first[e.Name]; twice {
			errs = append(errs, fmt.Errorf("card %q is declared twice: in %s and in %s; rename one of them",
				e.Name, was.where(), e.where()))
			continue
		}
		first[e.Name] = e
	}
	return errs
}

func (e *entry) where() string { return place(e.File, e.position, e.Pointer) }

// words returns everything that a selector could have named, sorted.
func (c *catalog) words() (tags, names []string) {
	for _, e := range c.entries {
		names = append(names, e.Name)
		tags = append(tags, e.tags...)
	}
	sort.Strings(tags)
	sort.Strings(names)
	return slices.Compact(tags), slices.Compact(names)
}

// nothing is the error for a selector that matches no card.
func (c *catalog) nothing(s Selector) error {
	var b strings.Builder
	fmt.Fprintf(&b, "no card has the tag or name %q", s.Target)
	switch near := c.near(s.Target); {
	case len(c.entries) == 0:
		fmt.Fprintf(&b, ": there are no cards in %s", c.root)
	case len(near) > 0:
		fmt.Fprintf(&b, "; near it are %s", strings.Join(near, ", "))
	default:
		fmt.Fprintf(&b, "; %s", c.known())
	}
	if len(c.notRun) > 0 {
		fmt.Fprintf(&b, " (%s was not run; --allow-dynamic runs it)", strings.Join(c.notRun, ", "))
	}
	return errors.New(b.String())
}

// near returns what a selector may have meant: the cards of that name in any
// directory, then tags and names that are spelled alike.
func (c *catalog) near(target string) []string {
	tags, names := c.words()
	var out []string
	for _, n := range names {
		if strings.HasSuffix(n, "/"+target) && len(out) < maxNear { // the directory was left out
			out = append(out, n)
		}
	}
	candidates := slices.Concat(tags, names)
	for _, e := range c.entries {
		if e.Scope == "" {
			continue
		}
		candidates = append(candidates, e.Scope+"/"+All)
		if strings.Contains(target, "/") {
			for _, t := range e.tags {
				candidates = append(candidates, e.Scope+"/"+t)
			}
		}
	}
	for _, n := range Nearest(target, candidates, maxNear) {
		if len(out) < maxNear && !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}

// untagged is the error for a selection that was not made.
func (c *catalog) untagged() error {
	if len(c.entries) == 0 {
		return exitcode.Errorf(exitcode.Invalid, "there are no cards in %s", c.root)
	}
	return exitcode.Errorf(exitcode.Invalid, "nothing is selected: give --tags with a tag, a name, or all; %s", c.known())
}

func (c *catalog) known() string {
	tags, names := c.words()
	return "tags: " + enumerate(tags) + "; names: " + enumerate(names)
}

func enumerate(words []string) string {
	if len(words) == 0 {
		return "none"
	}
	if extra := len(words) - maxShown; extra > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(words[:maxShown], ", "), extra)
	}
	return strings.Join(words, ", ")
}
