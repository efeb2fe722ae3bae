package plan

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"assay/pkg/card"
	"assay/pkg/manifest"
)

// defaultReadyTimeout is how long ranks wait for the root of their pair or group, in
// seconds.
const defaultReadyTimeout = 120

// DefaultLinger is for how many seconds the server of a pair may go on after its client
// where the card does not say.
const DefaultLinger = 2

// The ways in which the root of a pair or group is seen to be ready for the others.
const (
	ReadyStarted = "started" // its workload runs
	ReadyTCP     = "tcp"     // something on its host listens on a port
	ReadyLine    = "line"    // its output has a line that matches
	ReadyFile    = "file"    // it has made the file $ASSAY_READY_FILE
)

// Ready is what the other ranks of a pair or group wait for at its root, before their
// workloads start, and how long the server of a pair may outlive its client.
type Ready struct {
	Kind           string `json:"kind"`              // one of the Ready words
	Port           int    `json:"port,omitempty"`    // ReadyTCP; 0: MASTER_PORT
	Pattern        string `json:"pattern,omitempty"` // ReadyLine: a regular expression (RE2)
	TimeoutSeconds int    `json:"timeout_seconds"`   // how long they wait
	// LingerSeconds is how long the server of a pair may go on after its client has
	// ended, before it is told to end; 0: DefaultLinger.
	LingerSeconds int `json:"linger_seconds,omitempty"`
}

// ready reads what ranks wait for. Without a word of the card the client of a pair
// waits until its server has started, and the ranks of a group for nothing.
func (p *planner) ready(e manifest.Entry, job Job) *Ready {
	if e.Linger.Set && job.Scope != scopePair {
		p.warn(e.Pointer("linger"), "linger is not heeded: only the server of a pair is ended after its client, and this is of scope %s", job.Scope)
	}
	if e.Ready == "" && job.Scope != scopePair {
		return nil
	}
	if e.Ready != "" && job.WorldSize < 2 {
		p.warn(e.Pointer("ready"), "ready is not heeded: nobody waits in a job of one rank")
		return nil
	}
	r := &Ready{Kind: ReadyStarted, TimeoutSeconds: p.wholeSeconds(e.ReadyTimeout, defaultReadyTimeout, e.Pointer("ready_timeout"))}
	if job.Scope == scopePair {
		r.LingerSeconds = p.wholeSeconds(e.Linger, DefaultLinger, e.Pointer("linger"))
	}
	if e.Ready == "" {
		return r
	}
	parsed, err := ParseReady(e.Ready)
	if err != nil {
		p.refuse(e.Pointer("ready"), "%w", err)
		return r
	}
	r.Kind, r.Port, r.Pattern = parsed.Kind, parsed.Port, parsed.Pattern
	return r
}

// wholeSeconds is a time that a card gives, or def when it does not.
func (p *planner) wholeSeconds(n card.Int, def int, at string) int {
	if !n.Set {
		return def
	}
	if n.Value < 1 || n.Value > maxTimeout {
		p.refuse(at, "%d is no number of seconds from 1 to %d", n.Value, maxTimeout)
	}
	return n.Value
}

// ParseReady reads tcp:PORT, tcp:MASTER_PORT, line:REGEX or file.
func ParseReady(text string) (Ready, error) {
	kind, rest, _ := strings.Cut(text, ":")
	switch kind {
	case ReadyTCP:
		if rest == "MASTER_PORT" {
			return Ready{Kind: kind}, nil
		}
		port, err := strconv.Atoi(rest)
		if err != nil || port < 1 || port > 65535 {
			return Ready{}, fmt.Errorf("%q names no port: tcp:PORT with a port from 1 to 65535, or tcp:MASTER_PORT", text)
		}
		return Ready{Kind: kind, Port: port}, nil
	case ReadyLine:
		if rest == "" {
			return Ready{}, fmt.Errorf("%q matches every line: line:REGEX needs a regular expression", text)
		}
		if _, err := regexp.Compile(rest); err != nil {
			return Ready{}, fmt.Errorf("%q has no valid regular expression: %w", text, err)
		}
		return Ready{Kind: kind, Pattern: rest}, nil
	case ReadyFile:
		if rest == "" {
			return Ready{Kind: kind}, nil
		}
		return Ready{}, fmt.Errorf("%q: file takes no name; the workload makes the file that $ASSAY_READY_FILE names", text)
	}
	return Ready{}, fmt.Errorf("%q is no readiness: tcp:PORT, line:REGEX or file", text)
}
