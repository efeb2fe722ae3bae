package k8s

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"assay/pkg/exitcode"
	"assay/pkg/plan"
	"assay/pkg/regular"
	"assay/pkg/rundir"
)

// maxShipped is how much a ConfigMap carries, in bytes: Kubernetes takes 1 MiB, names
// and the job file included.
const maxShipped = 900 << 10

// shipment are the files that pods are given, in the order of their paths.
type shipment struct {
	files   []shippedFile
	program string // path of the job's script among them; empty: it is not shipped
}

// shippedFile is one file. Its path is relative to the directory of the manifest.
type shippedFile struct {
	path, key  string
	data       []byte
	executable bool
}

// text reports whether a ConfigMap can hold the content as a string.
func (f shippedFile) text() bool { return utf8.Valid(f.data) && bytes.IndexByte(f.data, 0) < 0 }

// interpreter says what runs the job's script: itself when it says so, else python3
// for a .py and bash for anything else.
func (s shipment) interpreter() []string {
	i := slices.IndexFunc(s.files, func(f shippedFile) bool { return f.path == s.program })
	if head := s.files[i].data; bytes.HasPrefix(head, []byte("#!")) || bytes.HasPrefix(head, []byte("\x7fELF")) {
		return nil
	}
	if path.Ext(s.program) == ".py" {
		return []string{"python3"}
	}
	return []string{"bash"}
}

// fits refuses what is too much for a ConfigMap beside other bytes.
func (s shipment) fits(other int) error {
	total := int64(other)
	largest := shippedFile{}
	for _, f := range s.files {
		total += int64(len(f.data))
		if len(f.data) > len(largest.data) {
			largest = f
		}
	}
	if total <= maxShipped {
		return nil
	}
	return tooMuch(largest.path, int64(len(largest.data)))
}

func tooMuch(name string, size int64) error {
	what := "the job file"
	if name != "" {
		what = fmt.Sprintf("%s alone has %d KiB", name, (size+1023)>>10)
	}
	return exitcode.Errorf(exitcode.Invalid, "the scripts and the files beside them are more than the %d KiB that pods can be given through a ConfigMap (%s): "+
		"put them into the image, and set MODEL_DIR in env_vars to the directory where they are there", maxShipped>>10, what)
}

// ship reads the files that the ranks of a job need and that are not in its image:
// the script and all beside it, as ranks on this machine would find them.
func ship(a plan.Attempt) (shipment, error) {
	j := a.Job
	base := j.Env["MODEL_DIR"]
	if filepath.IsAbs(base) || j.ModelDir == "" {
		return shipment{}, nil
	}
	c := collector{root: j.ModelDir, attempt: a.Dir, files: map[string]shippedFile{}}
	if f := j.EnvFile; f != nil {
		c.withheld = append(c.withheld, f.Path)
	}
	if j.K8s != nil {
		c.withheld = append(c.withheld, j.K8s.Withheld...)
	}
	program, err := c.script(base, j.Program.Script, true)
	if err != nil {
		return shipment{}, err
	}
	words := slices.Concat(j.Program.Command, j.Program.Encapsulate, j.Program.Args)
	for _, s := range slices.Concat(j.PreScripts, j.PostScripts) {
		if _, err := c.script(base, s.Path, false); err != nil {
			return shipment{}, err
		}
		words = append(words, s.Args...)
	}
	for _, w := range words {
		if err := c.named(base, w); err != nil {
			return shipment{}, err
		}
	}
	return shipment{files: c.sorted(), program: program}, nil
}

// collector gathers files below the directory of the manifest.
type collector struct {
	root     string
	attempt  string   // the attempt directory: what it lies in is not shipped
	withheld []string // absolute paths of files that are never shipped
	files    map[string]shippedFile
	size     int64
}

// script adds a script, and what lies beside it. A script in the directory of the
// manifest itself has everything beside it, so that only that of the job brings it
// along. It returns where the script is, "" when it is not there: it may be in the
// image.
func (c *collector) script(base, script string, program bool) (string, error) {
	if script == "" || filepath.IsAbs(script) {
		return "", nil
	}
	rel := filepath.Join(base, script)
	if !filepath.IsLocal(rel) {
		return "", exitcode.Errorf(exitcode.Invalid, "the script %s is not below the directory of the manifest, from which pods are given it: move it there, or put it into the image and name it by its absolute path", script)
	}
	info, err := os.Stat(filepath.Join(c.root, rel))
	if err == nil && info.IsDir() {
		rel = filepath.Join(rel, "run.sh")
		info, err = os.Stat(filepath.Join(c.root, rel))
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err != nil:
		return "", unreadable(err)
	case !info.Mode().IsRegular():
		return "", exitcode.Errorf(exitcode.Invalid, "the script %s is no regular file", script)
	}
	if dir := filepath.Dir(rel); program || dir != "." {
		if err := c.tree(dir); err != nil {
			return "", err
		}
	}
	if err := c.file(rel); err != nil {
		return "", err
	}
	return filepath.ToSlash(rel), nil
}

// named adds the file that a word of a command names, if it names one, as FILE or
// OPTION=FILE.
func (c *collector) named(base, word string) error {
	if _, value, ok := strings.Cut(word, "="); ok && strings.HasPrefix(word, "-") {
		word = value
	}
	rel := filepath.Join(base, word)
	if word == "" || filepath.IsAbs(word) || !filepath.IsLocal(rel) || rel == "." {
		return nil
	}
	info, err := os.Stat(filepath.Join(c.root, rel))
	switch {
	case err != nil: // it is no file
		return nil
	case info.IsDir():
		return nil
	}
	return c.file(rel)
}

// tree adds the regular files of a directory and of those below it.
func (c *collector) tree(dir string) error {
	top := filepath.Join(c.root, dir)
	return filepath.WalkDir(top, func(at string, entry fs.DirEntry, err error) error {
		if err != nil {
			return unreadable(err)
		}
		if entry.IsDir() {
			if at != top && c.leaveOut(at, entry.Name()) {
				return filepath.SkipDir
			}
			return nil
		}
		rel, err := filepath.Rel(c.root, at)
		if err != nil || filepath.Dir(at) == top && entry.Name() == "perf.csv" {
			return err
		}
		if info, err := os.Stat(at); err != nil || !info.Mode().IsRegular() { // a link that leads nowhere, a socket
			return nil //nolint:nilerr // no file is lost by it
		}
		return c.file(rel)
	})
}

// leaveOut reports whether a directory belongs to no workload: the history of its
// sources, and runs.
func (c *collector) leaveOut(dir, name string) bool {
	if name == ".git" {
		return true
	}
	if in, err := filepath.Rel(dir, c.attempt); err == nil && filepath.IsLocal(in) {
		return true
	}
	_, err := os.Stat(filepath.Join(dir, rundir.LedgerFile))
	return err == nil
}

// file adds one file, unless it holds secrets.
func (c *collector) file(rel string) error {
	name := filepath.ToSlash(rel)
	if _, have := c.files[name]; have {
		return nil
	}
	at := filepath.Join(c.root, rel)
	info, err := os.Stat(at)
	if err != nil {
		return unreadable(err)
	}
	if !info.Mode().IsRegular() || c.secret(info) {
		return nil
	}
	if c.size += info.Size(); c.size > maxShipped {
		return tooMuch(name, info.Size())
	}
	if !utf8.ValidString(name) {
		return exitcode.Errorf(exitcode.Invalid, "the file %q cannot be given to pods: its name is no UTF-8", at)
	}
	data, err := regular.ReadFile(at, maxShipped)
	if err != nil {
		return unreadable(err)
	}
	if isManifest(name, data) {
		return nil
	}
	c.files[name] = shippedFile{path: name, data: data, executable: info.Mode()&0o111 != 0}
	return nil
}

// secret reports whether a file is the env_file, under whatever name.
func (c *collector) secret(info fs.FileInfo) bool {
	if info.Name() == "credential.json" { // where madengine keeps credentials
		return true
	}
	return slices.ContainsFunc(c.withheld, func(path string) bool {
		other, err := os.Stat(path)
		return err == nil && os.SameFile(info, other)
	})
}

// isManifest reports whether a file is a manifest, this one or another: its variables
// may be secrets, and no workload reads it.
func isManifest(name string, data []byte) bool {
	switch path.Ext(name) {
	case ".json", ".yaml", ".yml":
		return bytes.Contains(data, []byte("built_models")) && bytes.Contains(data, []byte("built_images"))
	}
	return false
}

// sorted are the files in the order of their paths, each with a key that a ConfigMap
// can have.
func (c *collector) sorted() []shippedFile {
	var out []shippedFile
	for _, f := range c.files {
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b shippedFile) int { return cmp.Compare(a.path, b.path) })
	for i := range out {
		const most = 100
		base := strings.Map(func(r rune) rune {
			if r < utf8.RuneSelf && (r == '.' || r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z') {
				return r
			}
			return '_'
		}, path.Base(out[i].path))
		out[i].key = fmt.Sprintf("model-%04d-%s", i, base[:min(len(base), most)])
	}
	return out
}

func unreadable(err error) error {
	return exitcode.Errorf(exitcode.Invalid, "a file that pods are to be given cannot be read: %w", err)
}
