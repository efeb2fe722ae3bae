// Package suite reads suites: ordered tests, each a card with what is different here,
// and files of thresholds by hardware and test. It takes a suite apart into its tests,
// one for each variant, and puts each over its card, as build freezes it.
//
// A value of a variant wins over that of its test, that over the card's, and that over
// the default of the suite.
package suite

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"assay/pkg/document"
	"assay/pkg/exitcode"
)

// The codes of what is wrong with a suite or its file of thresholds.
const (
	CodeCard       = "SUITE_CARD"       // a test names a card that is not there, or is no good
	CodeKey        = "SUITE_KEY"        // two tests have one key
	CodeName       = "SUITE_NAME"       // a name that no test can have
	CodeSize       = "SUITE_SIZE"       // more tests than are sensible
	CodeArgs       = "SUITE_ARGS"       // args that nothing would read
	CodeAxis       = "SUITE_AXIS"       // an axis that changes nothing by itself, or another one hides
	CodeOptional   = "SUITE_OPTIONAL"   // no test decides
	CodeThresholds = "SUITE_THRESHOLDS" // the file of thresholds, or what it lacks
)

// maxTests bounds the tests of one suite, variants included.
const maxTests = 10_000

// Suite is a suite file as it was read, not checked against its schema.
type Suite struct {
	File   string // as it was named
	Digest string // sha256:… of its bytes
	root   document.Node
}

// Read reads a suite. The error has code INVALID when the file cannot be read or
// parsed, with its place.
func Read(path string) (*Suite, error) {
	doc, digest, err := read(path)
	if err != nil {
		return nil, err
	}
	return &Suite{File: path, Digest: digest, root: doc.Root()}, nil
}

// Of is the suite of a document that was parsed already. It has no digest.
func Of(file string, root document.Node) *Suite { return &Suite{File: file, root: root} }

func read(path string) (*document.Document, string, error) {
	data, err := document.Read(path)
	if err != nil {
		return nil, "", exitcode.With(exitcode.Invalid, err)
	}
	doc, problems := document.Parse(path, data)
	for _, p := range problems {
		if !p.Warning {
			return nil, "", problemError(path, p)
		}
	}
	sum := sha256.Sum256(data)
	return doc, "sha256:" + hex.EncodeToString(sum[:]), nil
}

func problemError(path string, p document.Problem) error {
	return exitcode.Errorf(exitcode.Invalid, "%s:%d:%d: %s", path, p.Line, p.Column, p.Message)
}

// Errors is what is wrong among problems, as one error of code INVALID with a line
// each; nil when they are warnings only.
func Errors(path string, problems []document.Problem) error {
	var errs []error
	for _, p := range problems {
		if !p.Warning {
			errs = append(errs, problemError(path, p))
		}
	}
	return exitcode.With(exitcode.Invalid, errors.Join(errs...))
}

// Name is what the suite is called: its own word, or else the name of its file.
func (s *Suite) Name() string {
	if name := s.root.Get("name"); present(name) {
		return name.Text()
	}
	base := filepath.Base(s.File)
	return strings.TrimSuffix(base, filepath.Ext(base))
}

// Deployment is what the suite says about the deployment of its manifest.
func (s *Suite) Deployment() map[string]any {
	m, _ := s.root.Get("deployment_config").Value().(map[string]any)
	return m
}

// Root finds the directory whose cards a suite is about: the nearest one above the
// file, or the one it lies in, that declares cards. It is empty when there is none.
func Root(file string) string {
	dir := filepath.Dir(file)
	abs, err := filepath.Abs(dir)
	if err != nil {
		return ""
	}
	for {
		if declaresCards(abs) {
			return dir
		}
		up := filepath.Dir(abs)
		if up == abs {
			return ""
		}
		abs, dir = up, filepath.Join(dir, "..")
		if filepath.IsAbs(file) {
			dir = abs
		}
	}
}

func declaresCards(dir string) bool {
	if info, err := os.Stat(filepath.Join(dir, "models")); err == nil && info.IsDir() {
		return true
	}
	info, err := os.Stat(filepath.Join(dir, "models.json"))
	return err == nil && info.Mode().IsRegular()
}

// present says whether a value is there and says something.
func present(n document.Node) bool {
	return n.Given() && (n.Kind() != document.KindString || n.Text() != "")
}

// problem is a problem with a value.
func problem(n document.Node, code, message, fix string) document.Problem {
	return document.Problem{Code: code, Pointer: n.Pointer(), Position: n.Position(), Message: message, Fix: fix}
}

func warning(n document.Node, code, message, fix string) document.Problem {
	p := problem(n, code, message, fix)
	p.Warning = true
	return p
}
