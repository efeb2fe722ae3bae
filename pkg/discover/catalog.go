package discover

import (
	"context"

	"assay/pkg/exitcode"
	"assay/pkg/spelling"
)

// Catalog is every card below a root, for what names its cards one by one.
type Catalog struct{ c *catalog }

// Load reads all cards below o.Root; o.Tags and o.RequireTags are not looked at. The
// error has code INVALID when the root or a card file cannot be read.
func Load(ctx context.Context, o Options) (Catalog, error) {
	c, err := load(ctx, o)
	if err != nil {
		return Catalog{}, err
	}
	return Catalog{c}, nil
}

// Root is the directory that the cards were found in.
func (c Catalog) Root() string { return c.c.root }

// Warnings are what there is to tell about the sources, one sentence each.
func (c Catalog) Warnings() []string { return c.c.warnings }

// NotRun are the programs that may know more cards and were not allowed to run.
func (c Catalog) NotRun() []string { return c.c.notRun }

// Named returns the card of a name, and whether there is one. The error has code
// INVALID when the card is malformed, or two have the name.
func (c Catalog) Named(name string) (card Found, known bool, err error) {
	var hits []*entry
	for _, i := range c.c.filter(func(e *entry) bool { return e.Name == name }) {
		e := c.c.entries[i]
		hits = append(hits, &e)
	}
	if len(hits) == 0 {
		return Found{}, false, nil
	}
	if errs := duplicates(hits); len(errs) > 0 {
		return Found{}, true, exitcode.With(exitcode.Invalid, errs[0])
	}
	if err := hits[0].complete(nil); err != nil {
		return Found{}, true, exitcode.With(exitcode.Invalid, err)
	}
	return hits[0].Found, true, nil
}

// Nearest returns the name of the card that was probably meant by name, or "".
func (c Catalog) Nearest(name string) string {
	_, names := c.c.words()
	if near := spelling.Nearest(name, names); near != "" {
		return near
	}
	if near := Nearest(name, names, 1); len(near) > 0 {
		return near[0]
	}
	return ""
}
