package build

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	"assay/pkg/discover"
	"assay/pkg/exitcode"
)

// ImageBuilder builds container images.
type ImageBuilder interface {
	// Build makes the images of one card: one, or one an architecture. The error
	// says what the tool said.
	Build(context.Context, ImageRequest) ([]Image, error)
}

// ImageRequest asks for the images of a card that has a dockerfile.
type ImageRequest struct {
	Root    string         // the models root; the card's dockerfile is relative to it
	Card    discover.Found //
	Context map[string]any // the context block of the manifest: docker_build_arg, gpu_vendor, guest_os
}

// Image is a built image.
type Image struct {
	Key   string         // joins built_images and built_models; unique in a manifest
	Entry map[string]any // of built_images: docker_image, dockerfile, base_docker, build_duration …
}

// built is the part of the manifest that comes from the cards.
type built struct {
	images, models map[string]any
	succeeded      []any // names
	failed         []any // {model, error}
	errs           []error
	attempts       int // image builds
}

// freeze makes the entries of all cards. A failed image build is recorded, and
// the next card is built.
func freeze(ctx context.Context, o Options, land landing) (built, error) {
	b := built{images: map[string]any{}, models: map[string]any{}, succeeded: []any{}, failed: []any{}}
	for _, c := range o.Cards {
		images := []Image{bare(c)}
		if needsImage(c) {
			b.attempts++
			var err error
			images, err = buildImages(ctx, o, ImageRequest{Root: o.Root, Card: c, Context: land.context})
			if ctx.Err() != nil {
				return built{}, ctx.Err()
			}
			if err != nil {
				b.failed = append(b.failed, map[string]any{"model": c.Name, "error": err.Error()})
				b.errs = append(b.errs, fmt.Errorf("card %q: %w", c.Name, err))
				continue
			}
		}
		for _, image := range images {
			if _, twice := b.images[image.Key]; twice {
				return built{}, exitcode.Errorf(exitcode.Invalid, "two entries of the manifest have the key %q; rename a card", image.Key)
			}
			b.images[image.Key] = image.Entry
			b.models[image.Key] = model(c, o.Git)
		}
		b.succeeded = append(b.succeeded, c.Name)
	}
	return b, nil
}

func buildImages(ctx context.Context, o Options, r ImageRequest) ([]Image, error) {
	images, err := o.Images.Build(ctx, r)
	if err == nil && len(images) == 0 {
		err = errors.New("the image builder returned no image")
	}
	return images, err
}

func needsImage(c discover.Found) bool { return strings.TrimSpace(c.Card.Dockerfile) != "" }

// bare is the entry of a card that runs directly on the host.
func bare(c discover.Found) Image {
	return Image{Key: c.Name, Entry: map[string]any{
		"model":        c.Name,
		"docker_image": nil,
		"dockerfile":   c.Raw["dockerfile"],
	}}
}

// model is the card with every key it has, and where it came from.
func model(c discover.Found, git Revision) map[string]any {
	m := maps.Clone(c.Raw)
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

// refuseDockerfiles names all cards that need an image when none can be built.
func refuseDockerfiles(o Options) error {
	if o.Images != nil {
		return nil
	}
	var errs []error
	for _, c := range o.Cards {
		if needsImage(c) {
			errs = append(errs, fmt.Errorf("card %q (%s) needs an image built from %s, and building images is not available here; "+
				"remove dockerfile from the card to run it directly on the host", c.Name, c.File, c.Card.Dockerfile))
		}
	}
	return exitcode.With(exitcode.Invalid, errors.Join(errs...))
}

// encode writes sorted keys, two spaces of indent and a final newline.
func encode(doc map[string]any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(doc); err != nil {
		return nil, exitcode.Errorf(exitcode.Invalid, "the manifest cannot be written as JSON: %w", err)
	}
	return b.Bytes(), nil
}
