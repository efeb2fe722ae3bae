package discover

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"assay/pkg/exitcode"
)

// suitesDir below models/ holds suites, which are no cards.
const suitesDir = "suites"

// catalog is every card below a root, parsed but not yet checked.
type catalog struct {
	root     string
	entries  []entry
	warnings []string
	notRun   []string // dynamic sources that were not allowed to run
}

// load reads every source. It reports all files it cannot use, not only the first.
func load(ctx context.Context, o Options) (*catalog, error) {
	c := &catalog{root: o.Root}
	if info, err := os.Stat(o.Root); err != nil {
		return nil, exitcode.Errorf(exitcode.Invalid, "the model directory cannot be read: %w", err)
	} else if !info.IsDir() {
		return nil, exitcode.Errorf(exitcode.Invalid, "the model directory %s is not a directory", o.Root)
	}
	err := errors.Join(c.rootList(), c.scripts(ctx, o), c.models())
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, exitcode.With(exitcode.Invalid, err)
	}
	return c, nil
}

func (c *catalog) rootList() error {
	const name = "models.json"
	if _, err := os.Lstat(filepath.Join(c.root, name)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return c.file(source{file: name, kind: listSource})
}

// scripts reads the sources of every directory below scripts/.
func (c *catalog) scripts(ctx context.Context, o Options) error {
	var errs []error
	dirs, err := c.list("scripts")
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		if !dir.isDir {
			continue
		}
		files, err := c.list(dir.path)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for _, f := range files {
			s := source{file: f.path, scope: dir.name, prefix: true, kind: listSource}
			switch {
			case f.isDir:
			case f.name == "models.json":
				errs = append(errs, c.file(s))
			case strings.HasPrefix(f.name, "get_models_json"):
				errs = append(errs, c.dynamic(ctx, o, s))
			}
		}
	}
	return errors.Join(errs...)
}

// models reads the card files of models/ and of its directories.
func (c *catalog) models() error {
	var errs []error
	top, err := c.list("models")
	if err != nil {
		return err
	}
	for _, f := range top {
		switch {
		case f.isDir && f.name == suitesDir:
		case f.isDir:
			files, err := c.list(f.path)
			errs = append(errs, err)
			for _, below := range files {
				if !below.isDir && isCardFile(below.name) {
					errs = append(errs, c.file(source{file: below.path, scope: f.name, kind: looseSource}))
				}
			}
		case isCardFile(f.name):
			errs = append(errs, c.file(source{file: f.path, kind: cardSource}))
		}
	}
	return errors.Join(errs...)
}

func isCardFile(name string) bool {
	switch path.Ext(name) {
	case ".yaml", ".yml", ".json":
		return true
	}
	return false
}

// listed is an entry of a directory, symbolic links followed.
type listed struct {
	name, path string // path is relative to the root, with slashes
	isDir      bool
}

// list gives the visible entries of a directory by name. A missing directory is
// empty.
func (c *catalog) list(dir string) ([]listed, error) {
	entries, err := os.ReadDir(filepath.Join(c.root, filepath.FromSlash(dir)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: the directory cannot be read: %w", dir, reason(err))
	}
	var out []listed
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			continue
		}
		f := listed{name: e.Name(), path: path.Join(dir, e.Name()), isDir: e.IsDir()}
		if e.Type()&fs.ModeSymlink != 0 {
			info, err := os.Stat(filepath.Join(c.root, filepath.FromSlash(f.path)))
			f.isDir = err == nil && info.IsDir()
		}
		out = append(out, f)
	}
	return out, nil
}

// file reads a card file and adds its cards.
func (c *catalog) file(s source) error {
	full := filepath.Join(c.root, filepath.FromSlash(s.file))
	info, err := os.Stat(full)
	if err != nil {
		return fmt.Errorf("%s: the card file cannot be read: %w", s.file, reason(err))
	}
	if !info.Mode().IsRegular() { // reading a FIFO would hang
		return fmt.Errorf("%s: the card file cannot be read: it is not a regular file", s.file)
	}
	data, err := os.ReadFile(full)
	if err != nil {
		return fmt.Errorf("%s: the card file cannot be read: %w", s.file, reason(err))
	}
	doc, err := Decode(s.file, data)
	if err != nil {
		return err
	}
	return c.add(s, doc)
}

// reason drops the path from an error that is about to name it.
func reason(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}
