package cli

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"assay/pkg/durable"
	"assay/pkg/exitcode"
	"assay/pkg/regular"
)

// installCmd copies this binary. The init container of a pod runs it, in an image
// that has nothing else.
func (a *app) installCmd() *cobra.Command {
	return &cobra.Command{
		Use:     "install DEST",
		Short:   "Copy this binary to a path",
		Long:    "install copies the running assay to DEST, so that it is there as a whole or not at all, and can be executed.",
		Example: "  assay install /assay/bin/assay",
		Hidden:  true,
		Args:    exactly(1, "the path of the copy"),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.install(args[0])
		},
	}
}

func (a *app) install(dest string) error {
	if !filepath.IsAbs(dest) {
		dest = filepath.Join(a.Dir, dest)
	}
	if info, err := os.Stat(dest); err == nil && info.IsDir() {
		return exitcode.Errorf(exitcode.Invalid, "%s is a directory; give the path of the copy, as in %s", dest, filepath.Join(dest, "assay"))
	}
	src, err := regular.Open(a.Binary)
	if err != nil {
		return exitcode.Errorf(exitcode.Error, "this binary cannot be read: %w", err)
	}
	defer src.Close()
	if err := os.MkdirAll(filepath.Dir(dest), 0o755); err != nil {
		return exitcode.With(exitcode.Error, err)
	}
	if err := durable.Copy(dest, src, 0o755); err != nil {
		return exitcode.With(exitcode.Error, fmt.Errorf("not installed: %w", err))
	}
	return nil
}
