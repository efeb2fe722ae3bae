package container

import "strings"

// Pyxis gives the options of srun by which the plugin pyxis runs the step in a
// container: in the image, with the mounts.
func Pyxis(image string, mounts []Mount) ([]string, error) {
	words := make([]string, len(mounts))
	for i, m := range mounts {
		word, err := bindWord(m)
		if err != nil {
			return nil, err
		}
		words[i] = word
	}
	return []string{
		"--container-image=" + enrootImage(image),
		"--container-mounts=" + strings.Join(words, ","),
		"--no-container-mount-home", "--no-container-entrypoint",
	}, nil
}

// enrootImage writes a reference as enroot takes it: the registry and the name apart
// by a #. Files stay.
func enrootImage(image string) string {
	if strings.HasPrefix(image, "/") || strings.HasPrefix(image, ".") || strings.ContainsRune(image, '#') || strings.Contains(image, "://") {
		return image
	}
	first, rest, found := strings.Cut(image, "/")
	if found && (strings.ContainsAny(first, ".:") || first == "localhost") {
		return first + "#" + rest
	}
	return image
}
