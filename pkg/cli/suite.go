package cli

import (
	"context"

	"assay/pkg/discover"
	"assay/pkg/exitcode"
	"assay/pkg/lint"
	"assay/pkg/suite"
)

// chooseRoot makes the directory of the cards the one that the suite lies in, unless
// the user names one.
func (s *selection) chooseRoot() {
	if s.suite == "" || s.rootGiven != nil && s.rootGiven() {
		return
	}
	if root := suite.Root(s.suite); root != "" {
		s.root = root
	}
}

// checkSuite refuses what cannot be given beside a suite.
func (s *selection) checkSuite() error {
	if s.suite != "" && len(s.tags) > 0 {
		return exitcode.Errorf(exitcode.Invalid, "--suite and --tags exclude each other: a suite says which cards run")
	}
	return nil
}

// freezeSuite reads the suite of a selection, and finds its cards. What is wrong with
// it goes to stderr as lint tells it.
func (a *app) freezeSuite(ctx context.Context, s selection) (suite.Frozen, map[string]any, error) {
	var none suite.Frozen
	catalog, err := discover.Load(ctx, discover.Options{Root: s.root, AllowDynamic: s.allowDynamic, Env: a.Env})
	if err != nil {
		return none, nil, err
	}
	for _, w := range catalog.Warnings() {
		a.log.Warn(w)
	}
	if err := a.lintSuite(s.suite, catalog); err != nil {
		return none, nil, err
	}
	read, err := suite.Read(s.suite)
	if err != nil {
		return none, nil, err
	}
	frozen, problems := read.Resolve(catalog)
	if err := suite.Errors(s.suite, problems); err != nil {
		return none, nil, err
	}
	thresholds, err := read.ReadThresholds()
	if err != nil {
		return none, nil, err
	}
	if thresholds != nil {
		frozen.Block["thresholds"] = thresholds.Block()
	}
	return frozen, read.Deployment(), nil
}

// lintSuite refuses a suite that has errors.
func (a *app) lintSuite(path string, catalog discover.Catalog) error {
	res := lint.File(path, lint.Options{Kind: lint.Suite, Cards: &catalog})
	if len(res.Findings) > 0 && (!a.quiet || res.HasErrors()) {
		if err := lint.Write(a.Err, "text", []*lint.Result{res}, a.lintStyle(a.ErrTTY)); err != nil {
			return err
		}
	}
	if res.HasErrors() {
		return exitcode.Errorf(exitcode.Invalid, "the suite %s is refused: correct the errors above; nothing was written", path)
	}
	return nil
}
