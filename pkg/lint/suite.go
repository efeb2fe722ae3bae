package lint

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	"assay/pkg/discover"
	"assay/pkg/document"
	"assay/pkg/suite"
)

// suite checks a suite, and where its cards are known each test as the card that it
// runs. Else only what a test overrides is checked.
func (c *checker) suite(root document.Node) {
	c.schema("suite", root, nil)
	if root.Kind() != document.KindObject {
		return
	}
	c.envNames(root.Get("env_vars"))
	c.variantEnv(root.Get("variants"))
	c.suiteDeployment(root.Get("deployment_config"))
	s := suite.Of(c.result.File, root)
	malformed := c.count[Error] > 0
	catalog, own := c.catalog(root)
	if catalog == nil {
		_, problems := s.Tests()
		c.suiteProblems(problems, false)
		c.overrides(root)
		c.suiteThresholds(s, root, nil)
		return
	}
	frozen, problems := s.Resolve(*catalog)
	c.suiteProblems(problems, own && len(catalog.NotRun()) > 0)
	if malformed {
		c.overrides(root)
	} else {
		c.asCards(s, frozen)
	}
	c.suiteThresholds(s, root, frozen.Tests)
}

// suiteProblems reports what the suite itself found. That a card is not there is only
// a suspicion where not all cards are known.
func (c *checker) suiteProblems(problems []document.Problem, incomplete bool) {
	for _, p := range problems {
		if incomplete && p.Code == SuiteCard {
			p.Warning = true
		}
		c.problem(p)
	}
}

// catalog returns the cards that the suite can name, nil when they are not known, and
// whether they were looked for here.
func (c *checker) catalog(root document.Node) (catalog *discover.Catalog, own bool) {
	if c.known != nil {
		return c.known, false
	}
	dir := suite.Root(c.result.File)
	if dir == "" {
		return nil, false
	}
	found, err := c.linter.cards(dir)
	if err != nil {
		c.at(Warning, SuiteCard, root.Get("tests"), "the cards are not looked at: "+err.Error(), "")
		return nil, false
	}
	return &found, true
}

// declaredCards are the cards below a directory that are declared in files.
func declaredCards(root string) (discover.Catalog, error) {
	return discover.Load(context.Background(), discover.Options{Root: root})
}

// overrides checks what the tests of a suite override by itself.
func (c *checker) overrides(root document.Node) {
	tests := root.Get("tests")
	if tests.Kind() != document.KindArray {
		return
	}
	for t := range tests.Children() {
		if c.full() {
			break
		}
		if t.Kind() == document.KindObject {
			c.override(t)
		}
	}
}

func (c *checker) override(n document.Node) {
	c.thresholds(n.Get("thresholds"), nil, n)
	c.args(n)
	c.ready(n)
	c.envNames(n.Get("env_vars"))
	c.nodesAgree(n.Get("slurm"), n.Get("distributed"))
	c.launcher(n.Get("distributed"))
	c.scope(n, deployment{})
	variants := n.Get("variants")
	c.variantEnv(variants)
	if variants.Kind() != document.KindArray {
		return
	}
	for v := range variants.Children() {
		c.thresholds(v.Get("thresholds"), nil, v)
		c.args(v)
	}
}

// variantEnv checks the variables of variants that are listed.
func (c *checker) variantEnv(variants document.Node) {
	if variants.Kind() != document.KindArray {
		return
	}
	for v := range variants.Children() {
		c.envNames(v.Get("env_vars"))
	}
}

// asCards checks each test as the card that it makes. What the card has by itself is
// not the suite's.
func (c *checker) asCards(s *suite.Suite, frozen suite.Frozen) {
	own := map[string]map[fault]bool{}
	for _, card := range frozen.Cards {
		own[card.Name] = map[fault]bool{}
		for _, f := range c.asCard(card.Raw) {
			own[card.Name][faultOf(f)] = true
		}
	}
	for _, t := range frozen.Tests {
		if c.full() {
			break
		}
		for _, f := range c.asCard(t.Raw) {
			if own[t.Card][faultOf(f)] {
				continue
			}
			at := s.Where(t.Test, f.Pointer)
			c.at(f.Severity, f.Code, at, f.Message, f.Fix)
		}
	}
}

// fault is a finding without its place in the text.
type fault struct{ code, pointer, message string }

func faultOf(f Finding) fault { return fault{f.Code, f.Pointer, f.Message} }

// asCard checks a card that lies in no file.
func (c *checker) asCard(raw map[string]any) []Finding {
	data, err := json.Marshal(raw)
	if err != nil { // what was read can be written
		return nil
	}
	return c.linter.Bytes("card.json", data, Options{Kind: Card}).Findings
}

// suiteThresholds checks the file of thresholds that a suite names. Its findings stand
// where it is named. Without tests nothing is known of their metrics.
func (c *checker) suiteThresholds(s *suite.Suite, root document.Node, tests []suite.FrozenTest) {
	path, at := s.ThresholdsPath()
	if path == "" {
		c.expectsThresholds(root, "the suite names no file of thresholds (thresholds_file), so that the test is always refused")
		return
	}
	data, err := document.Read(path)
	if err != nil {
		c.at(Error, SuiteThresholds, at, "the file of thresholds "+err.Error(), "the path is relative to the suite")
		return
	}
	sub := c.linter.start(path, data, Options{Kind: Thresholds})
	if sub.doc != nil {
		sub.thresholdsFile(sub.doc.Root(), gatesOf(s, tests))
		c.hardware(root.Get("hardware"), sub.doc.Root().Get("hardware"), at.Text())
	}
	result := sub.finish()
	for _, f := range result.Findings {
		c.entries = append(c.entries, entry{f, at.Position()})
	}
	maps.Copy(c.result.excerpts, result.excerpts)
}

// expectsThresholds refuses tests that expect values where there are none.
func (c *checker) expectsThresholds(root document.Node, why string) {
	tests := root.Get("tests")
	if tests.Kind() != document.KindArray {
		return
	}
	for t := range tests.Children() {
		if n := t.Get("expects_thresholds"); n.Raw() == "true" {
			c.at(Error, SuiteThresholds, n, why, "name one, or remove expects_thresholds")
		}
	}
}

// hardware warns when the file of thresholds does not know the hardware.
func (c *checker) hardware(name, known document.Node, file string) {
	if name.Kind() != document.KindString || name.Text() == "" || known.Kind() != document.KindObject || known.Get(name.Text()).Exists() {
		return
	}
	c.at(Warning, SuiteThresholds, name, fmt.Sprintf("%s has no hardware %q", file, name.Text()), "")
}
