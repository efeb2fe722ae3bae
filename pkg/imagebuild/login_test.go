package imagebuild

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"assay/pkg/exitcode"
)

func TestCredentialsAreNowhere(t *testing.T) {
	const password, token = "pa55-w0rd $(id)", "t0ken'\"with quotes"
	f := newFake(t)
	write(t, f.dir, map[string]string{".docker/config.json": `{"credsStore": "desktop", "auths": {"other": {}}, "credHelpers": {"r.example": "x", "y.example": "y"}}`, ".docker/contexts/meta": ""})
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	root := models(t, map[string]string{"a": "FROM x", "b": "FROM x\n# fail"})
	f.cli.Env = append(f.cli.Env, "TOKEN="+token)
	logs := filepath.Join(root, "logs")
	b := New(Options{CLI: f.cli, LogDir: logs, Registry: "r.example/team", Login: &Login{Username: "me", Password: password}, EnvArgs: []string{"TOKEN"}})
	if err := b.Login(t.Context()); err != nil {
		t.Fatal(err)
	}
	images, err := all(t.Context(), b, root, nil, "a", "b")
	if err != nil {
		t.Fatal(err)
	}
	if got := f.recorded("login", "stdin"); len(got) != 1 || got[0] != password {
		t.Errorf("the login read %q", got)
	}
	if got := f.recorded("login", "argv"); len(got) != 1 || got[0] != "login\n--username\nme\n--password-stdin\nr.example\n" {
		t.Errorf("the login was called as %q", got)
	}
	if got := f.recorded("login", "mode"); got[0] != "700\n" {
		t.Errorf("the configuration of the login has mode %s", got)
	}
	if got := f.recorded("login", "config"); got[0] != `{"auths":{"other":{}},"credHelpers":{"y.example":"y"}}` {
		t.Errorf("the configuration of the login is %s", got)
	}
	for _, env := range f.recorded("push", "env") {
		if !strings.Contains(env, "DOCKER_CONFIG="+temporary) {
			t.Error("a push did not use the login")
		}
	}
	if !strings.Contains(f.recorded("build", "env")[0], "TOKEN="+token) {
		t.Error("a build did not get its argument")
	}
	for path, text := range everything(t, f.dir, logs) {
		private := strings.HasSuffix(path, ".stdin") || strings.HasSuffix(path, ".env")
		if !private && (strings.Contains(text, password) || strings.Contains(text, token)) {
			t.Errorf("%s shows a secret", path)
		}
		if strings.HasSuffix(path, ".env") && strings.Contains(text, password) {
			t.Errorf("%s has the password", path)
		}
	}
	if text := fmt.Sprint(images); strings.Contains(text, password) || strings.Contains(text, token) || !strings.Contains(text, "it went wrong with ***") {
		t.Errorf("the images: %s", text)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if left := everything(t, temporary); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

func TestARefusedLogin(t *testing.T) {
	const password = "pa55-w0rd"
	f := newFake(t)
	write(t, f.dir, map[string]string{"refuse": ""})
	b := New(Options{CLI: f.cli, Registry: "r.example", Login: &Login{Username: "me", Password: password}})
	err := b.Login(t.Context())
	if exitcode.Of(err) != exitcode.BuildFailure || err.Error() != "docker login to r.example as me failed: denied: *** is wrong" {
		t.Error(err)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}
