//go:build k8s

package main

import (
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// tamper sees each request before the API server does, and does with it what it
// likes; forward asks the server.
type tamper func(w http.ResponseWriter, r *http.Request, forward http.Handler)

var serverLine = regexp.MustCompile(`server: "?(https://[^"\s]+)"?`)

// behind puts something between assay and the API server. cut ends all connections.
func (s *k8sSite) behind(f tamper) (cut func()) {
	t := s.t
	t.Helper()
	data, err := os.ReadFile(s.env["KUBECONFIG"])
	if err != nil {
		t.Fatal(err)
	}
	found := serverLine.FindSubmatch(data)
	if found == nil {
		t.Fatalf("no server in %s", s.env["KUBECONFIG"])
	}
	api, err := url.Parse(string(found[1]))
	if err != nil {
		t.Fatal(err)
	}
	forward := httputil.NewSingleHostReverseProxy(api)
	forward.FlushInterval = -1
	forward.Transport = &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	proxy := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { f(w, r, forward) }))
	t.Cleanup(func() {
		proxy.CloseClientConnections()
		proxy.Close()
	})
	path := filepath.Join(s.dir, "proxy.kubeconfig")
	config := serverLine.ReplaceAllString(string(data), "server: "+proxy.URL+", insecure-skip-tls-verify: true") // it sends tokens over TLS only
	config = regexp.MustCompile(`(?m)certificate-authority(-data)?: *[^,}\n]+,?`).ReplaceAllString(config, "")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	s.env["KUBECONFIG"] = path
	return proxy.CloseClientConnections
}

// creates reports whether a request is to create one of a resource.
func creates(r *http.Request, resource string) bool {
	return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/"+resource) && r.URL.Query().Get("dryRun") == ""
}

// withoutJobSets hides that the cluster knows JobSets.
func withoutJobSets(w http.ResponseWriter, r *http.Request, forward http.Handler) {
	if strings.HasPrefix(r.URL.Path, "/apis/jobset.x-k8s.io") {
		http.NotFound(w, r)
		return
	}
	forward.ServeHTTP(w, r)
}

// withKueue pretends that the cluster has Kueue and every local queue that is asked
// for.
func withKueue(w http.ResponseWriter, r *http.Request, forward http.Handler) {
	if !strings.HasPrefix(r.URL.Path, "/apis/kueue.x-k8s.io") {
		forward.ServeHTTP(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"kind":"APIGroup","apiVersion":"v1","preferredVersion":{"groupVersion":"kueue.x-k8s.io/v1beta1","version":"v1beta1"}}`)
}
