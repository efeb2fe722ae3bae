package imagebuild

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"assay/pkg/container"
	"assay/pkg/environ"
	"assay/pkg/exitcode"
)

// Login is who one is to a registry.
type Login struct {
	Username string
	Password string
}

// session is the engine's command, with a configuration of its own once it has
// logged in: the user's is not touched, and nothing of it is left at the end.
type session struct {
	cli      container.CLI
	login    *Login
	registry string
	dir      string
}

func (s *session) current() container.CLI { return s.cli }

func (s *session) close() error {
	if s.dir == "" {
		return nil
	}
	dir := s.dir
	s.dir = ""
	return os.RemoveAll(dir)
}

// Login logs in to the registry when there is somebody to log in. It has to be called
// before the first build. The error has the code BUILD_FAILURE when the registry
// refuses.
func (b *Builder) Login(ctx context.Context) error {
	s := &b.session
	if s.login == nil {
		return nil
	}
	dir, err := os.MkdirTemp("", "assay-login-") // for its owner only
	if err != nil {
		return exitcode.Errorf(exitcode.Error, "there is no place for the login to the registry: %w", err)
	}
	s.dir = dir
	if err := copyConfig(configDir(s.cli.Env), dir, host(s.registry)); err != nil {
		return exitcode.Errorf(exitcode.Error, "the configuration of %s cannot be copied for the login: %w", s.cli.Name, err)
	}
	if err := copyAuth(s.cli.Env, filepath.Join(dir, "auth.json")); err != nil {
		return exitcode.Errorf(exitcode.Error, "the logins of podman cannot be copied: %w", err)
	}
	s.cli.Env = append(s.cli.Env[:len(s.cli.Env):len(s.cli.Env)], "DOCKER_CONFIG="+dir, "REGISTRY_AUTH_FILE="+filepath.Join(dir, "auth.json"))
	var said strings.Builder
	out := newMasker(&said, []string{s.login.Password})
	exit, err := s.cli.Run(ctx, strings.NewReader(s.login.Password), out, out, "login", "--username", s.login.Username, "--password-stdin", host(s.registry))
	if err = errors.Join(err, out.flush()); err != nil {
		return err
	}
	if exit != 0 {
		return exitcode.Errorf(exitcode.BuildFailure, "%s login to %s as %s failed: %s", s.cli.Name, host(s.registry), s.login.Username,
			container.LastLines(said.String(), saidLines))
	}
	return nil
}

// configDir is where the docker command keeps its configuration; empty when it has
// none.
func configDir(env []string) string {
	if dir := environ.Get(env, "DOCKER_CONFIG"); dir != "" {
		return dir
	}
	if home := environ.Get(env, "HOME"); home != "" {
		return filepath.Join(home, ".docker")
	}
	return ""
}

// copyConfig gives a directory the configuration of the docker command, with links to
// all of it but config.json. That is copied without the helpers that would put the
// password into the user's own store.
func copyConfig(from, to, host string) error {
	entries, err := os.ReadDir(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	from, err = filepath.Abs(from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() == "config.json" {
			if err := copyConfigFile(filepath.Join(from, e.Name()), filepath.Join(to, e.Name()), host); err != nil {
				return err
			}
			continue
		}
		if err := os.Symlink(filepath.Join(from, e.Name()), filepath.Join(to, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

func copyConfigFile(from, to, host string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	config := map[string]json.RawMessage{}
	if err := json.Unmarshal(data, &config); err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	delete(config, "credsStore")
	if raw, ok := config["credHelpers"]; ok {
		helpers := map[string]string{}
		if err := json.Unmarshal(raw, &helpers); err != nil {
			return fmt.Errorf("%s: credHelpers: %w", from, err)
		}
		delete(helpers, host)
		if config["credHelpers"], err = json.Marshal(helpers); err != nil {
			return err
		}
	}
	if data, err = json.Marshal(config); err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o600)
}

// copyAuth copies the file in which podman keeps logins, when there is one.
func copyAuth(env []string, to string) error {
	from := environ.Get(env, "REGISTRY_AUTH_FILE")
	if runtime := environ.Get(env, "XDG_RUNTIME_DIR"); from == "" && runtime != "" {
		from = filepath.Join(runtime, "containers", "auth.json")
	}
	if from == "" {
		return nil
	}
	data, err := os.ReadFile(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o600) //nolint:gosec // the directory is ours
}
