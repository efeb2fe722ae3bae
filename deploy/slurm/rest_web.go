package slurm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"path/filepath"
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
