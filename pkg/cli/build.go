package cli

import (
	"context"
	"errors"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"assay/pkg/build"
	"assay/pkg/discover"
	"assay/pkg/durable"
	"assay/pkg/exitcode"
	"assay/pkg/suite"
)

// buildFlags are the flags of build.
type buildFlags struct {
	sel     selection
	output  string
	stamp   string
	summary string
	batch   string
	images  imageFlags
}

func (a *app) buildCmd() *cobra.Command {
	var f buildFlags
	var asJSON bool
	c := &cobra.Command{
		Use:   "build --tags TAGS | --suite FILE",
		Short: "Freeze the selected cards into a manifest, and build their images",
		Long: "build writes a manifest of the selected cards, checked against its schema, to --manifest-output. The same cards\n" +
			"give the same bytes. Of one key the value of --additional-context wins over --additional-context-file, and both\n" +
			"over the defaults.\n\n" +
			"The images of cards that have a dockerfile are built with docker or podman, and pushed with --registry. One that\n" +
			"fails does not stop the others: the manifest lists what failed, and the exit code is 2.\n\n" +
			"With --suite the manifest has the tests of a suite in their order, cards with what the suite overrides. Its cards\n" +
			"are looked for in the directory that it lies in, such as . for models/suites/smoke.yaml, or in --root.",
		Example: "  assay build --tags demo\n" +
			"  assay build --tags triad --additional-context '{\"env_vars\": {\"MODE\": \"fast\"}}'\n" +
			"  assay build --suite models/suites/smoke.yaml\n" +
			"  assay build --tags demo --stamp nightly --manifest-output nightly.json\n" +
			"  assay build --tags demo --registry registry.example/team --build-jobs 4\n" +
			"  assay build --tags demo --use-image rocm/pytorch:latest --manifest-output in_image.json",
		Args:    exactly(0, "no arguments"),
		PreRunE: checkOptions,
		RunE:    func(c *cobra.Command, _ []string) error { return a.build(c.Context(), f, asJSON) },
	}
	a.addSelection(c, &f.sel)
	fl := c.Flags()
	fl.StringVarP(&f.output, "manifest-output", "o", defaultManifest, "file to write; - is stdout")
	fl.StringVar(&f.stamp, "stamp", "", "text that marks this build in the manifest")
	fl.StringVar(&f.batch, "batch-manifest", "", "file that lists the cards, instead of --tags, and which of their images are built")
	fl.StringVar(&f.summary, "summary-output", "", "file for the summary of the builds, as the manifest has it")
	addImageFlags(c, &f.images)
	jsonFlag(c, &asJSON)
	return c
}

func (a *app) build(ctx context.Context, f buildFlags, asJSON bool) error {
	res, failure := a.buildManifest(ctx, f)
	if res.JSON == nil {
		return failure
	}
	if f.summary != "" {
		if err := writeSummary(f.summary, res.Summary); err != nil {
			return errors.Join(failure, err)
		}
	}
	if f.output == "-" {
		_, err := a.Out.Write(res.JSON)
		return errors.Join(failure, err)
	}
	if err := build.Write(f.output, res.JSON); err != nil {
		return errors.Join(failure, err)
	}
	return errors.Join(failure, a.tellBuilt(f.output, res.JSON, asJSON))
}

func writeSummary(path string, summary map[string]any) error {
	data, err := build.Encode(summary)
	if err != nil {
		return err
	}
	if err := durable.WriteFile(path, data, 0o644); err != nil {
		return exitcode.Errorf(exitcode.Error, "the summary cannot be written: %w", err)
	}
	return nil
}

// buildManifest freezes the selected cards into a manifest that is going to lie at
// f.output, and builds their images. An error with the code BUILD_FAILURE comes with
// the manifest of what there is.
func (a *app) buildManifest(ctx context.Context, f buildFlags) (build.Result, error) {
	ctx, stop := interruptible(ctx)
	defer stop()
	res, err := a.buildNow(ctx, f)
	if err := interrupted(ctx, err); err != nil {
		return res, err
	}
	return res, nil
}

func (a *app) buildNow(ctx context.Context, f buildFlags) (build.Result, error) {
	batch, err := f.readBatch()
	if err != nil {
		return build.Result{}, err
	}
	if err := f.sel.checkSuite(); err != nil {
		return build.Result{}, err
	}
	f.sel.chooseRoot()
	cards, frozen, deployment, err := a.chosen(ctx, f.sel)
	if err != nil {
		return build.Result{}, err
	}
	if batch != nil {
		cards = slices.DeleteFunc(cards, func(c discover.Found) bool { _, listed := batch[c.Name]; return !listed })
	}
	extra, err := build.ParseContext(f.sel.context, f.sel.contextFile)
	if err != nil {
		return build.Result{}, err
	}
	if f.sel.target != "" {
		extra["target"] = f.sel.target
	}
	rev, problem := build.ReadRevision(ctx, f.sel.root)
	if problem != "" {
		a.log.Warn(problem)
	}
	root, err := filepath.Abs(f.sel.root)
	if err != nil {
		return build.Result{}, err
	}
	images, err := a.imageMaker(ctx, f, batch, cards)
	if err != nil {
		return build.Result{}, err
	}
	res, err := build.Manifest(ctx, build.Options{
		Cards: cards, Root: root, Output: f.output, Context: extra, Git: rev, Stamp: f.stamp,
		Suite: frozen, Deployment: deployment,
		Images: images.maker, NoBuilder: images.none, NoImages: f.images.noImages,
		Validate: func(data []byte) error { return a.refuseFindings(f.output, data) },
	})
	for _, w := range res.Warnings {
		a.log.Warn(w)
	}
	return res, errors.Join(err, images.close())
}

// chosen are the cards of a selection, and what a suite makes of them.
func (a *app) chosen(ctx context.Context, s selection) ([]discover.Found, *suite.Frozen, map[string]any, error) {
	if s.suite == "" {
		cards, err := a.cards(ctx, s, true)
		return cards, nil, nil, err
	}
	frozen, deployment, err := a.freezeSuite(ctx, s)
	return frozen.Cards, &frozen, deployment, err
}
