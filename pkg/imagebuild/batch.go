package imagebuild

import (
	"cmp"
	"encoding/json"
	"fmt"

	"assay/pkg/exitcode"
	"assay/pkg/regular"
)

// BatchEntry is what a batch manifest says about a card.
type BatchEntry struct {
	BuildNew      bool   // else its image exists already
	RegistryImage string // what it is in a registry, or is pushed as; may be empty
	Registry      string // HOST[/PATH]; may be empty
}

// Batch is a batch manifest, by the names of cards.
type Batch map[string]BatchEntry

// batchBytes bounds a batch manifest.
const batchBytes = 16 << 20

// ReadBatch reads a batch manifest: a list of {model_name, build_new, registry_image,
// registry}. names are in the order of the file. The error has the code INVALID.
func ReadBatch(path string) (b Batch, names []string, err error) {
	data, err := regular.ReadFile(path, batchBytes)
	if err != nil {
		return nil, nil, exitcode.Errorf(exitcode.Invalid, "the batch manifest cannot be read: %w", err)
	}
	var list []struct {
		ModelName     string `json:"model_name"`
		BuildNew      bool   `json:"build_new"`
		RegistryImage string `json:"registry_image"`
		Registry      string `json:"registry"`
	}
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, nil, exitcode.Errorf(exitcode.Invalid, "%s is no list of {model_name, build_new, registry_image, registry}: %w", path, err)
	}
	b = Batch{}
	for i, e := range list {
		at := fmt.Sprintf("%s: /%d", path, i)
		if e.ModelName == "" {
			return nil, nil, exitcode.Errorf(exitcode.Invalid, "%s: model_name is missing", at)
		}
		if _, twice := b[e.ModelName]; twice {
			return nil, nil, exitcode.Errorf(exitcode.Invalid, "%s: %s is in the list already", at, e.ModelName)
		}
		if e.RegistryImage != "" {
			if err := checkReference(e.RegistryImage); err != nil {
				return nil, nil, exitcode.Errorf(exitcode.Invalid, "%s/registry_image: %w", at, err)
			}
		}
		if e.Registry != "" {
			if e.Registry, err = ParseRegistry(e.Registry); err != nil {
				return nil, nil, exitcode.Errorf(exitcode.Invalid, "%s/registry: %w", at, err)
			}
		}
		b[e.ModelName] = BatchEntry{e.BuildNew, e.RegistryImage, e.Registry}
		names = append(names, e.ModelName)
	}
	if len(names) == 0 {
		return nil, nil, exitcode.Errorf(exitcode.Invalid, "%s lists no model: there is nothing to build", path)
	}
	return b, names, nil
}

// Builds says whether the image of a card has to be built.
func (b Batch) Builds(card string) bool {
	e, listed := b[card]
	return !listed || e.BuildNew
}

// place says where the image of an order goes, or where it is already.
func (b *Builder) place(o *order) {
	e := b.o.Batch[o.card]
	o.registry = cmp.Or(e.Registry, b.o.Registry)
	o.push = e.RegistryImage
	if o.push == "" && o.registry != "" {
		o.push = o.registry + "/" + o.name
	}
	if !b.o.Batch.Builds(o.card) {
		o.ready, o.ref = true, cmp.Or(o.push, o.name)
	}
}
