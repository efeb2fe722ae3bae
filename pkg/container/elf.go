package container

import (
	"debug/elf"
	"fmt"
	"io"
	"strings"

	"assay/pkg/exitcode"
)

// CheckStatic says why a program may not run inside an image: it names an
// interpreter, the dynamic loader, which the image need not have.
func CheckStatic(path string) error {
	f, err := elf.Open(path)
	if err != nil {
		return exitcode.Errorf(exitcode.Error, "%s cannot be put into a container: %w", path, err)
	}
	defer func() { _ = f.Close() }() // nothing was written
	for _, p := range f.Progs {
		if p.Type != elf.PT_INTERP {
			continue
		}
		loader, err := io.ReadAll(io.LimitReader(p.Open(), 4096))
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		return exitcode.Errorf(exitcode.Error, "%s is linked dynamically and needs %s, which an image need not have: "+
			"build assay with CGO_ENABLED=0, as make build does, or name such a one as rank_binary", path, strings.TrimRight(string(loader), "\x00"))
	}
	return nil
}
