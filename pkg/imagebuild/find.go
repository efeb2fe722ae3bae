package imagebuild

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"assay/pkg/build"
)

const suffix = ".Dockerfile"

// dockerfile is a file that a card's dockerfile may mean.
type dockerfile struct {
	path    string            // absolute
	shown   string            // relative to the models root where it lies below it
	parts   []string          // what stands between the card's dockerfile and .Dockerfile: guest OS, vendor
	context map[string]string // of its comment "# CONTEXT {…}", keys as written
	vendor  string            // of the request
	matched int               // how much of the request its name repeats
}

// base is the name of the file without its ending.
func (d dockerfile) base() string { return strings.TrimSuffix(filepath.Base(d.path), suffix) }

// vendorOf is the GPU vendor of an image: what was asked for, else what the name or
// the comment of the Dockerfile says, else what its base image is known for.
func (d dockerfile) vendorOf(base string) string {
	if d.vendor != "" {
		return d.vendor
	}
	for _, p := range d.parts {
		if slices.Contains(vendors(), strings.ToLower(p)) {
			return strings.ToUpper(p)
		}
	}
	if v := d.context["gpu_vendor"]; v != "" {
		return strings.ToUpper(v)
	}
	base = strings.ToLower(base)
	switch {
	case strings.Contains(base, "rocm") || strings.HasPrefix(base, "amd/"):
		return "AMD"
	case strings.Contains(base, "nvidia") || strings.Contains(base, "cuda"):
		return "NVIDIA"
	}
	return ""
}

func vendors() []string { return []string{"amd", "nvidia", "intel"} }

func systems() []string { return []string{"ubuntu", "centos", "rocky", "debian", "rhel", "sles"} }

// findDockerfile chooses the Dockerfile of a card: NAME.<guest_os>.<gpu_vendor>.Dockerfile,
// or one with fewer or other words in between, else NAME.Dockerfile, else NAME itself. A
// word, or a comment "# CONTEXT {…}", that contradicts the context rules a file out.
func findDockerfile(r build.ImageRequest) (dockerfile, error) {
	name := strings.TrimSpace(r.Card.Card.Dockerfile)
	at := name
	if !filepath.IsAbs(at) {
		at = filepath.Join(r.Root, at)
	}
	vendor, system := text(r.Context, "gpu_vendor"), text(r.Context, "guest_os")
	var fit, unfit []dockerfile
	all, err := candidates(r.Root, at)
	if err != nil {
		return dockerfile{}, err
	}
	for _, d := range all {
		if d.vendor = strings.ToUpper(vendor); d.fits(r.Context, vendor, system) {
			fit = append(fit, d)
		} else {
			unfit = append(unfit, d)
		}
	}
	slices.SortStableFunc(fit, better)
	switch {
	case len(fit) == 0:
		return dockerfile{}, notFound(name, vendor, system, unfit)
	case len(fit) > 1 && better(fit[0], fit[1]) == 0:
		return dockerfile{}, fmt.Errorf("dockerfile %s may be %s or %s: say which by gpu_vendor and guest_os in --additional-context, "+
			"or by the name of the file in the card", name, fit[0].shown, fit[1].shown)
	}
	return fit[0], nil
}

// better orders files that fit: those that repeat more of what was asked for, then
// those that say less else, then the one that ends in .Dockerfile.
func better(a, b dockerfile) int {
	return cmp.Or(cmp.Compare(b.matched, a.matched), cmp.Compare(len(a.parts), len(b.parts)), cmp.Compare(plain(a), plain(b)))
}

func plain(d dockerfile) int {
	if strings.HasSuffix(d.path, suffix) {
		return 0
	}
	return 1
}

func notFound(name, vendor, system string, unfit []dockerfile) error {
	looked := []string{name + ".*" + suffix, name + suffix, name}
	if vendor != "" && system != "" {
		looked = slices.Insert(looked, 0, fmt.Sprintf("%s.%s.%s%s", name, strings.ToLower(system), strings.ToLower(vendor), suffix))
	}
	err := fmt.Errorf("dockerfile %s: there is no file %s below the models root", name, strings.Join(looked, " or "))
	if len(unfit) == 0 {
		return err
	}
	var have []string
	for _, d := range unfit {
		have = append(have, d.shown)
	}
	asked := strings.TrimSpace(vendor + " " + system)
	return fmt.Errorf("dockerfile %s: of %s none is for %s: gpu_vendor and guest_os come from --additional-context",
		name, strings.Join(have, ", "), asked)
}

// candidates lists the files that the path may mean, in the order of their names.
func candidates(root, at string) ([]dockerfile, error) {
	dir, name := filepath.Split(at)
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("the directory of its dockerfile cannot be read: %w", err)
	}
	var all []dockerfile
	for _, e := range entries {
		rest, ours := strings.CutPrefix(e.Name(), name)
		between := strings.TrimSuffix(rest, suffix)
		if !ours || rest != "" && (between == rest || between != "" && between[0] != '.') {
			continue
		}
		d := dockerfile{path: filepath.Join(dir, e.Name())}
		if info, err := os.Stat(d.path); err != nil || !info.Mode().IsRegular() {
			continue
		}
		if between != "" {
			d.parts = strings.Split(between[1:], ".")
		}
		text, err := readDockerfile(d.path)
		if err != nil {
			return nil, err
		}
		d.context = contextComment(text)
		d.shown = d.path
		if rel, err := filepath.Rel(root, d.path); err == nil && filepath.IsLocal(rel) {
			d.shown = filepath.ToSlash(rel)
		}
		all = append(all, d)
	}
	return all, nil
}

// fits says whether nothing about a file contradicts the context, and counts what
// repeats it.
func (d *dockerfile) fits(context map[string]any, vendor, system string) bool {
	for key, want := range d.context {
		have := text(context, key)
		if have != "" && !strings.EqualFold(have, want) {
			return false
		}
	}
	for _, p := range d.parts {
		p = strings.ToLower(p)
		for _, kind := range []struct {
			known []string
			asked string
		}{{vendors(), vendor}, {systems(), system}} {
			asked := strings.ToLower(kind.asked)
			switch {
			case asked == "":
			case p == asked:
				d.matched++
			case slices.Contains(kind.known, p):
				return false
			}
		}
	}
	return true
}

// text is a string of the context block.
func text(context map[string]any, key string) string {
	s, _ := context[key].(string)
	return strings.TrimSpace(s)
}
