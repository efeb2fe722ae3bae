package rank

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"assay/pkg/environ"
	"assay/pkg/regular"
	"assay/pkg/rundir"
)

// command is something to execute: the file, its argv and its environment.
type command struct {
	path string
	argv []string
}

// prepared is all that is known before the first process starts.
type prepared struct {
	env      []string
	modelDir string
	source   string // the directory whose entries are linked into the working directory
	work     string
	results  *resultsWatch
}

// notRunnable says why a program cannot be run.
type notRunnable struct {
	exit int
	text string
}

func (e *notRunnable) Error() string { return e.text }

func notRunnableExit(err error) int {
	var n *notRunnable
	if errors.As(err, &n) {
		return n.exit
	}
	return ExitNotExecutable
}

// prepare builds the working directory and looks at what lies there before
// anything runs.
func (w *wrapper) prepare(env []string) *prepared {
	p := &prepared{env: env, modelDir: environ.Get(env, "MODEL_DIR"), work: filepath.Join(w.dir, rundir.WorkDir)}
	switch {
	case p.modelDir == "":
		p.modelDir = w.attempt.Job.ModelDir
	case !filepath.IsAbs(p.modelDir):
		p.modelDir = filepath.Join(w.attempt.Job.ModelDir, p.modelDir)
	}
	p.source = p.modelDir
	if program := w.attempt.Job.Program; len(program.Command) == 0 {
		// A script that is not there yet may come from a pre-script.
		if script, err := findScript(p.modelDir, program.Script); err == nil {
			p.source = filepath.Dir(script)
		}
	}
	w.stage(p.source)
	p.results = w.watchResults(p)
	return p
}

// resolve finds the program. It comes after the pre-scripts, which may build it.
// A script runs by its place in the working directory, so that
// `cd "$(dirname "$0")"` stays private.
func (w *wrapper) resolve(p *prepared) (command, error) {
	program := w.attempt.Job.Program
	if len(program.Command) > 0 {
		return p.find(program.Command)
	}
	script, err := findScript(p.modelDir, program.Script)
	if err != nil {
		return command{}, err
	}
	w.link(script)
	argv, err := p.scriptArgv(filepath.Join(p.work, filepath.Base(script)), program.Args)
	if err != nil {
		return command{}, err
	}
	return p.find(append(append([]string{}, program.Encapsulate...), argv...))
}

// findScript resolves a script; a directory means run.sh inside it.
func findScript(dir, script string) (string, error) {
	path := script
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	info, err := os.Stat(path)
	if err == nil && info.IsDir() {
		path = filepath.Join(path, "run.sh")
		info, err = os.Stat(path)
	}
	switch {
	case err != nil && filepath.IsAbs(script):
		return "", &notRunnable{ExitNotFound, fmt.Sprintf("script not found: %v", err)}
	case err != nil:
		return "", &notRunnable{ExitNotFound, fmt.Sprintf("script not found: %v; %q is relative to MODEL_DIR when that is set, else to the directory of the manifest", err, script)}
	case !info.Mode().IsRegular():
		return "", &notRunnable{ExitNotExecutable, fmt.Sprintf("script %s is not a regular file", path)}
	}
	return path, nil
}

// scriptArgv gives the words that run a script: itself when it may be executed,
// else the interpreter of its `#!` line, else python3 for a .py and bash for
// anything else.
func (p *prepared) scriptArgv(script string, args []string) ([]string, error) {
	f, err := regular.Open(script)
	if err != nil {
		return nil, &notRunnable{ExitNotExecutable, fmt.Sprintf("script cannot be read: %v", err)}
	}
	defer f.Close()
	head := make([]byte, 256)
	n, err := io.ReadFull(f, head)
	if err != nil && n == 0 && !errors.Is(err, io.EOF) {
		return nil, &notRunnable{ExitNotExecutable, fmt.Sprintf("script cannot be read: %v", err)}
	}
	head = head[:n]
	interpreter := shebang(head)
	info, err := f.Stat()
	if err == nil && info.Mode()&0o111 != 0 && unix.Access(script, unix.X_OK) == nil &&
		(interpreter != nil || bytes.HasPrefix(head, []byte("\x7fELF"))) {
		return append([]string{script}, args...), nil
	}
	if interpreter == nil {
		interpreter = []string{"bash"}
		if filepath.Ext(script) == ".py" {
			interpreter = []string{"python3"}
		}
	}
	return append(append(interpreter, script), args...), nil
}

// shebang reads `#!interpreter [one argument]`; nil when there is none.
func shebang(head []byte) []string {
	line, ok := bytes.CutPrefix(head, []byte("#!"))
	if !ok {
		return nil
	}
	line, _, _ = bytes.Cut(line, []byte("\n"))
	interpreter, argument, _ := strings.Cut(strings.TrimSpace(string(line)), " ")
	if interpreter == "" {
		return nil
	}
	if argument = strings.TrimSpace(argument); argument != "" {
		return []string{interpreter, argument}
	}
	return []string{interpreter}
}

// find locates the program of argv: by PATH of the workload's environment when
// its name has no slash, else relative to the working directory and then to the
// source directory.
func (p *prepared) find(argv []string) (command, error) {
	name := argv[0]
	var candidates []string
	switch {
	case name == "":
		return command{}, &notRunnable{ExitNotFound, "the command is an empty word"}
	case filepath.IsAbs(name):
		candidates = []string{name}
	case strings.Contains(name, "/"):
		candidates = []string{filepath.Join(p.work, name), filepath.Join(p.source, name)}
	default:
		path := environ.Get(p.env, "PATH")
		if path == "" {
			path = "/usr/local/bin:/usr/bin:/bin"
		}
		for _, dir := range filepath.SplitList(path) {
			if !filepath.IsAbs(dir) {
				dir = filepath.Join(p.work, dir)
			}
			candidates = append(candidates, filepath.Join(dir, name))
		}
	}
	return pick(argv, candidates)
}

// pick takes the first candidate that can be executed.
func pick(argv, candidates []string) (command, error) {
	forbidden := ""
	for _, c := range candidates {
		info, err := os.Stat(c)
		if err != nil || info.IsDir() {
			continue
		}
		if unix.Access(c, unix.X_OK) == nil {
			return command{path: c, argv: argv}, nil
		}
		forbidden = c
	}
	if forbidden != "" {
		return command{}, &notRunnable{ExitNotExecutable, fmt.Sprintf("%s cannot be executed: it has no execute permission", forbidden)}
	}
	return command{}, &notRunnable{ExitNotFound, fmt.Sprintf("program %q not found; looked at %s", argv[0], fewOf(candidates))}
}

// candidatesShown bounds the files that a message names, of a PATH that may be long.
const candidatesShown = 3

// fewOf names the first few files and how many more there are.
func fewOf(files []string) string {
	if more := len(files) - candidatesShown; more > 1 {
		return fmt.Sprintf("%s and %d more", strings.Join(files[:candidatesShown], ", "), more)
	}
	return strings.Join(files, ", ")
}
