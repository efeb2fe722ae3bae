package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"assay/pkg/build"
	"assay/pkg/card"
	"assay/pkg/discover"
	"assay/pkg/exitcode"
)

// selection is which cards a command works on, and what is added to them.
type selection struct {
	root         string
	tags         []string
	allowDynamic bool
	context      string
	contextFile  string
}

// addSelection adds the flags that choose cards and freeze them.
func (a *app) addSelection(c *cobra.Command, s *selection) {
	addCardFlags(c, s)
	f := c.Flags()
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

func (a *app) buildCmd() *cobra.Command {
	var s selection
	var output, stamp string
	var asJSON bool
	c := &cobra.Command{
		Use:   "build --tags TAGS",
		Short: "Freeze the selected cards into a manifest",
		Long: "build writes a manifest of the selected cards, checked against its schema, to --manifest-output. The same cards\n" +
			"give the same bytes. Of one key the value of --additional-context wins over --additional-context-file, and both\n" +
			"over the defaults.",
		Example: "  assay build --tags demo\n" +
			"  assay build --tags triad --additional-context '{\"env_vars\": {\"MODE\": \"fast\"}}'\n" +
			"  assay build --tags demo --stamp nightly --manifest-output nightly.json",
		Args: exactly(0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			if output == "" {
				return exitcode.Errorf(exitcode.Invalid, "--manifest-output is empty: name a file, or - for stdout")
			}
			data, err := a.buildManifest(c.Context(), s, output, stamp)
			if err != nil {
				return err
			}
			if output == "-" {
				_, err := a.Out.Write(data)
				return err
			}
			if err := build.Write(output, data); err != nil {
				return err
			}
			return a.tellBuilt(output, data, asJSON)
		},
	}
	a.addSelection(c, &s)
	c.Flags().StringVarP(&output, "manifest-output", "o", defaultManifest, "file to write; - is stdout")
	c.Flags().StringVar(&stamp, "stamp", "", "text that marks this build in the manifest")
	jsonFlag(c, &asJSON)
	return c
}

// buildManifest freezes the selected cards into the bytes of a manifest that is
// going to lie at output.
func (a *app) buildManifest(ctx context.Context, s selection, output, stamp string) ([]byte, error) {
	cards, err := a.cards(ctx, s, true)
	if err != nil {
		return nil, err
	}
	extra, err := build.ParseContext(s.context, s.contextFile)
	if err != nil {
		return nil, err
	}
	rev, problem := build.ReadRevision(ctx, s.root)
	if problem != "" {
		a.log.Warn(problem)
	}
	root, err := filepath.Abs(s.root)
	if err != nil {
		return nil, err
	}
	res, err := build.Manifest(ctx, build.Options{
		Cards: cards, Root: root, Output: output, Context: extra, Git: rev, Stamp: stamp,
		Validate: func(data []byte) error { return a.refuseFindings(output, data) },
	})
	if err != nil {
		return nil, err
	}
	for _, w := range res.Warnings {
		a.log.Warn(w)
	}
	return res.JSON, nil
}
