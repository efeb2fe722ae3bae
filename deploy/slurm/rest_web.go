package slurm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"assay/pkg/phrase"
)

// web sends requests to a slurmrestd, as one user.
type web struct {
	name   string // of the server, for people
	base   string // what paths are added to
	socket string // path of the socket, "" for TCP
	broken error  // why there is no such server
	who    identity
	client *http.Client
	limit  time.Duration // of one request

	mu    sync.Mutex
	taken token // what the controller accepted last
}

// newWeb returns a client of the server at http://HOST:PORT, https://HOST:PORT or
// unix:///PATH. A URL that is none is the error of every request.
func newWeb(rawURL string, who identity) *web {
	w := &web{who: who, limit: commandLimit}
	w.base, w.socket, w.broken = endpoint(rawURL)
	w.name = "slurmrestd at " + rawURL
	if w.broken != nil {
		w.name = "slurmrestd"
	}
	dialer := &net.Dialer{Timeout: 10 * time.Second}
	w.client = &http.Client{
		// Every request has a connection of its own: whether anything was sent is
		// then known. A proxy would see the token.
		Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			if w.socket != "" {
				network, address = "unix", w.socket
			}
			return dialer.DialContext(ctx, network, address)
		}},
		// The token would follow to another host.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return w
}

// endpoint reads a rest_url.
func endpoint(rawURL string) (base, socket string, err error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return "", "", errors.New("rest_url cannot be read as a URL: it is http://HOST:PORT or unix:///PATH")
	}
	if u.User != nil {
		return "", "", errors.New("rest_url has a user or a password in it, which would be in the job's handle: give a token in SLURM_JWT or rest_token_file")
	}
	if u.RawQuery != "" || u.Fragment != "" || u.ForceQuery {
		return "", "", fmt.Errorf("rest_url %s has a ? or a #: it is http://HOST:PORT or unix:///PATH", u.Redacted())
	}
	switch {
	case (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "":
		return strings.TrimRight(u.String(), "/"), "", nil
	case u.Scheme == "unix" && u.Host == "" && filepath.IsAbs(u.Path):
		return "http://localhost", u.Path, nil
	}
	return "", "", fmt.Errorf("rest_url %s is neither http://HOST:PORT, https://HOST:PORT nor unix:///PATH with an absolute path", rawURL)
}

// exposed says whether requests, and the token in them, can be read on the way.
func (w *web) exposed() bool {
	u, err := url.Parse(w.base)
	if err != nil || w.socket != "" || u.Scheme == "https" || u.Hostname() == "localhost" {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return ip == nil || !ip.IsLoopback()
}

// ready says why no job can be submitted in this way.
func (w *web) ready() error {
	if w.broken != nil {
		return w.broken
	}
	tok, err := w.who.token()
	if err != nil {
		return err
	}
	return w.who.check(tok, w.socket)
}

func (w *web) accepted(t token) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.taken.proven && w.taken.value == t.value && !t.endsSoon()
}

func (w *web) accept(t token) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.taken = t
	w.taken.proven = true
}

// answering is what an answer is decoded into.
type answering interface {
	// read decodes a document.
	read(io.Reader) error
	// problems are the errors in it.
	problems() []problem
}

// maxWords bounds what is read of an answer that is no document, in bytes.
const maxWords = 4096

// do sends one request. The error is a *restFailure, or says why nothing was sent.
func (w *web) do(ctx context.Context, method, path string, body any, into answering) error {
	if w.broken != nil {
		return w.broken
	}
	tok, err := w.who.token()
	if err != nil {
		return err
	}
	var data []byte
	if body != nil {
		if data, err = json.Marshal(body); err != nil {
			return err
		}
	}
	fail := &restFailure{server: w.name, what: method + " /" + strings.TrimLeft(strings.SplitN(path, "?", 2)[0], "/"), secret: tok.value}
	limited, cancel := context.WithTimeout(ctx, w.limit)
	defer cancel()
	limited = httptrace.WithClientTrace(limited, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { fail.connected = true }})
	req, err := http.NewRequestWithContext(limited, method, w.base+"/"+path, bytes.NewReader(data))
	if err != nil {
		return fmt.Errorf("rest_url: %w", err)
	}
	req.Header.Set("Accept", "application/json")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if tok.value != "" {
		req.Header.Set("X-SLURM-USER-NAME", w.who.name(tok))
		req.Header.Set("X-SLURM-USER-TOKEN", tok.value)
	}
	resp, err := w.client.Do(req)
	if err == nil {
		defer resp.Body.Close()
		err = fail.judge(resp, into)
	}
	if err == nil {
		return nil
	}
	if limited.Err() != nil && ctx.Err() == nil {
		err = fmt.Errorf("no answer within %s", phrase.Seconds(w.limit.Seconds()))
	}
	fail.err = err
	return fail
}

// problem is one entry of the list of errors in an answer.
type problem struct {
	Description string `json:"description"`
	Number      number `json:"error_number"`
	Code        number `json:"error_code"` // of a submission in version 22.05
	Error       string `json:"error"`
	Source      string `json:"source"`
}

// The numbers of errors that mean something to us.
const (
	invalidJob     = 2017
	alreadyDone    = 2021
	nothingFound   = 9003
	noController   = 1800
	inStandby      = 1802
	parsingFailed  = 9001
	unspecified    = -1
	socketTimedOut = 5004
	zeroBytes      = 5005
)

func (p problem) number() int64 {
	if p.Number.set {
		return p.Number.n
	}
	return p.Code.n
}

func (p problem) text() string {
	switch {
	case p.Description != "" && p.Error != "" && !strings.Contains(p.Description, p.Error) && p.number() != unspecified:
		return p.Description + ": " + p.Error
	case p.Description != "":
		return p.Description
	}
	return p.Error
}

// restFailure is a request that did not do what it was for.
type restFailure struct {
	server    string
	what      string
	secret    string
	connected bool // something may have been sent
	status    int  // of the answer, 0 when there was none
	errors    []problem
	said      string // an answer that is no document
	err       error
}

// failureOf returns the failure in an error, nil when there is none.
func failureOf(err error) *restFailure {
	var f *restFailure
	if errors.As(err, &f) {
		return f
	}
	return nil
}

// judge reads an answer.
func (f *restFailure) judge(resp *http.Response, into answering) error {
	f.status = resp.StatusCode
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if kind != "application/json" {
		words, err := io.ReadAll(io.LimitReader(resp.Body, maxWords))
		f.said = string(words)
		return errors.Join(errors.New("no answer that can be used"), err)
	}
	if into == nil {
		into = &plainAnswer{}
	}
	if err := into.read(resp.Body); err != nil {
		return fmt.Errorf("the answer cannot be read: %w", err)
	}
	f.errors = into.problems()
	if len(f.errors) > 0 || resp.StatusCode/100 != 2 {
		return errors.New("an error")
	}
	return nil
}

func (f *restFailure) has(number int64) bool {
	return slices.ContainsFunc(f.errors, func(p problem) bool { return p.number() == number })
}

// refusesUser says that the server did not let this user in.
func (f *restFailure) refusesUser() bool {
	return f.status == http.StatusUnauthorized || f.status == http.StatusForbidden
}

// unsent says that the controller was never given what was sent.
func (f *restFailure) unsent() bool {
	switch f.status {
	case 0:
		return !f.connected
	case http.StatusNotFound, http.StatusServiceUnavailable, http.StatusTooManyRequests:
		return len(f.errors) == 0
	}
	return f.has(noController) || f.has(inStandby) || f.says("Unable to contact slurm controller", "Connection refused", "in standby mode")
}

// lost says that the controller may have done what was asked.
func (f *restFailure) lost() bool {
	switch {
	case f.status == 0:
		return f.connected
	case f.has(socketTimedOut), f.has(zeroBytes):
		return true
	case len(f.errors) > 0:
		return f.says("timed out", "Zero Bytes were transmitted", "Unexpected message received", "Transport endpoint", "Connection reset", "Broken pipe")
	}
	return f.status/100 == 2 || f.status/100 == 5 && f.status != http.StatusServiceUnavailable
}

func (f *restFailure) says(words ...string) bool {
	return slices.ContainsFunc(f.errors, func(p problem) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(p.Description+" "+p.Error, w) })
	})
}

func (f *restFailure) Unwrap() error { return f.err }

// Error is the server's own words, without the token.
func (f *restFailure) Error() string {
	text := f.words()
	if f.secret != "" {
		text = strings.ReplaceAll(text, f.secret, "[token]")
	}
	return phrase.Line(text)
}

func (f *restFailure) words() string {
	var said []string
	for _, p := range f.errors {
		if text := p.text(); text != "" && p.number() != parsingFailed && !slices.Contains(said, text) {
			said = append(said, text)
		}
	}
	text := strings.Join(said, "; ")
	switch {
	case f.status == 0:
		var where *url.Error
		if errors.As(f.err, &where) {
			return fmt.Sprintf("%s: %v", f.server, where.Err)
		}
		return fmt.Sprintf("%s: %v", f.server, f.err)
	case f.refusesUser():
		return fmt.Sprintf("%s does not let this user in (HTTP %d: %s): give a valid token in rest_token_file or SLURM_JWT, or ask for one with scontrol token", f.server, f.status, oneLine(f.said))
	case text != "" && f.has(unspecified) && f.status == http.StatusInternalServerError:
		return fmt.Sprintf("%s: %s: slurmctld does not answer it, or does not accept the token", f.server, text)
	case text != "":
		return fmt.Sprintf("%s: %s", f.server, text)
	case f.said != "":
		return fmt.Sprintf("%s answered %s with HTTP %d: %s", f.server, f.what, f.status, phrase.Clip(strings.TrimSpace(f.said), 300))
	case len(f.errors) > 0:
		return fmt.Sprintf("%s: it could not read the request %s", f.server, f.what)
	}
	return fmt.Sprintf("%s answered %s with HTTP %d: %v", f.server, f.what, f.status, f.err)
}
