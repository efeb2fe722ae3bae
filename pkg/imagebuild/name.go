package imagebuild

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"

	"assay/pkg/exitcode"
	"assay/pkg/phrase"
)

// longestName bounds an image's name; engines refuse more than 255 characters with
// the registry in front.
const longestName = 160

var (
	oddInName  = regexp.MustCompile(`[^a-z0-9._-]+`)
	separators = regexp.MustCompile(`[._-]{2,}`)
	reference  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/@-]*$`)
	registries = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]+)?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*$`)
	archs      = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.:+-]*$`)
)

// imageName is the local name of a card's image.
func imageName(card, base string) string {
	return repository("ci-" + strings.ReplaceAll(card, "/", "_") + "_" + base)
}

// repository makes of a text the name of an image as engines take it: small letters,
// digits, and single separators inside.
func repository(s string) string {
	s = oddInName.ReplaceAllString(strings.ToLower(s), "-")
	s = separators.ReplaceAllStringFunc(s, func(run string) string {
		if run == "__" || strings.Trim(run, "-") == "" {
			return run
		}
		return run[:1]
	})
	s = strings.Trim(s, "._-")
	if len(s) > longestName {
		sum := sha256.Sum256([]byte(s))
		s = strings.TrimRight(s[:longestName], "._-") + "-" + hex.EncodeToString(sum[:4])
	}
	return s
}

// ParseRegistry reads HOST[:PORT][/PATH]; dockerhub stands for docker.io. The error
// has the code INVALID.
func ParseRegistry(s string) (string, error) {
	s = strings.TrimSpace(s)
	s = strings.TrimPrefix(strings.TrimPrefix(s, "https://"), "http://")
	s = strings.TrimSuffix(s, "/")
	if strings.EqualFold(s, "dockerhub") {
		return "docker.io", nil
	}
	if !registries.MatchString(s) {
		return "", exitcode.Errorf(exitcode.Invalid, "%q is no registry: it is HOST, HOST:PORT or one of them with a /path of small letters", phrase.Escape(s))
	}
	return s, nil
}

// ParseArchs reads the names of GPU architectures, several of which may stand in one
// word with commas between. The error has the code INVALID.
func ParseArchs(words []string) ([]string, error) {
	var out []string
	seen := map[string]bool{}
	for _, arch := range strings.Split(strings.Join(words, ","), ",") {
		switch arch = strings.TrimSpace(arch); {
		case arch == "" || seen[strings.ToLower(arch)]:
		case !archs.MatchString(arch):
			return nil, exitcode.Errorf(exitcode.Invalid, "%q is no name of a GPU architecture, as gfx942 is", phrase.Escape(arch))
		default:
			seen[strings.ToLower(arch)] = true
			out = append(out, arch)
		}
	}
	return out, nil
}

// archSuffix is what the name of an image for one of several architectures ends in.
// Features of one, as in gfx90a:xnack+, are spelt out: the names of images have no
// such characters.
func archSuffix(arch string) string {
	arch = strings.ToLower(arch)
	if off, ok := strings.CutSuffix(arch, "-"); ok {
		arch = off + "-off"
	}
	arch = strings.NewReplacer(":", "-", "+", "-on", "-:", "-off-").Replace(arch)
	return "_" + strings.Trim(separators.ReplaceAllString(arch, "-"), "._-")
}

// host is the part of a registry that one logs in to.
func host(registry string) string {
	h, _, _ := strings.Cut(registry, "/")
	return h
}

// checkReference refuses what an engine would take for something else.
func checkReference(ref string) error {
	if !reference.MatchString(ref) {
		return fmt.Errorf("%q is no name of an image", phrase.Escape(ref))
	}
	return nil
}
