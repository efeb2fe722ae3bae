package imagebuild

import (
	"context"
	"fmt"
	"strings"

	"assay/pkg/build"
	"assay/pkg/card"
	"assay/pkg/discover"
	"assay/pkg/exitcode"
)

// imageVariable is the variable of a card that names an image to use.
const imageVariable = "DOCKER_IMAGE_NAME"

// Existing uses images that are there already instead of building any. It is a
// build.ImageBuilder.
type Existing struct {
	image string // for every card; empty: what each card says
}

// UseImage returns the builder that puts image into every entry, or with auto into
// each the one that its card names: DOCKER_IMAGE_NAME of its env_vars, else the image
// that its Dockerfile is built on. The error has the code INVALID.
func UseImage(image string) (*Existing, error) {
	if image = strings.TrimSpace(image); image == "auto" {
		return &Existing{}, nil
	}
	if err := checkReference(image); err != nil {
		return nil, exitcode.With(exitcode.Invalid, err)
	}
	return &Existing{image: image}, nil
}

// Needs says whether a card is going to run in an image.
func (e *Existing) Needs(c discover.Found) bool {
	return e.image != "" || build.HasDockerfile(c) || declared(c.Card) != ""
}

// Check says why there is no image for a card.
func (e *Existing) Check(r build.ImageRequest) error {
	_, _, err := e.choose(r)
	return err
}

// Build returns the entry of a card. Nothing is run, so that neither an engine nor
// the image has to be on this machine.
func (e *Existing) Build(_ context.Context, r build.ImageRequest) ([]build.Image, error) {
	image, vendor, err := e.choose(r)
	if err != nil {
		return nil, err
	}
	entry := map[string]any{
		"model": r.Card.Name, "docker_image": image, "dockerfile": r.Card.Raw["dockerfile"], "base_docker": image,
		"gpu_vendor": vendor, "registry_image": nil, "registry": nil, "build_duration": 0.0,
	}
	if _, digest, pinned := strings.Cut(image, "@"); pinned {
		entry["docker_sha"] = digest
	}
	return []build.Image{{Key: r.Card.Name, Entry: entry}}, nil
}

func (e *Existing) choose(r build.ImageRequest) (image, vendor string, err error) {
	vendor = strings.ToUpper(text(r.Context, "gpu_vendor"))
	if e.image != "" {
		return e.image, vendor, nil
	}
	if image := declared(r.Card.Card); image != "" {
		return image, vendor, checkReference(image)
	}
	file, err := findDockerfile(r)
	if err != nil {
		return "", "", err
	}
	args, err := buildArgs(r.Context, nil, nil)
	if err != nil {
		return "", "", err
	}
	content, err := readDockerfile(file.path)
	if err != nil {
		return "", "", err
	}
	base := baseImage(content, args)
	if base == "" || base == "scratch" || checkReference(base) != nil {
		return "", "", fmt.Errorf("%s is built on %q, which is no image to use instead: name one with --use-image IMAGE", file.shown, base)
	}
	return base, file.vendorOf(base), nil
}

// declared is the image that a card names itself.
func declared(c card.Card) string {
	return strings.TrimSpace(string(c.EnvVars[imageVariable]))
}
