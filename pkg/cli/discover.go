package cli

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"assay/pkg/card"
	"assay/pkg/discover"
	"assay/pkg/manifest"
)

// selection is which cards a command works on, and what is added to them.
type selection struct {
	root         string
	tags         []string
	suite        string // file; it selects cards itself
	rootGiven    func() bool
	allowDynamic bool
	context      string
	contextFile  string
	target       string // wins over that of the context
}

// addSelection adds the flags that choose cards and freeze them.
func (a *app) addSelection(c *cobra.Command, s *selection) {
	addCardFlags(c, s)
	f := c.Flags()
	f.StringVar(&s.suite, "suite", "", "suite of tests to make the manifest of, instead of --tags")
	s.rootGiven = func() bool { return f.Changed("root") }
	f.StringVar(&s.target, "target", "", "where the cards of --tags or --suite run: "+strings.Join(manifest.Targets(), ", ")+" (default: as the context says, else local)")
	f.StringVar(&s.context, "additional-context", "", "JSON object that is merged into the manifest")
	f.StringVar(&s.contextFile, "additional-context-file", "", "file with such an object; --additional-context wins over it")
}

func addCardFlags(c *cobra.Command, s *selection) {
	f := c.Flags()
	f.StringVar(&s.root, "root", ".", "directory in which cards are looked for")
	f.StringArrayVar(&s.tags, "tags", nil, "tags or names of the cards to select: any of them, dir:name, name:key=value")
	f.BoolVar(&s.allowDynamic, "allow-dynamic", false, "run scripts/*/get_models_json*, which is code, to get more cards")
}

// cards finds the selected cards.
func (a *app) cards(ctx context.Context, s selection, required bool) ([]discover.Found, error) {
	ctx, stop := interruptible(ctx)
	defer stop()
	found, err := discover.Find(ctx, discover.Options{
		Root: s.root, Tags: s.tags, RequireTags: required, AllowDynamic: s.allowDynamic, Env: a.Env,
	})
	if err := interrupted(ctx, err); err != nil {
		return nil, err
	}
	for _, w := range found.Warnings {
		a.log.Warn(w)
	}
	return found.Cards, nil
}

// listed is a card as discover --json prints it.
type listed struct {
	Name   string    `json:"name"`
	File   string    `json:"file"`
	Line   int       `json:"line"`
	Digest string    `json:"digest"`
	Tags   card.Tags `json:"tags"`
	Card   any       `json:"card"` // as declared, with the arguments of the selection
}

func (a *app) discoverCmd() *cobra.Command {
	var s selection
	var asJSON bool
	c := &cobra.Command{
		Use:   "discover",
		Short: "List the model cards that are found",
		Long: "discover looks for cards in models.json, scripts/<dir>/models.json and models/, and lists those that are\n" +
			"selected; without --tags all of them.",
		Example: "  assay discover\n  assay discover --tags demo,debian\n  assay discover --json",
		Args:    exactly(0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			cards, err := a.cards(c.Context(), s, false)
			if err != nil {
				return err
			}
			if asJSON {
				out := make([]listed, 0, len(cards))
				for _, f := range cards {
					out = append(out, listed{f.Name, f.File, f.Line, f.Digest, append(card.Tags{}, f.Card.Tags...), f.Raw})
				}
				return writeJSON(a.Out, out)
			}
			if len(cards) == 0 {
				a.log.Info("no cards below " + s.root + ": they are in models.json, scripts/<dir>/models.json or models/")
			}
			w := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "NAME\tTAGS\tFILE")
			for _, f := range cards {
				fmt.Fprintf(w, "%s\t%s\t%s\n", f.Name, strings.Join(f.Card.Tags, ","), f.File)
			}
			return w.Flush()
		},
	}
	addCardFlags(c, &s)
	jsonFlag(c, &asJSON)
	return c
}
