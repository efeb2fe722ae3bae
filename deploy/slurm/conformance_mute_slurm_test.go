//go:build slurm

package slurm

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"assay/deploy"
	"assay/deploy/deploytest"
	"assay/pkg/environ"
	"assay/pkg/plan"
)

// limitOf is how long a target waits for an answer: a short time when it is known
// that there will be none.
func limitOf(mute bool) time.Duration {
	if mute {
		return time.Second
	}
	return commandLimit
}

// muteCommands puts commands in front of the real ones, which go wrong while a file
// is there.
func (h *harness) muteCommands(t *testing.T, way deploytest.Way, job plan.Job) (deploy.Target, plan.Job, func(bool)) {
	t.Helper()
	bin := t.TempDir()
	flag := filepath.Join(bin, "mute")
	wrong := "echo 'slurm_load_jobs error: Unable to contact slurm controller (connect failure)' >&2; exit 1"
	if way == deploytest.Hangs {
		wrong = "sleep 300; exit 0" // as a child, which has to go with its parent
	}
	for _, tool := range []string{"squeue", "sacct", "scancel"} {
		path, err := exec.LookPath(tool)
		if err != nil {
			t.Fatal(err)
		}
		script := fmt.Sprintf("#!/bin/bash\nif [ -e %q ]; then %s; fi\nexec %q \"$@\"\n", flag, wrong, path)
		if err := os.WriteFile(filepath.Join(bin, tool), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	env := h.Env()
	target := h.target(append(env, "PATH="+bin+":"+environ.Get(env, "PATH")))
	t.Cleanup(func() { noneWith(t, bin) })
	return target, job, func(on bool) {
		target.s.tools.limit = limitOf(on)
		var err error
		if on {
			err = os.WriteFile(flag, nil, 0o600)
		} else {
			err = os.Remove(flag)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// noneWith fails the test when a process still has a directory in its PATH: what
// hangs is ended with all that it started.
func noneWith(t *testing.T, dir string) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if env, err := os.ReadFile(f); err == nil && strings.Contains(string(env), "PATH="+dir) {
			args, _ := os.ReadFile(filepath.Join(filepath.Dir(f), "cmdline")) // empty when it has just ended
			t.Errorf("a command that hung left a process: %q", args)
		}
	}
}

// muteServer puts a proxy in front of slurmrestd, which goes wrong when told so.
func (h *harness) muteServer(t *testing.T, way deploytest.Way, job plan.Job) (deploy.Target, plan.Job, func(bool)) {
	t.Helper()
	server, err := url.Parse(h.url)
	if err != nil {
		t.Fatal(err)
	}
	var mute atomic.Bool
	proxy := httputil.NewSingleHostReverseProxy(server)
	proxy.ErrorLog = log.New(io.Discard, "", 0) // a question that was cut short
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !mute.Load():
			proxy.ServeHTTP(w, r)
		case way == deploytest.Hangs:
			<-r.Context().Done()
		default:
			http.Error(w, "no controller", http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(front.Close)
	target := h.target(h.Env())
	web := target.s.restClient(front.URL, h.token).web
	job.Slurm = &plan.Slurm{Partition: "main", API: "rest", RestURL: front.URL, RestTokenFile: h.token}
	return target, job, func(on bool) {
		web.limit = limitOf(on)
		mute.Store(on)
	}
}
