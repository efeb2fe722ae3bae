package slurm

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"assay/pkg/phrase"
)

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
