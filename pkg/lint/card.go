package lint

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"assay/pkg/card"
	"assay/pkg/document"
	"assay/pkg/launcher"
	"assay/pkg/plan"
	"assay/pkg/spelling"
)

// cards checks a file of one card, or of a list of cards.
func (c *checker) cards(root document.Node) {
	if root.Kind() != document.KindArray {
		c.schema("card", root, nil)
		c.oneCard(root)
		return
	}
	names := map[string]document.Node{}
	for n := range root.Children() {
		if c.full() {
			break
		}
		c.schema("card", n, nil)
		c.oneCard(n)
		name := n.Get("name")
		if name.Kind() != document.KindString {
			continue
		}
		if first, ok := names[name.Text()]; ok {
			c.at(Warning, NameDuplicate, name, fmt.Sprintf("the name %q is already on line %d; both cannot be selected together", name.Text(), first.Position().Line), "")
			continue
		}
		names[name.Text()] = name
	}
}

func (c *checker) oneCard(n document.Node) {
	if name := n.Get("name"); name.Kind() == document.KindString && name.Text() != "" {
		if err := card.ValidName(name.Text()); err != nil {
			c.at(Error, NameForm, name, "this cannot be the name of a card: "+err.Error(), "")
		}
	}
	c.card(n, deployment{}, &shortTimes{})
}

// card checks one card, or one entry of a manifest with its deployment.
func (c *checker) card(card document.Node, d deployment, times *shortTimes) {
	if card.Kind() != document.KindObject {
		return
	}
	own, launch := card.Get("slurm"), card.Get("distributed")
	c.nodesAgree(own, launch)
	c.nodesOverridden(own, launch, d)
	c.launcher(launch)
	c.scope(card, d)
	c.program(card)
	c.args(card)
	c.ready(card)
	c.plainIntegers(card, "repeats", "retries")
	metrics := c.metrics(card.Get("metrics"))
	c.thresholds(card.Get("thresholds"), &metrics, card)
	c.envNames(card.Get("env_vars"))
	if own.Get("time").Given() {
		mine := &shortTimes{}
		mine.note(card)
		c.slurmTime(own, mine)
		return
	}
	times.note(card)
}

// program checks that there is something to run.
func (c *checker) program(card document.Node) {
	if card.Get("scripts").Text() != "" && card.Get("scripts").Given() || card.Get("command").Given() {
		return
	}
	for k := range card.Children() {
		if near := spelling.Nearest(k.Key(), []string{"scripts", "command"}); near != "" && near != k.Key() {
			c.atKey(Error, NoProgram, k, fmt.Sprintf("there is neither scripts nor command: nothing to run; did you mean %q?", near), fmt.Sprintf("rename %q to %q", k.Key(), near))
			return
		}
	}
	c.atKey(Error, NoProgram, card, "there is neither scripts nor command: nothing to run", "add scripts, a path relative to MODEL_DIR, or command, a list")
}

// args checks that arguments in one string can be split into words.
func (c *checker) args(card document.Node) {
	n := card.Get("args")
	if n.Kind() != document.KindString {
		return
	}
	if _, err := plan.SplitWords(n.Text()); err != nil {
		c.at(Error, ArgsSyntax, n, "args cannot be split into words: "+err.Error(), "close the quote, or write args as a list")
	}
}

// ready checks that it is one of the ways in which a root can be seen to be ready.
func (c *checker) ready(card document.Node) {
	n := card.Get("ready")
	if n.Kind() != document.KindString || n.Text() == "" {
		return
	}
	if _, err := plan.ParseReady(n.Text()); err != nil {
		c.at(Error, ReadyForm, n, err.Error(), "")
	}
}

// plainIntegers checks members that are read as integers in one spelling only:
// 2.0 and 2e0 are integers to a schema.
func (c *checker) plainIntegers(card document.Node, names ...string) {
	for _, name := range names {
		n := card.Get(name)
		if v, ok := n.Int(); ok && n.Kind() == document.KindNumber && n.Raw() != strconv.Itoa(v) {
			c.at(Error, document.CodeType, n, fmt.Sprintf("%s must be an integer in plain digits, not %s", name, n.Raw()), fmt.Sprintf("write %d", v))
		}
	}
}

// launcher checks that a launcher is known.
func (c *checker) launcher(distributed document.Node) {
	name := distributed.Get("launcher")
	if name.Kind() != document.KindString || distributed.Get("enabled").Raw() == "false" {
		return
	}
	if _, err := launcher.Find(name.Text()); err != nil {
		c.at(Error, LauncherUnknown, name, err.Error(), "")
	}
}

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// envNames checks the names of environment variables. Any name without = can be
// handed to a program, but a shell reads only its own kind.
func (c *checker) envNames(env document.Node) {
	if env.Kind() != document.KindObject {
		return
	}
	for v := range env.Children() {
		name := v.Key()
		switch {
		case variableName.MatchString(name), card.IsRemark(name, v.Kind() != document.KindArray && v.Kind() != document.KindObject):
		case name == "" || strings.ContainsAny(name, "=\x00"):
			c.atKey(Error, EnvName, v, fmt.Sprintf("%q cannot be the name of an environment variable", name), "use letters, digits and underscores, and no digit first")
		default:
			c.atKey(Warning, EnvName, v, fmt.Sprintf("%q is not a name that a shell can read", name), "use letters, digits and underscores, and no digit first")
		}
	}
}
