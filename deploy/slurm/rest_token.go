package slurm

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"regexp"
	"strings"
	"syscall"
	"time"

	"assay/pkg/environ"
	"assay/pkg/regular"
)

// identity is who asks, and what proves it. The token is read at each use, so
// that it can be renewed while jobs run.
type identity struct {
	tokenFile string // absolute; "": the variable SLURM_JWT
	env       []string
}

// token is a JWT. The zero value is none.
type token struct {
	value  string
	user   string    // whom it is for, "" when it does not say
	end    time.Time // zero when it does not say
	proven bool      // the controller accepted it
}

// maxToken bounds the file of a token, in bytes.
const maxToken = 64 << 10

// token reads the token. Its errors never quote it.
func (w identity) token() (token, error) {
	if w.tokenFile == "" {
		return parseToken(environ.Get(w.env, "SLURM_JWT"), "the variable SLURM_JWT")
	}
	f, err := regular.Open(w.tokenFile)
	if err != nil {
		return token{}, fmt.Errorf("rest_token_file: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return token{}, fmt.Errorf("rest_token_file: %w", err)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return token{}, fmt.Errorf("rest_token_file %s has mode %04o, others could read the token: chmod 600 %s", w.tokenFile, mode, w.tokenFile)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxToken+1))
	if err != nil {
		return token{}, fmt.Errorf("rest_token_file: %w", err)
	}
	t, err := parseToken(string(data), "rest_token_file "+w.tokenFile)
	if err == nil && t.value == "" {
		return token{}, fmt.Errorf("rest_token_file %s is empty: write a token into it, as scontrol token prints one", w.tokenFile)
	}
	return t, err
}

var tokenShape = regexp.MustCompile(`^[A-Za-z0-9_.=+/~-]*$`)

// parseToken reads a token, as it stands or as `scontrol token` prints it.
func parseToken(text, where string) (token, error) {
	text = strings.TrimPrefix(strings.TrimSpace(text), "SLURM_JWT=")
	if len(text) > maxToken || !tokenShape.MatchString(text) {
		return token{}, fmt.Errorf("%s holds no token: a token is one line of letters, digits, dots, - and _", where)
	}
	t := token{value: text}
	parts := strings.Split(text, ".")
	if len(parts) != 3 {
		return t, nil // a token of another kind: whoever reads it will say
	}
	claims, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[1], "="))
	if err != nil {
		return t, nil //nolint:nilerr // as above
	}
	var c struct {
		User string  `json:"sun"`
		End  float64 `json:"exp"`
	}
	if json.Unmarshal(claims, &c) == nil {
		t.user = c.User
		if c.End > 0 {
			t.end = time.Unix(int64(c.End), 0)
		}
	}
	return t, nil
}

// expired says that the token is past its end, as far as this host's clock can
// tell, or "".
func (t token) expired() string {
	if t.end.IsZero() || time.Now().Before(t.end) {
		return ""
	}
	return "by the clock of this host the token expired at " + t.end.UTC().Format(time.RFC3339)
}

// endsSoon says whether the token may be refused by the time it is used.
func (t token) endsSoon() bool { return !t.end.IsZero() && time.Until(t.end) < time.Minute }

// name is the user that requests are made for.
func (w identity) name(t token) string {
	if t.user != "" {
		return t.user
	}
	return w.self()
}

// self is the name of the user of this process.
func (w identity) self() string {
	for _, v := range []string{"USER", "LOGNAME"} {
		if name := environ.Get(w.env, v); name != "" && w.isSelf(name) {
			return name
		}
	}
	if u, err := user.LookupId(uid()); err == nil {
		return u.Username
	}
	return environ.Get(w.env, "USER")
}

// isSelf reports whether a name is this process's user, as far as can be known.
func (w identity) isSelf(name string) bool {
	u, err := user.Lookup(name)
	return err != nil || u.Uid == uid()
}

// uidOf is a user's number as text; the name where nobody knows it.
func (w identity) uidOf(name string) string {
	if u, err := user.Lookup(name); err == nil {
		return u.Uid
	}
	if name != "" && name == w.self() {
		return uid()
	}
	return name
}

// check refuses what would give jobs to another user: they could not write into
// the run directory, and would not be taken for ours.
func (w identity) check(t token, socket string) error {
	switch {
	case t.value == "" && socket == "":
		return errors.New("there is no token for slurmrestd: set SLURM_JWT (scontrol token prints it), or name a file of mode 0600 in rest_token_file")
	case t.value != "" && t.user != "" && w.uidOf(t.user) != uid():
		return fmt.Errorf("the token is for user %q and this process runs as user %s: the jobs would not be its own", t.user, uid())
	case t.value != "":
		return nil
	}
	info, err := os.Stat(socket)
	if err != nil {
		return nil //nolint:nilerr // the connection will say it better
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && fmt.Sprint(st.Uid) != uid() {
		return fmt.Errorf("the slurmrestd at %s runs as user %d and this process as user %s: without a token the jobs would not be its own", socket, st.Uid, uid())
	}
	return nil
}
