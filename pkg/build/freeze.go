package build

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"strings"
	"sync"

	"assay/pkg/discover"
	"assay/pkg/exitcode"
	"assay/pkg/phrase"
)

// ImageBuilder makes the container images of cards. Its methods may be called from
// several goroutines at once.
type ImageBuilder interface {
	// Needs says whether a card is going to run in an image of this builder.
	Needs(discover.Found) bool
	// Check says why the images of a card cannot be made, as far as that can be told
	// beforehand: its Dockerfile is missing, for one. It is called for every card
	// before any image is made.
	Check(ImageRequest) error
	// Build makes the images of a card: one, or one an architecture. An error stands
	// for all of them; one of a single image is in the image.
	Build(context.Context, ImageRequest) ([]Image, error)
}

// ImageRequest asks for the images of a card.
type ImageRequest struct {
	Root    string         // the models root; the card's dockerfile is relative to it
	Card    discover.Found //
	Context map[string]any // the context block of the manifest: docker_build_arg, gpu_vendor, guest_os
}

// Image is an image that was made, or was to be made.
type Image struct {
	Key          string         // joins built_images and built_models; unique in a manifest
	Entry        map[string]any // of built_images: docker_image, dockerfile, base_docker, build_duration …
	Architecture string         // that it was asked for; empty for none in particular
	Err          error          // why there is none, with what the tool said; Entry is not used then
	Pushed       string         // what it was pushed as, or was to be; empty for not pushed
	PushErr      error          // why it was not
}

// built is the part of the manifest that comes from the cards.
type built struct {
	images, models map[string]any
	keys           map[string][]string // of the entries of each test of a suite, and of those that it lacks
	succeeded      []any               // names of cards
	failed         []any               // {model, architecture, error}
	pushed         []any               // {image, registry_image, docker_sha}
	unpushed       []any               // {image, registry_image, error}
	errs           []error
	attempts       int // image builds
	seconds        float64
}

// freeze makes the entries of all cards. A failed image build is recorded, and
// the others go on.
func freeze(ctx context.Context, o Options, land landing) (built, error) {
	b := built{
		images: map[string]any{}, models: map[string]any{}, keys: map[string][]string{},
		succeeded: []any{}, failed: []any{}, pushed: []any{}, unpushed: []any{},
	}
	made := makeImages(ctx, o, land)
	if ctx.Err() != nil {
		return built{}, ctx.Err()
	}
	for i, c := range o.Cards {
		good := true
		for _, image := range made[i] {
			if image.Err != nil {
				good = false
				b.fail(c, image)
				b.miss(o.entries(c, image))
				continue
			}
			for _, e := range o.entries(c, image) {
				if _, twice := b.images[e.key]; twice {
					return built{}, exitcode.Errorf(exitcode.Invalid, "two entries of the manifest have the key %q; rename a card", e.key)
				}
				b.images[e.key] = image.Entry
				b.models[e.key] = model(e.raw, c, o.Git)
				b.keys[e.test] = append(b.keys[e.test], e.key)
			}
			b.count(c, image)
		}
		if good {
			b.succeeded = append(b.succeeded, c.Name)
		}
		if needsImage(o, c) {
			b.attempts += len(made[i])
		}
	}
	return b, nil
}

// makeImages returns the images of each card; those of different cards are made at
// the same time, as far as the builder lets them.
func makeImages(ctx context.Context, o Options, land landing) [][]Image {
	made := make([][]Image, len(o.Cards))
	var all sync.WaitGroup
	for i, c := range o.Cards {
		if !needsImage(o, c) {
			made[i] = []Image{bare(c)}
			continue
		}
		all.Go(func() {
			images, err := o.Images.Build(ctx, ImageRequest{Root: o.Root, Card: c, Context: land.context})
			if err == nil && len(images) == 0 {
				err = errors.New("the image builder returned no image")
			}
			if err != nil {
				images = []Image{{Err: err}}
			}
			made[i] = images
		})
	}
	all.Wait()
	return made
}

func (b *built) fail(c discover.Found, image Image) {
	failure := map[string]any{"model": c.Name, "error": image.Err.Error()}
	of := ""
	if image.Architecture != "" {
		failure["architecture"] = image.Architecture
		of = " for " + image.Architecture
	}
	b.failed = append(b.failed, failure)
	b.errs = append(b.errs, fmt.Errorf("card %q%s: %w", c.Name, of, image.Err))
}

func (b *built) count(c discover.Found, image Image) {
	if s, ok := image.Entry["build_duration"].(float64); ok {
		b.seconds += s
	}
	name := image.Entry["docker_image"]
	switch {
	case image.PushErr != nil:
		b.unpushed = append(b.unpushed, map[string]any{"image": name, "registry_image": image.Pushed, "error": image.PushErr.Error()})
		b.errs = append(b.errs, fmt.Errorf("card %q: %w", c.Name, image.PushErr))
	case image.Pushed != "":
		b.pushed = append(b.pushed, map[string]any{"image": name, "registry_image": image.Pushed, "docker_sha": image.Entry["docker_sha"]})
	}
}

// summary is the part of the manifest that says what became of the builds.
func (b *built) summary() map[string]any {
	return map[string]any{
		"successful_builds": b.succeeded,
		"failed_builds":     b.failed,
		"successful_pushes": b.pushed,
		"failed_pushes":     b.unpushed,
		"total_build_time":  math.Round(b.seconds*1000) / 1000,
	}
}

// failure is the error of a manifest that lacks images, nil when none is missing.
func (b *built) failure() error {
	var what []string
	if n := len(b.failed); n > 0 {
		what = append(what, fmt.Sprintf("%d of %s failed", n, phrase.Count(b.attempts, "image build")))
	}
	if n := len(b.unpushed); n > 0 {
		what = append(what, fmt.Sprintf("%d of %s could not be pushed", n, phrase.Count(n+len(b.pushed), "image")))
	}
	if len(what) == 0 {
		return nil
	}
	return exitcode.Errorf(exitcode.BuildFailure, "%s: %w", strings.Join(what, " and "), errors.Join(b.errs...))
}

func needsImage(o Options, c discover.Found) bool {
	switch {
	case o.NoImages:
		return false
	case o.Images != nil:
		return o.Images.Needs(c)
	}
	return HasDockerfile(c)
}

// HasDockerfile says whether a card declares that it runs in an image.
func HasDockerfile(c discover.Found) bool { return strings.TrimSpace(c.Card.Dockerfile) != "" }

// bare is the entry of a card that runs directly on the host.
func bare(c discover.Found) Image {
	return Image{Key: c.Name, Entry: map[string]any{
		"model":        c.Name,
		"docker_image": nil,
		"dockerfile":   c.Raw["dockerfile"],
	}}
}

// model is an entry with every key of its card, and where that came from.
func model(raw map[string]any, c discover.Found, git Revision) map[string]any {
	m := maps.Clone(raw)
	m["card_file"] = c.File
	m["card_digest"] = c.Digest
	delete(m, "git_commit") // a card cannot know it
	delete(m, "git_dirty")
	if git.Commit != "" {
		m["git_commit"] = git.Commit
		m["git_dirty"] = git.Dirty
	}
	return m
}

// checkImages names all cards whose images cannot be made.
func checkImages(o Options, land landing) error {
	var errs []error
	var unserved []string
	for _, c := range o.Cards {
		switch {
		case !needsImage(o, c):
		case o.Images == nil:
			unserved = append(unserved, fmt.Sprintf("%s (%s)", c.Name, c.File))
		default:
			if err := o.Images.Check(ImageRequest{Root: o.Root, Card: c, Context: land.context}); err != nil {
				errs = append(errs, fmt.Errorf("card %q (%s): %w", c.Name, c.File, err))
			}
		}
	}
	if len(unserved) > 0 {
		why := ""
		if o.NoBuilder != nil {
			why = ": " + o.NoBuilder.Error()
		}
		errs = append(errs, fmt.Errorf("an image is needed for %s, because of the dockerfile, and there is nothing to build it with%s",
			strings.Join(unserved, ", "), why))
	}
	return exitcode.With(exitcode.Invalid, errors.Join(errs...))
}

// Encode writes a document as manifests are written: sorted keys, two spaces of indent and a final newline.
func Encode(doc map[string]any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(doc); err != nil {
		return nil, exitcode.Errorf(exitcode.Invalid, "the manifest cannot be written as JSON: %w", err)
	}
	return b.Bytes(), nil
}
