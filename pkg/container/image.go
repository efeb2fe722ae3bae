package container

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Image is an image as a manifest records it.
type Image struct {
	Name string // that an engine may have it by
	Pull string // in a registry; empty: Name
	SHA  string // recorded digest: of what the registry has, or the id; empty: any
	ID   string // recorded id
}

// pullName is what is pulled when the engine has not the image.
func (i Image) pullName() string {
	if i.Pull != "" {
		return i.Pull
	}
	return i.Name
}

// had is an image as an engine has it.
type had struct {
	ID      string   `json:"Id"`
	Digests []string `json:"RepoDigests"`
}

// is reports whether an image is the recorded one.
func (i Image) is(h had) bool {
	if i.SHA == "" && i.ID == "" {
		return true
	}
	for _, want := range []string{i.SHA, i.ID} {
		if want == "" {
			continue
		}
		if bare(h.ID) == bare(want) || slices.ContainsFunc(h.Digests, func(d string) bool {
			_, digest, _ := strings.Cut(d, "@")
			return digest == want || d == want
		}) {
			return true
		}
	}
	return false
}

// bare is a digest without the name of its algorithm: podman writes ids so.
func bare(digest string) string {
	_, sum, found := strings.Cut(digest, ":")
	if !found {
		return digest
	}
	return sum
}

// recorded names the digest that was recorded.
func (i Image) recorded() string {
	if i.SHA != "" {
		return i.SHA
	}
	return i.ID
}

// Ensure makes sure that the engine has the image, and that it is the recorded one:
// what is missing or another is pulled. It returns the id of the image. The error is
// one sentence that says what the engine said and what helps. pulling is called
// before a pull begins; nil: nothing is.
func (c CLI) Ensure(ctx context.Context, i Image, locks Locks, pulling func(name string)) (id string, err error) {
	if h, ok, err := c.look(ctx, i); err != nil || ok {
		return h.ID, err
	}
	release, err := locks.take(ctx, i.pullName())
	if err != nil {
		return "", fmt.Errorf("image %s: waiting for its turn to be pulled: %w", i.pullName(), err)
	}
	defer release()
	if h, ok, err := c.look(ctx, i); err != nil || ok { // pulled meanwhile, for another rank
		return h.ID, err
	}
	if pulling != nil {
		pulling(i.pullName())
	}
	h, pullErr, err := c.pull(ctx, i)
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	switch {
	case pullErr == nil && err != nil:
		return "", fmt.Errorf("image %s was pulled, and then %w", i.pullName(), err)
	case err == nil && i.is(h):
		return h.ID, nil
	case pullErr != nil:
		return "", c.unpulled(ctx, i, pullErr)
	}
	return "", fmt.Errorf("image %s is not the one of the manifest: it is %s here, and %s was recorded; build and push it again, "+
		"or remove docker_sha and image_id from its entry to take whatever has the name", i.pullName(), h.describe(), i.recorded())
}

// pull pulls the image: by the digest that was recorded, for somebody may have pushed
// another to the same name since, and by its name where there is no such digest.
func (c CLI) pull(ctx context.Context, i Image) (h had, pullErr, err error) {
	if name := i.byDigest(); name != "" {
		if _, err := c.Output(ctx, "pull", "--quiet", name); err == nil {
			h, err := c.inspect(ctx, name)
			return h, nil, err
		}
		if ctx.Err() != nil {
			return h, ctx.Err(), ctx.Err()
		}
	}
	_, pullErr = c.Output(ctx, "pull", "--quiet", i.pullName())
	h, err = c.inspect(ctx, i.pullName())
	return h, pullErr, err
}

// byDigest is the image in its registry by the recorded digest, "" where that is not
// one of a registry.
func (i Image) byDigest() string {
	const length = len("sha256:") + 64
	if i.Pull == "" || !strings.HasPrefix(i.SHA, "sha256:") || len(i.SHA) != length || bare(i.SHA) == bare(i.ID) || strings.Contains(i.Pull, "@") {
		return ""
	}
	repository := i.Pull
	if colon := strings.LastIndexByte(repository, ':'); colon > strings.LastIndexByte(repository, '/') {
		repository = repository[:colon]
	}
	return repository + "@" + i.SHA
}

// Has looks for the image, as it was recorded, and pulls nothing.
func (c CLI) Has(ctx context.Context, i Image) (id string, found bool, err error) {
	h, found, err := c.look(ctx, i)
	return h.ID, found, err
}

// unpulled says why there is no image.
func (c CLI) unpulled(ctx context.Context, i Image, why error) error {
	const help = "push it with assay build --registry, or see that this node may pull it"
	if h, err := c.inspect(ctx, i.Name); err == nil {
		return fmt.Errorf("image %s is %s here, and %s was recorded, which could not be pulled as %s: %w; %s", i.Name, h.describe(), i.recorded(), i.pullName(), why, help)
	}
	return fmt.Errorf("image %s is not here and could not be pulled: %w; %s", i.pullName(), why, help)
}

// look finds the image by each of its names, and by its id.
func (c CLI) look(ctx context.Context, i Image) (had, bool, error) {
	var names []string
	for _, name := range []string{i.Name, i.Pull, i.ID} {
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, name := range names {
		h, err := c.inspect(ctx, name)
		var failed *Failure
		switch {
		case err == nil && i.is(h):
			return h, true, nil
		case err == nil, errors.As(err, &failed) && absent(failed):
		default:
			return had{}, false, fmt.Errorf("image %s could not be looked for: %w", name, err)
		}
	}
	return had{}, false, nil
}

// absent reports whether an engine said that there is no such image or container.
func absent(f *Failure) bool {
	said := strings.ToLower(f.Said)
	return strings.Contains(said, "no such") || strings.Contains(said, "not known") || strings.Contains(said, "not found")
}

func (c CLI) inspect(ctx context.Context, name string) (had, error) {
	out, err := c.Output(ctx, "image", "inspect", name) // a list, by either engine
	if err != nil {
		return had{}, err
	}
	var list []had
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		return had{}, fmt.Errorf("%s image inspect: its answer cannot be read: %w", c.Name, err)
	}
	if len(list) != 1 || list[0].ID == "" {
		return had{}, fmt.Errorf("%s image inspect gave no id", c.Name)
	}
	return list[0], nil
}

// describe names what an image is by: its digests in registries, and its id.
func (h had) describe() string {
	if len(h.Digests) == 0 {
		return h.ID
	}
	return h.ID + " (" + strings.Join(h.Digests, ", ") + ")"
}
