package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// layers lists every package of the module from the inside out. A package may
// import packages of the lines above its own, and nothing else of the module.
var layers = []struct {
	packages string
	reason   string
}{
	{"pkg/exitcode pkg/phrase pkg/spelling pkg/hostlist pkg/signame pkg/procfs pkg/regular pkg/environ", "leaves: the one table of exit codes, words for people, words that were meant, host lists, names of signals, regular files, environments"},
	{"schemas templates pkg/durable pkg/logtail", "leaves: embedded files, files as such"},
	{"pkg/metric pkg/launcher pkg/pairwise pkg/isolate", "core: what a measurement is, what starts ranks, what pairs and groups say of their nodes"},
	{"pkg/threshold", "core: what a measurement is compared with"},
	{"pkg/evidence pkg/card", "core: what is known, what is declared"},
	{"pkg/verdict pkg/manifest pkg/pod", "core: the judgement, the manifest, what a rank in a pod and whoever watches it agree on"},
	{"pkg/plan", "core: from manifest to jobs"},
	{"deploy", "the target seam"},
	{"pkg/rundir pkg/envfile pkg/document pkg/probe pkg/report pkg/container", "edges that know files, processes, formats"},
	{"pkg/rank pkg/collect pkg/discover pkg/perfcsv pkg/batch", "what works on them"},
	{"pkg/podrank", "a rank in a pod"},
	{"pkg/suite", "what a suite runs"},
	{"deploy/local deploy/slurm deploy/k8s deploy/deploytest deploy/slurm/slurmtest deploy/k8s/k8stest", "the targets, the suite that each passes, and the cluster that tests use"},
	{"pkg/lint", "checks every kind of file"},
	{"pkg/build pkg/run", "the flows"},
	{"pkg/progress pkg/imagebuild", "shows a flow; builds images for one"},
	{"pkg/cli", "the command line"},
	{"cmd/assay", "main"},
}

// pure packages do no I/O and read no clock.
var pure = strings.Fields("pkg/verdict pkg/evidence pkg/plan pkg/metric pkg/threshold pkg/manifest pkg/card pkg/launcher pkg/spelling pkg/phrase pkg/hostlist pkg/pod pkg/pairwise pkg/isolate")

// impure imports are those that reach outside the process.
var impure = []string{"os", "os/", "net", "net/", "syscall", "golang.org/x/sys/", "io/ioutil", "log", "math/rand", "math/rand/v2", "crypto/rand", "embed"}

// impureCalls reach outside the process from packages that are otherwise fine.
var impureCalls = []string{
	"time.Now", "time.Since", "time.Until", "time.Sleep", "time.After", "time.Tick", "time.NewTimer", "time.NewTicker", "time.AfterFunc",
	"filepath.Abs", "filepath.Glob", "filepath.Walk", "filepath.WalkDir", "filepath.EvalSymlinks",
}

// owners are the libraries that one package alone may know.
var owners = map[string]string{
	"github.com/santhosh-tekuri/jsonschema/v6": "pkg/document",
	"go.yaml.in/yaml/v3":                       "pkg/document",
	"github.com/spf13/cobra":                   "pkg/cli",
	"github.com/spf13/cobra/doc":               "pkg/cli",
	"github.com/charmbracelet/log":             "pkg/cli",
	"github.com/joho/godotenv":                 "pkg/envfile",
	"github.com/gocarina/gocsv":                "pkg/perfcsv",
}

// pkg is what go list says of a package.
type pkg struct {
	ImportPath string
	Dir        string
	GoFiles    []string
	Imports    []string
}

func list(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Dir,GoFiles,Imports", "assay/...")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, &stderr)
	}
	var pkgs []pkg
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return pkgs
		} else if err != nil {
			t.Fatal(err)
		}
		p.ImportPath = strings.TrimPrefix(p.ImportPath, "assay/")
		if len(p.GoFiles) > 0 {
			pkgs = append(pkgs, p)
		}
	}
}

func layerOf(path string) int {
	return slices.IndexFunc(layers, func(l struct{ packages, reason string }) bool {
		return slices.Contains(strings.Fields(l.packages), path)
	})
}

func TestDependenciesPointInwards(t *testing.T) {
	for _, p := range list(t) {
		own := layerOf(p.ImportPath)
		if own < 0 {
			t.Errorf("%s is in no layer: add it to the table in this file, where it belongs", p.ImportPath)
			continue
		}
		for _, imp := range p.Imports {
			target, ours := strings.CutPrefix(imp, "assay/")
			if !ours {
				continue
			}
			if at := layerOf(target); at >= own {
				t.Errorf("%s imports %s: %s (%s) may only import what lies further inside; %s is %s",
					p.ImportPath, target, p.ImportPath, layers[own].reason, target, layers[max(at, 0)].reason)
			}
		}
	}
}

func TestTargetsDoNotKnowEachOther(t *testing.T) {
	for _, p := range list(t) {
		if !strings.HasPrefix(p.ImportPath, "deploy/") {
			continue
		}
		for _, imp := range p.Imports {
			if strings.HasPrefix(imp, "assay/deploy/") {
				t.Errorf("%s imports %s: a target knows no other target", p.ImportPath, imp)
			}
		}
	}
}

func TestLibrariesHaveOneOwner(t *testing.T) {
	for _, p := range list(t) {
		for _, imp := range p.Imports {
			if owner, kept := owners[imp]; kept && !slices.Contains(strings.Fields(owner), p.ImportPath) {
				t.Errorf("%s imports %s: only %s knows it", p.ImportPath, imp, owner)
			}
		}
	}
}

func TestCoreIsPure(t *testing.T) {
	for _, p := range list(t) {
		if !slices.Contains(pure, p.ImportPath) {
			continue
		}
		for _, imp := range p.Imports {
			for _, bad := range impure {
				if imp == bad || (strings.HasSuffix(bad, "/") && strings.HasPrefix(imp, bad)) {
					t.Errorf("%s imports %s: the core does no I/O and reads no clock", p.ImportPath, imp)
				}
			}
		}
		eachCall(t, p, func(name string, at token.Position) {
			if slices.Contains(impureCalls, name) {
				t.Errorf("%s: %s: the core does no I/O and reads no clock", at, name)
			}
		})
	}
}

func TestOnlyMainExits(t *testing.T) {
	for _, p := range list(t) {
		if p.ImportPath == "cmd/assay" {
			continue
		}
		eachCall(t, p, func(name string, at token.Position) {
			if name == "os.Exit" || strings.HasPrefix(name, "log.Fatal") {
				t.Errorf("%s: %s: only main ends the process", at, name)
			}
		})
	}
}

func TestEveryPackageIsDocumentedAndHasNoInit(t *testing.T) {
	for _, p := range list(t) {
		documented := false
		for _, f := range files(t, p) {
			documented = documented || f.file.Doc != nil
			for _, d := range f.file.Decls {
				if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
					t.Errorf("%s: an init function: hand things over instead", f.fset.Position(fn.Pos()))
				}
			}
		}
		if !documented {
			t.Errorf("%s has no package comment", p.ImportPath)
		}
	}
}

type parsed struct {
	fset *token.FileSet
	file *ast.File
}

func files(t *testing.T, p pkg) []parsed {
	t.Helper()
	var out []parsed
	for _, name := range p.GoFiles {
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, parsed{fset, f})
	}
	return out
}

// eachCall calls f for every mention of a function of another package, such as
// "time.Now".
func eachCall(t *testing.T, p pkg, f func(name string, at token.Position)) {
	t.Helper()
	for _, src := range files(t, p) {
		ast.Inspect(src.file, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if x, ok := sel.X.(*ast.Ident); ok {
				f(fmt.Sprintf("%s.%s", x.Name, sel.Sel.Name), src.fset.Position(sel.Pos()))
			}
			return true
		})
	}
}
