package slurm

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"assay/deploy"
	"assay/pkg/plan"
)

// jwt makes a token that says something.
func jwt(t *testing.T, claims map[string]any) string {
	t.Helper()
	data, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	return "eyJhbGciOiJIUzI1NiJ9." + base64.RawURLEncoding.EncodeToString(data) + ".c2ln"
}

func TestTokenFile(t *testing.T) {
	dir := t.TempDir()
	at := func(name string, mode os.FileMode, text string) string {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Chmod(path, mode)); err != nil {
			t.Fatal(err)
		}
		return path
	}
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ path, want, fails string }{
		{at("good", 0o600, secret+"\n"), secret, ""},
		{at("read only", 0o400, secret), secret, ""},
		{at("as printed", 0o600, "SLURM_JWT="+secret+"\n"), secret, ""},
		{at("group", 0o640, secret), "", "has mode 0640"},
		{at("world", 0o604, secret), "", "chmod 600"},
		{at("writable", 0o620, secret), "", "has mode 0620"},
		{at("empty", 0o600, " \n"), "", "is empty"},
		{at("two", 0o600, secret+"\nsecond"), "", "holds no token"},
		{at("header", 0o600, secret+"\r\nX-Other: y"), "", "holds no token"},
		{at("long", 0o600, strings.Repeat("x", maxToken+1)), "", "holds no token"},
		{fifo, "", "is a FIFO"},
		{dir, "", "is a directory"},
		{filepath.Join(dir, "none"), "", "no such file"},
	} {
		// The variable is not used instead of a file that is not as it must be.
		got, err := identity{tokenFile: tt.path, env: []string{"SLURM_JWT=other"}}.token()
		switch {
		case got.value != tt.want:
			t.Errorf("%s: the token is %q", tt.path, got.value)
		case (err == nil) != (tt.fails == ""), err != nil && !strings.Contains(err.Error(), tt.fails):
			t.Errorf("%s: %v, want %q", tt.path, err, tt.fails)
		case err != nil && strings.Contains(err.Error(), secret):
			t.Errorf("%s: the token is in %v", tt.path, err)
		}
	}
}

// A token is read at each use: it is renewed while jobs run.
func TestTokenIsRenewed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	f := newFake(t, map[string]canned{"GET /slurm/v0.0.38/jobs": {0, "jobs.json"}})
	r := newRest(f.URL, path, nil, nil)
	for i := range 2 {
		if err := os.WriteFile(path, fmt.Appendf(nil, "token%d", i), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := r.queue(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
	asked := f.of("GET /slurm/v0.0.38/jobs")
	for i, q := range asked {
		if got := q.header.Get("X-SLURM-USER-TOKEN"); got != fmt.Sprintf("token%d", i) {
			t.Errorf("question %d carried %q", i, got)
		}
	}
	if len(asked) != 2 {
		t.Errorf("asked %d times", len(asked))
	}
}

func TestTokenClaims(t *testing.T) {
	soon := time.Now().Add(10 * time.Second)
	for _, tt := range []struct {
		text, user    string
		expired, soon bool
	}{
		{jwt(t, map[string]any{"sun": "alice", "exp": 4102444800}), "alice", false, false},
		{jwt(t, map[string]any{"sun": "alice", "exp": soon.Unix()}), "alice", false, true},
		{jwt(t, map[string]any{"sun": "alice", "exp": 1000}), "alice", true, true},
		{jwt(t, map[string]any{"sun": "alice"}), "alice", false, false},
		{jwt(t, map[string]any{"sun": 5, "exp": "never"}), "", false, false},
		{"a.%%.c", "", false, false},
		{"opaque", "", false, false},
		{"a.b.c", "", false, false},
	} {
		got, err := parseToken(tt.text, "x")
		if strings.Contains(tt.text, "%") {
			if err == nil {
				t.Errorf("%s is no token", tt.text)
			}
			continue
		}
		if err != nil || got.user != tt.user || (got.expired() != "") != tt.expired || got.endsSoon() != tt.soon {
			t.Errorf("%s: %+v, %v", tt.text, got, err)
		}
	}
}

// Jobs of another user could not write into the run directory.
func TestTokenOfAnotherUser(t *testing.T) {
	self := identity{}.self()
	if self == "" {
		if os.Getenv("CI") == "true" {
			t.Fatal("this user has no name")
		}
		t.Skip("nobody knows the name of this user")
	}
	f := newFake(t, map[string]canned{"POST /slurm/v0.0.38/job/submit": {0, "submit.json"}})
	for user, want := range map[string]error{self: nil, "somebody.else": deploy.ErrRefused} {
		r := newRest(f.URL, "", []string{"SLURM_JWT=" + jwt(t, map[string]any{"sun": user})}, nil)
		if _, err := r.submit(t.Context(), attempt(t)); !errors.Is(err, want) {
			t.Errorf("token of %s: %v", user, err)
		}
	}
	if n := len(f.of("POST /slurm/v0.0.38/job/submit")); n != 1 {
		t.Errorf("submitted %d times", n)
	}
	if got := f.asked[0].header.Get("X-SLURM-USER-NAME"); got != self {
		t.Errorf("asked as %q, not as %q", got, self)
	}
}

func TestSocketOfAnotherUser(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := (identity{}).check(token{}, path); err != nil {
		t.Errorf("a socket of one's own: %v", err)
	}
	if os.Geteuid() != 0 {
		return
	}
	if err := os.Chown(path, 12345, 12345); err != nil {
		t.Fatal(err)
	}
	if err := (identity{}).check(token{}, path); err == nil || !strings.Contains(err.Error(), "runs as user 12345") {
		t.Errorf("a socket of another's: %v", err)
	}
	if err := (identity{}).check(token{value: "x"}, path); err != nil {
		t.Errorf("a token says whose jobs they are: %v", err)
	}
}

func TestEndpoint(t *testing.T) {
	for raw, want := range map[string]struct {
		base, socket, fails string
		exposed             bool
	}{
		"http://127.0.0.1:6820":       {base: "http://127.0.0.1:6820"},
		"http://127.8.8.8:6820/":      {base: "http://127.8.8.8:6820"},
		"http://[::1]:6820":           {base: "http://[::1]:6820"},
		"http://localhost:6820":       {base: "http://localhost:6820"},
		"http://login1:6820":          {base: "http://login1:6820", exposed: true},
		"http://10.0.0.1:6820":        {base: "http://10.0.0.1:6820", exposed: true},
		"https://rest.example/slurm/": {base: "https://rest.example/slurm"},
		"unix:///run/slurm rest.sock": {base: "http://localhost", socket: "/run/slurm rest.sock"},
		"unix://run/rest.sock":        {fails: "absolute path"},
		"unix:run/rest.sock":          {fails: "absolute path"},
		"127.0.0.1:6820":              {fails: "cannot be read"},
		"http://":                     {fails: "neither"},
		"":                            {fails: "neither"},
		"http://u:hunter2@h:1":        {fails: "a user or a password"},
		"http://h:1/?token=hunter2":   {fails: "has a ?"},
		"http://h:port":               {fails: "cannot be read"},
	} {
		w := newWeb(raw, identity{})
		if w.base != want.base || w.socket != want.socket || (w.broken != nil) != (want.fails != "") || w.broken == nil && w.exposed() != want.exposed {
			t.Errorf("%s: base %q, socket %q, exposed %t, %v", raw, w.base, w.socket, w.exposed(), w.broken)
		}
		if w.broken != nil && !strings.Contains(w.broken.Error(), want.fails) {
			t.Errorf("%s: %v", raw, w.broken)
		}
		if strings.Contains(raw, "@") && strings.Contains(fmt.Sprint(w.broken, w.name), "hunter2") {
			t.Errorf("the password is in %v or %s", w.broken, w.name)
		}
	}
}

// What is kept on disk or shown has the name of the file, never the token.
func TestTokenIsKeptNowhere(t *testing.T) {
	f := newFake(t, map[string]canned{"POST /slurm/v0.0.38/job/submit": {0, "submit.json"}})
	s := New(Options{Env: []string{"SLURM_JWT=" + secret}})
	a := attempt(t)
	a.Job.Slurm.RestURL = f.URL
	h, err := s.Submit(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(h.Data), secret) || !strings.Contains(string(h.Data), f.URL) {
		t.Errorf("the handle is %s", h.Data)
	}
	for _, q := range f.asked {
		if strings.Contains(string(q.body), secret) {
			t.Errorf("%s carries the token in its body", q.what)
		}
	}
	fail := &restFailure{server: "s", status: 500, secret: secret, errors: []problem{{Error: "bad token " + secret}}}
	if strings.Contains(fail.Error(), secret) {
		t.Error(fail)
	}
	if m := more(plan.Job{Slurm: &plan.Slurm{API: "rest", RestURL: "u", RestTokenFile: "/f"}}); m["rest_token_file"] != "/f" {
		t.Errorf("the handle has %v", m)
	}
}
