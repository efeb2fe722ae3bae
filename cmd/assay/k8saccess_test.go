//go:build k8s

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"assay/pkg/exitcode"
	"assay/pkg/verdict"
)

// rbac is the Role of templates/k8s, for the namespace of the site.
func (s *k8sSite) rbac() string {
	s.t.Helper()
	data, err := os.ReadFile("../../templates/k8s/rbac.yaml")
	if err != nil {
		s.t.Fatal(err)
	}
	return strings.ReplaceAll(string(data), "assay-ci", s.namespace)
}

// asAssay makes assay the user that the Role is for.
func (s *k8sSite) asAssay() {
	s.t.Helper()
	s.Apply(s.namespace, s.rbac())
	s.env["KUBECONFIG"] = s.ServiceAccountConfig(s.namespace, "assay", time.Hour)
}

// The Role that is documented is enough for all that assay does.
func TestK8sMinimalRole(t *testing.T) {
	t.Parallel()
	s := newK8sSite(t)
	s.asAssay()
	s.gated()
	s.extra["env_vars"] = map[string]any{"API_TOKEN": "x"}
	s.manifest(nil, 2, workload{name: "t", script: arrive + keepRes + figure})
	r := s.startRun()
	s.awaitArrived("t", 2)
	r.kill()
	attach := s.start("attach", "r", "--json")
	s.letGo()
	res := attach.wait().want(verdict.Pass).clean()
	s.whole(res)
	if n := res.notices(); len(n) > 0 {
		t.Errorf("it could not do all: %q", n)
	}
	s.gone()
	if err := os.Remove(s.atGates("go")); err != nil {
		t.Fatal(err)
	}
	second := s.start("run", "-m", "m.json", "--run-id", "second", "--json")
	s.eventually("the second run to be there", func() bool { return s.jobObject() != "" })
	second.interrupt(syscall.SIGINT)
	second.wait().exits(exitcode.Interrupted).reason("CANCELLED")
	s.assay("cancel", "second").exits(exitcode.Pass)
	s.assay("gc").exits(exitcode.Pass)
	s.gone()
	for _, q := range s.AuditRequests("assay/", s.namespace) {
		if q.Code == http.StatusForbidden && q.Resource != "namespaces" { // of preflight, which does without
			t.Errorf("refused: %s %s/%s", q.Verb, q.Resource, q.Subresource)
		}
	}
}

// role is what is read of a Role.
type role struct {
	Rules []struct {
		APIGroups []string `json:"apiGroups"`
		Resources []string `json:"resources"`
		Verbs     []string `json:"verbs"`
	} `json:"rules"`
}

// lacking is the Role without one permission, of an account of that name.
func (r role) lacking(resource, verb, account string) string {
	rules := []any{}
	for _, rule := range r.Rules {
		for _, res := range rule.Resources {
			for _, v := range rule.Verbs {
				if res != resource || v != verb {
					rules = append(rules, map[string]any{"apiGroups": rule.APIGroups, "resources": []string{res}, "verbs": []string{v}})
				}
			}
		}
	}
	list, _ := json.Marshal(rules) // it always can
	return fmt.Sprintf(`
apiVersion: v1
kind: ServiceAccount
metadata: {name: %[1]s}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: %[1]s}
rules: %[2]s
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: %[1]s}
subjects: [{kind: ServiceAccount, name: %[1]s}]
`, account, list)
}

// Without any one permission it is said which, in one sentence, before anything is
// submitted; or the run goes on without what it would give.
func TestK8sPermissionMissing(t *testing.T) {
	t.Parallel()
	s := newK8sSite(t)
	var minimal role
	for doc := range strings.SplitSeq(s.rbac(), "\n---\n") {
		if strings.Contains(doc, "kind: Role\n") {
			if err := yaml.Unmarshal([]byte(doc), &minimal); err != nil {
				t.Fatal(err)
			}
		}
	}
	optional := map[string]string{"list events": "why pods cannot be created is not told", "get pods/log": "logs and results of ranks cannot be had"}
	cases := 0
	for _, rule := range minimal.Rules {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				if resource == "jobsets" {
					continue
				}
				cases++
				t.Run(verb+" "+resource, func(t *testing.T) {
					t.Parallel()
					own := *s.to(t)
					account := strings.ReplaceAll(verb+"-"+resource, "/", "-")
					own.Apply(own.namespace, minimal.lacking(resource, verb, account))
					own.env["KUBECONFIG"] = own.ServiceAccountConfig(own.namespace, account, time.Hour)
					own.extra["env_vars"] = map[string]any{"API_TOKEN": "x"}
					own.manifest(nil, 2, workload{name: "t", script: figure})
					r := own.runJSON()
					if lost := optional[verb+" "+resource]; lost != "" {
						r.want(verdict.Pass)
						if !strings.Contains(r.stderr, lost) {
							t.Errorf("nothing says that %s:\n%s", lost, r.stderr)
						}
						return
					}
					r.exits(exitcode.Error)
					what := verb + " " + resource
					if group := rule.APIGroups[0]; group != "" {
						what += "." + group
					}
					if want := "this user may not " + what + " in namespace " + own.namespace; strings.Count(r.stderr, want) != 1 {
						t.Errorf("it does not say that %s:\n%s%s", want, r.stderr, r.stdout)
					}
				})
			}
		}
	}
	if cases < 12 {
		t.Errorf("%d cases only", cases)
	}
}

// to is a site in a directory of its own for a part of a test, in the same namespace.
func (s *k8sSite) to(t *testing.T) *k8sSite {
	t.Helper()
	return k8sSiteIn(t, s.namespace)
}

var usersLine = regexp.MustCompile(`(?m)^users: .*$`)

// identify writes the credentials of the user of a kubeconfig.
func (s *k8sSite) identify(path, user string) {
	s.t.Helper()
	data, err := os.ReadFile(path)
	if err == nil {
		data = usersLine.ReplaceAllLiteral(data, []byte("users: [{name: assay, user: "+user+"}]"))
		err = os.WriteFile(path+".new", data, 0o600)
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// write writes a file of the site.
func (s *k8sSite) write(name, content string) string {
	s.t.Helper()
	path := filepath.Join(s.dir, name)
	if err := os.WriteFile(path, []byte(content), 0o700); err != nil {
		s.t.Fatal(err)
	}
	return path
}

func inline(_ *k8sSite, token string) string { return `{token: "` + token + `"}` }

// shortLived starts a run as a user whose token ends while ranks are at the gate. The
// connections of assay can be cut.
func (s *k8sSite) shortLived(user func(*k8sSite, string) string) (r *running, cut func()) {
	s.t.Helper()
	s.Apply(s.namespace, s.rbac())
	s.gated()
	cut = s.behind(func(w http.ResponseWriter, r *http.Request, forward http.Handler) { forward.ServeHTTP(w, r) })
	token := s.Token(s.namespace, "assay", 20*time.Second)
	s.identify(s.env["KUBECONFIG"], user(s, token))
	s.manifest(nil, 2, workload{name: "t", script: arrive + keepRes + figure})
	r = s.startRun()
	s.awaitArrived("t", 2)
	s.Await("the token has ended", func() bool {
		_, err := s.Try("--token", token, "--kubeconfig", s.env["KUBECONFIG"], "--namespace", s.namespace, "get", "jobs")
		return err != nil && (strings.Contains(err.Error(), "Unauthorized") || strings.Contains(err.Error(), "provide credentials"))
	})
	return r, cut
}

// The ways in which the credentials of a user are renewed while a run goes on.
func TestK8sTokenRenewed(t *testing.T) {
	t.Parallel()
	for name, user := range map[string]func(*k8sSite, string) string{
		"in the kubeconfig": inline,
		"in a file": func(s *k8sSite, token string) string {
			return `{tokenFile: "` + s.write("token", token) + `"}`
		},
		"by a plugin": func(s *k8sSite, token string) string {
			plugin := s.write("plugin", "#!/bin/sh\n"+`echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"`+token+`"}}'`+"\n")
			return `{exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, command: "` + plugin + `"}}`
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newK8sSite(t)
			r, cut := s.shortLived(user)
			s.identify(s.env["KUBECONFIG"], user(s, s.Token(s.namespace, "assay", time.Hour)))
			cut()
			s.letGo()
			s.whole(r.wait().want(verdict.Pass).clean())
			s.gone()
		})
	}
}

// Without a token that is renewed nothing can be learned, which is said in one
// sentence; with another one the run goes on from where it is.
func TestK8sTokenEnds(t *testing.T) {
	t.Parallel()
	s := newK8sSite(t)
	const said = "the API server does not accept the credentials of the kubeconfig"
	r, cut := s.shortLived(inline)
	cut()
	s.letGo()
	s.kubectl("wait", "--for=condition=Complete", "job", "--all", "--timeout=90s")
	r.kill()
	for code, args := range map[exitcode.Code][]string{
		exitcode.Pending: {"collect", "r"}, exitcode.Error: {"run", "-m", "m.json", "--run-id", "other"},
	} {
		if res := s.assay(args...).exits(code); strings.Count(res.stderr, said) != 1 {
			t.Errorf("assay %s does not say it once:\n%s", args[0], res.stderr)
		}
	}
	s.identify(s.env["KUBECONFIG"], inline(s, s.Token(s.namespace, "assay", time.Hour)))
	s.whole(s.assay("attach", "r", "--json").want(verdict.Pass).clean())
	s.once(1)
	s.gone()
}
