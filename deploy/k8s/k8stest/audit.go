package k8stest

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
)

// Request is a request that the API server answered, or still answers, as it wrote
// down itself.
type Request struct {
	Verb        string // get, list, watch, create, patch, delete …
	URI         string
	User        string // admin, or system:serviceaccount:NAMESPACE:NAME
	Agent       string // the User-Agent of the client
	Namespace   string // of what was asked for; empty for what has none
	Resource    string // jobs, pods, …
	Subresource string // log, status, …
	Name        string
	Code        int // HTTP status
}

// auditEvent is what is read of a line of the log.
type auditEvent struct {
	AuditID    string
	Verb       string
	RequestURI string
	UserAgent  string
	User       struct{ Username string }
	ObjectRef  struct{ Namespace, Resource, Subresource, Name string }

	ResponseStatus struct{ Code int }
}

// AuditRequests returns the requests about a namespace by clients whose User-Agent
// begins as said, in the order of their answers; where either is empty, it does not
// matter. A watch counts once. An answer may reach its client a moment before it is
// written down.
func (c *Cluster) AuditRequests(agent, namespace string) []Request {
	c.t.Helper()
	f, err := os.Open(filepath.Join(c.Dir, "log", "audit.log"))
	if err != nil {
		c.t.Fatal(err)
	}
	defer f.Close()
	var found []Request
	seen := map[string]int{}
	lines := bufio.NewReader(f)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil { // the end, or a line that is being written
			return found
		}
		var e auditEvent
		if err := json.Unmarshal(line, &e); err != nil {
			c.t.Fatalf("%s: %v\n%s", f.Name(), err, line)
		}
		r := e.request()
		if !strings.HasPrefix(r.Agent, agent) || (namespace != "" && r.Namespace != namespace) {
			continue
		}
		if at, again := seen[e.AuditID]; again {
			found[at] = r
			continue
		}
		seen[e.AuditID] = len(found)
		found = append(found, r)
	}
}

func (e *auditEvent) request() Request {
	return Request{
		Verb: e.Verb, URI: e.RequestURI, User: e.User.Username, Agent: e.UserAgent,
		Namespace: e.ObjectRef.Namespace, Resource: e.ObjectRef.Resource, Subresource: e.ObjectRef.Subresource,
		Name: e.ObjectRef.Name, Code: e.ResponseStatus.Code,
	}
}
