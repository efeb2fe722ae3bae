package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"assay/pkg/spelling"

	"assay/pkg/manifest"
	"assay/pkg/threshold"
)

// test is what a suite says of an entry.
type test struct {
	name       string
	variant    map[string]string
	optional   bool
	stopOnFail bool
	baseline   bool
	pairs      string
	pairsAt    string // where that is said
	duration   int    // seconds
	expects    bool   // it refuses to run without values of thresholds for the hardware
}

// prepareSuite reads the suite, and puts the entries into the order of its tests.
func (p *planner) prepareSuite() []manifest.Entry {
	suite, err := p.m.ParseSuite()
	if err != nil {
		p.problems = append(p.problems, err)
	}
	p.suite = suite
	p.tests = map[string]test{}
	if suite == nil {
		return p.m.Models
	}
	entries := map[string]manifest.Entry{}
	for _, e := range p.m.Models {
		entries[e.Key] = e
	}
	var order []manifest.Entry
	required := false
	for i, t := range suite.Tests {
		e, known := entries[t.Key]
		switch _, twice := p.tests[t.Key]; {
		case !known:
			p.refuse(manifest.TestPointer(i, "key"), "%s", p.noEntry(t))
			continue
		case twice:
			p.refuse(manifest.TestPointer(i, "key"), "%q is the key of two tests", t.Key)
			continue
		}
		p.tests[t.Key] = p.test(i, t)
		required = required || !p.tests[t.Key].optional
		order = append(order, e)
	}
	if !required && len(order) > 0 {
		p.refuse("/suite/tests", "every test is optional, so that nothing would be judged; at least one has to be required")
	}
	for _, e := range p.m.Models {
		if _, ok := p.tests[e.Key]; !ok {
			p.warn(e.Pointer(), "is no test of the suite, and is not run")
		}
	}
	return order
}

// noEntry says why a test cannot be run that has no entry.
func (p *planner) noEntry(t manifest.Test) string {
	var summary struct {
		Failed []struct {
			Model string `json:"model"`
		} `json:"failed_builds"`
	}
	// What other tools keep there is not looked at.
	if json.Unmarshal(p.m.Summary, &summary) != nil || len(summary.Failed) == 0 {
		return fmt.Sprintf("built_models has no entry %q", t.Key)
	}
	var models []string
	for _, f := range summary.Failed {
		models = append(models, f.Model)
	}
	return fmt.Sprintf("test %s: its image was not built (failed_builds says why: %s); build again", t.Key, strings.Join(models, ", "))
}

func (p *planner) test(i int, t manifest.Test) test {
	out := test{
		name: t.Name, variant: t.Variant, optional: t.Required != nil && !*t.Required,
		stopOnFail: or(t.StopOnFail, p.suite.StopOnFail), baseline: or(t.Baseline, p.suite.Baseline) || p.opt.Baseline,
		pairs: p.opt.Pairs, pairsAt: "--pairs", duration: t.Duration.Or(0), expects: t.ExpectsThresholds,
	}
	if out.name == "" {
		out.name = t.Key
	}
	if out.pairs == "" {
		if out.pairs, out.pairsAt = t.Pairs, "manifest: "+manifest.TestPointer(i, "pairs"); out.pairs == "" {
			out.pairs, out.pairsAt = p.suite.Pairs, "manifest: /suite/pairs"
		}
	}
	if why := SameVariable(slices.Sorted(maps.Keys(t.Variant))); why != "" {
		p.refuse(manifest.TestPointer(i, "variant"), "%s; rename one", why)
	}
	if out.duration < 0 || out.duration > maxTimeout {
		p.refuse(manifest.TestPointer(i, "duration"), "%d is no number of seconds from 0 to %d", out.duration, maxTimeout)
		out.duration = 0
	}
	if p.opt.DurationSeconds > 0 && out.duration > 0 {
		out.duration = p.opt.DurationSeconds
	}
	return out
}

func or(b *bool, def bool) bool {
	if b == nil {
		return def
	}
	return *b
}

// testOf is what the suite, or else the command line alone, says of an entry.
func (p *planner) testOf(e manifest.Entry) test {
	if t, ok := p.tests[e.Key]; ok {
		return t
	}
	return test{pairs: p.opt.Pairs, pairsAt: "--pairs", baseline: p.opt.Baseline}
}

// hardware is the key of the thresholds file that is asked for.
func (p *planner) hardware() string {
	if p.opt.Hardware != "" || p.suite == nil {
		return p.opt.Hardware
	}
	return p.suite.Hardware
}

// checkHardware refuses to choose values of thresholds for hardware that the file of them
// does not know: a mistyped name would gate nothing.
func (p *planner) checkHardware() {
	var file *manifest.Thresholds
	where := "--hardware"
	if p.suite != nil {
		if file = p.suite.Thresholds; p.opt.Hardware == "" {
			where = "manifest: /suite/hardware"
		}
	}
	key := p.hardware()
	switch {
	case key == "" && file != nil:
		if known := slices.DeleteFunc(slices.Sorted(maps.Keys(file.Hardware)), func(k string) bool { return k == manifest.AnyHardware }); len(known) > 0 {
			p.warn("/suite/thresholds", "the values for %s in %s are not used: say which hardware it is with --hardware", strings.Join(known, ", "), file.File)
		}
	case key == "":
	case file == nil:
		p.fail(where, fmt.Errorf("%q: there is no file of thresholds that it would choose from (thresholds_file of a suite)", key))
	default:
		if _, known := file.Hardware[key]; known {
			return
		}
		names := slices.Sorted(maps.Keys(file.Hardware))
		near := spelling.Nearest(key, names)
		for _, n := range names {
			if strings.EqualFold(n, key) {
				near = n
			}
		}
		hint := ""
		if near != "" {
			hint = fmt.Sprintf("; did you mean %q?", near)
		}
		p.fail(where, fmt.Errorf("%s has no values for hardware %q (there: %s)%s", file.File, key, strings.Join(names, ", "), hint))
	}
}

// checkOptions refuses what the command line asks of tests that there are none of.
func (p *planner) checkOptions(tests []Job) {
	if p.opt.DurationSeconds > 0 && !slices.ContainsFunc(tests, func(j Job) bool { return j.Policy.DurationSeconds > 0 }) {
		p.fail("--duration", errors.New("no test has a duration that it would stand instead of; give tests of a suite one (duration)"))
	}
	if p.opt.Pairs != "" && !slices.ContainsFunc(tests, func(j Job) bool { return j.Scope == scopePair }) {
		p.fail("--pairs", errors.New("no test is of scope pair"))
	}
}

// gates are the thresholds of an entry: those of the card, or of the test, and those
// that the file has for the hardware, which win over others on the same metric.
func (p *planner) gates(e manifest.Entry, t test) ([]threshold.Threshold, *Gates) {
	own := e.Thresholds
	if p.suite == nil {
		return own, nil
	}
	file := p.suite.Thresholds
	var values []threshold.Threshold
	key := ""
	if file != nil {
		for _, key = range []string{p.hardware(), manifest.AnyHardware} {
			if values = file.Hardware[key][t.name]; len(values) > 0 && key != "" {
				break
			}
		}
	}
	if len(values) == 0 {
		if t.expects {
			p.fail("test "+t.name, p.noValues(file, t.name))
		}
		return own, nil
	}
	own = slices.DeleteFunc(slices.Clone(own), func(o threshold.Threshold) bool {
		return slices.ContainsFunc(values, func(v threshold.Threshold) bool { return v.Metric == o.Metric })
	})
	return append(own, values...), &Gates{File: file.File, Digest: file.Digest, Hardware: key}
}

// noValues says why a test that expects values has none.
func (p *planner) noValues(file *manifest.Thresholds, name string) error {
	switch hardware := p.hardware(); {
	case file == nil:
		return fmt.Errorf("it expects values of thresholds, and the suite names no file of them (thresholds_file)")
	case hardware == "":
		return fmt.Errorf("it expects values of thresholds, and %s has them by hardware: say which with --hardware (%s)", file.File, strings.Join(slices.Sorted(maps.Keys(file.Hardware)), ", "))
	default:
		return fmt.Errorf("it expects values of thresholds, and %s has none for hardware %q and test %q (hardware there: %s)",
			file.File, hardware, name, strings.Join(slices.Sorted(maps.Keys(file.Hardware)), ", "))
	}
}
