package lint

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"assay/pkg/document"
	"assay/pkg/spelling"
)

// deploymentBlocks are the blocks that belong under deployment_config.
func deploymentBlocks() []string { return []string{"slurm", "pbs", "k8s", "kubernetes", "distributed"} }

// deployment is where the run goes, after blocks of the top level were moved.
// The zero value is that of a card by itself.
type deployment struct {
	root   document.Node
	config document.Node
}

// block returns a deployment block: the one under deployment_config, else the
// one at the top level.
func (d deployment) block(name string) document.Node {
	if own := d.config.Get(name); own.Given() {
		return own
	}
	return d.root.Get(name)
}

// manifest checks a whole manifest.
func (c *checker) manifest(root document.Node) {
	d := deployment{root, root.Get("deployment_config")}
	ignored := c.blocks(d)
	c.schema("manifest", root, ignored)
	if root.Kind() != document.KindObject {
		return
	}
	images, models := root.Get("built_images"), root.Get("built_models")
	c.join(images, models)
	c.target(d)
	c.nodesAgree(d.block("slurm"), d.block("distributed"))
	c.launcher(d.block("distributed"))
	times := &shortTimes{}
	for m := range models.Children() {
		if c.full() {
			break
		}
		if !strings.HasPrefix(m.Key(), "_") {
			c.card(m, d, times)
		}
	}
	c.slurmTime(d.block("slurm"), times)
	c.k8s(d, images)
	c.envNames(root.Get("context").Get("docker_env_vars"))
	c.envNames(d.config.Get("env_vars"))
	c.envFile(d.config)
}

// blocks reports deployment blocks at the top level and returns the pointers of
// those that another one wins over.
func (c *checker) blocks(d deployment) (ignored []string) {
	ignore := func(n, winner document.Node) {
		ignored = append(ignored, n.Pointer())
		c.atKey(Warning, BlockIgnored, n, fmt.Sprintf("%s is ignored: %s wins", n.Key(), winner.Pointer()), "remove it")
	}
	for _, name := range deploymentBlocks() {
		top := d.root.Get(name)
		if !top.Given() {
			continue
		}
		if winner := d.winner(name); winner.Given() {
			ignore(top, winner)
			continue
		}
		c.atKey(Warning, BlockMoved, top, fmt.Sprintf("%s belongs under deployment_config and is read as if it stood there", name),
			"move it under deployment_config; assay lint --fix does it")
	}
	if k8s, alias := d.config.Get("k8s"), d.config.Get("kubernetes"); k8s.Given() && alias.Given() {
		ignore(alias, k8s)
	}
	return ignored
}

// winner returns the block that wins over one at the top level. kubernetes is
// another name of k8s.
func (d deployment) winner(name string) document.Node {
	if name != "k8s" && name != "kubernetes" {
		return d.config.Get(name)
	}
	for _, n := range []document.Node{d.config.Get("k8s"), d.config.Get("kubernetes")} {
		if n.Given() {
			return n
		}
	}
	if name == "kubernetes" {
		return d.root.Get("k8s")
	}
	return document.Node{}
}

// maxCandidates bounds the keys that a misspelt one is compared with.
const maxCandidates = 1000

// join checks that models and images have the same keys.
func (c *checker) join(images, models document.Node) {
	if images.Kind() != document.KindObject || models.Kind() != document.KindObject {
		return
	}
	if models.Len() == 0 {
		c.atKey(Error, NoModels, models, "built_models is empty: nothing would run", "")
	}
	have := keys(images)
	var candidates []string
	if images.Len() <= maxCandidates {
		candidates = slices.Sorted(maps.Keys(have))
	}
	for m := range models.Children() {
		if strings.HasPrefix(m.Key(), "_") || have[m.Key()] {
			continue
		}
		if c.full() {
			break
		}
		message := fmt.Sprintf("the model %q has no image of the same key in built_images", m.Key())
		fix := "add an entry of the same key to built_images; with docker_image null it runs on the host"
		if near := spelling.Nearest(m.Key(), candidates); near != "" {
			message += fmt.Sprintf("; did you mean %q?", near)
		}
		c.atKey(Error, ModelWithoutImage, m, message, fix)
	}
	have = keys(models)
	for i := range images.Children() {
		if !strings.HasPrefix(i.Key(), "_") && !have[i.Key()] {
			c.atKey(Warning, ImageWithoutModel, i, fmt.Sprintf("the image %q has no model of the same key and is not used", i.Key()), "")
		}
	}
}

func keys(n document.Node) map[string]bool {
	all := make(map[string]bool, n.Len())
	for c := range n.Children() {
		all[c.Key()] = true
	}
	return all
}

func (c *checker) target(d deployment) {
	t := d.config.Get("target")
	if t.Text() == "slurm" && !d.block("slurm").Given() {
		c.at(Warning, SlurmBlockMissing, t, "the target is slurm and there is no slurm block: partition, time and nodes are the site's defaults",
			"add deployment_config.slurm")
	}
}
