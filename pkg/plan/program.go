package plan

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"assay/pkg/card"
	"assay/pkg/manifest"
)

// defaultEnvFileTimeout is how long sourcing an env_file may take, in seconds.
const defaultEnvFileTimeout = 30

// program returns what a rank runs: the command as it stands, or else the script
// with its arguments.
func (p *planner) program(e manifest.Entry) Program {
	c := e.Card
	switch {
	case len(c.Command) > 0:
		if c.Command[0] == "" {
			p.refuse(e.Pointer("command", "0"), "the program has no name")
		}
		p.checkWords(c.Command, e.Pointer("command"))
		if c.Args.IsList && len(c.Args.List) > 0 || c.Args.Text != "" {
			p.warn(e.Pointer("args"), "ignored: command is run as it stands")
		}
		if len(p.encapsulate) > 0 {
			p.warn(e.Pointer("command"), "encapsulate_script of the context is not put before a command")
		}
		return Program{Command: c.Command}
	case c.Scripts != "":
		if strings.ContainsRune(c.Scripts, 0) {
			p.refuse(e.Pointer("scripts"), "a path cannot hold a NUL character")
		}
		return Program{Script: c.Scripts, Args: p.args(c.Args, e.Pointer("args")), Encapsulate: p.encapsulate}
	}
	p.refuse(e.Pointer(), "the model has neither scripts nor command, so there is nothing to run")
	return Program{}
}

// args returns the arguments of a script.
func (p *planner) args(a card.Args, at string) []string {
	if a.IsList {
		p.checkWords(a.List, at)
		return a.List
	}
	return p.split(a.Text, at)
}

// split splits a string of the manifest into words.
func (p *planner) split(s, at string) []string {
	words, err := SplitWords(s)
	if err != nil {
		p.refuse(at, "%w", err)
	}
	p.checkWords(words, at)
	return words
}

// checkWords refuses what no program can be given as an argument.
func (p *planner) checkWords(words []string, at string) {
	for _, w := range words {
		if strings.ContainsRune(w, 0) {
			p.refuse(at, "an argument cannot hold a NUL character")
			return
		}
	}
}

// scripts returns the pre- or post-scripts of the context.
func (p *planner) scripts(list []manifest.Script, at string) []Script {
	var scripts []Script
	for i, s := range list {
		here := at + "/" + strconv.Itoa(i)
		path := strings.TrimSpace(s.Path)
		if path == "" || strings.ContainsRune(path, 0) {
			p.refuse(here, "a script needs a path")
			continue
		}
		scripts = append(scripts, Script{Path: path, Args: p.args(s.Args, here+"/args")})
	}
	return scripts
}

// jobEnv merges the environment of an entry. From the weakest to the strongest:
// context.docker_env_vars, deployment_config.env_vars, the model's env_vars.
func (p *planner) jobEnv(e manifest.Entry) map[string]string {
	env := maps.Clone(p.env)
	p.addEnv(env, e.EnvVars, e.Pointer("env_vars"))
	return env
}

// addEnv puts variables over those that are there.
func (p *planner) addEnv(env map[string]string, vars map[string]card.Scalar, at string) {
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		value := string(vars[name])
		if err := checkVariable(name, value); err != nil {
			p.refuse(at, "%w", err)
			continue
		}
		env[name] = value
	}
}

// checkVariable refuses what an environment cannot hold.
func checkVariable(name, value string) error {
	if name == "" || strings.ContainsAny(name, "=\x00") {
		return fmt.Errorf("%q is no name of an environment variable", name)
	}
	if strings.ContainsRune(value, 0) {
		return fmt.Errorf("the value of %s holds a NUL character, which no environment can", name)
	}
	return nil
}

// readEnvFile resolves the env_file; nothing is read here.
func (p *planner) readEnvFile() *EnvFile {
	dep := p.m.Deployment
	format := dep.EnvFileFormat
	if format == "" {
		format = "shell"
	}
	if !slices.Contains([]string{"shell", "dotenv"}, format) {
		p.refuse(dep.Pointer("env_file_format"), "unknown format %q (known: shell, dotenv)", format)
	}
	if dep.EnvFile == "" {
		return nil
	}
	if strings.ContainsRune(dep.EnvFile, 0) {
		p.refuse(dep.Pointer("env_file"), "a path cannot hold a NUL character")
		return nil
	}
	path := dep.EnvFile
	if !filepath.IsAbs(path) {
		path = filepath.Join(p.opt.ManifestDir, path)
	}
	return &EnvFile{Path: path, Format: format, TimeoutSeconds: p.envFileTimeout()}
}

// envFileTimeout returns how long sourcing the env_file may take, in seconds.
func (p *planner) envFileTimeout() int {
	n := p.m.Deployment.EnvFileTimeout
	switch {
	case n.Value < 0 || n.Value > maxTimeout:
		p.refuse(p.m.Deployment.Pointer("env_file_timeout"), "%d is no time limit in seconds: 0 (the default of %d) to %d", n.Value, defaultEnvFileTimeout, maxTimeout)
	case n.Value > 0:
		return n.Value
	}
	return defaultEnvFileTimeout
}
