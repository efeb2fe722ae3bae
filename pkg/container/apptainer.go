package container

import (
	"fmt"
	"slices"
	"strings"
)

// Apptainer gives the arguments that run the container as a child of the command,
// with the variables for the command's environment: names, ids and labels have no
// place there. A path that its list of binds cannot carry is an error.
func (s Spec) Apptainer(env []string) (args, vars []string, err error) {
	args = []string{"exec", "--cleanenv", "--no-home"}
	args = append(args, s.GPUs.apptainer()...)
	for _, m := range s.Mounts {
		bind, err := bindWord(m)
		if err != nil {
			return nil, nil, err
		}
		args = append(args, "--bind", bind)
	}
	for _, kv := range env {
		// Its env-files are read as a shell would; these are taken as they stand.
		vars = append(vars, "APPTAINERENV_"+kv, "SINGULARITYENV_"+kv)
	}
	return slices.Concat(args, []string{apptainerImage(s.Image), Inside}, s.Command), vars, nil
}

// bindWord is a mount as lists of binds have it.
func bindWord(m Mount) (string, error) {
	for _, path := range []string{m.Source, m.Target} {
		if strings.ContainsAny(path, ":,\n\\\"") {
			return "", fmt.Errorf("%q cannot be mounted into the container: this runtime takes no path with a colon, a comma, a quote, a backslash or a line end", path)
		}
	}
	word := m.Source + ":" + m.Target
	if m.ReadOnly {
		word += ":ro"
	}
	return word, nil
}

// apptainerImage makes a reference of a registry one of apptainer's; files and what
// says where it comes from stay.
func apptainerImage(image string) string {
	if strings.HasPrefix(image, "/") || strings.HasPrefix(image, ".") || strings.Contains(image, "://") || strings.HasSuffix(image, ".sif") {
		return image
	}
	return "docker://" + image
}
