//go:build k8s

package main

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"assay/pkg/rundir"
	"assay/pkg/verdict"
)

// hostile are values that quoting, expansion and lines can spoil. Each has the canary
// in it.
func hostile(canary string) map[string]string {
	return map[string]string{
		"H_QUOTES":   `a'b"c\'d\" ` + canary,
		"H_COMMAND":  "$(touch /tmp/x; echo y) `id` " + canary,
		"H_VAR":      "$(HOME) $HOME ${HOME} $$ " + canary,
		"H_LINES":    "one\ntwo\r\n\tthree " + canary,
		"H_UNICODE":  "žluť 漢字 \u202e 🚀 " + canary,
		"H_DASHES":   "--help -n " + canary,
		"H_LONG":     strings.Repeat("0123456789abcdef", 640) + canary,
		"H_TRAILING": canary + "\n\n",
		"H_EQUALS":   "=a=b#c;d&e|f " + canary + "=",
		"H_SPACES":   "  " + canary + "  ",
		"H_GLOB":     "* ? [a-z] ~ ! %s %% \\n " + canary,
	}
}

// newCanary is a word that is nowhere by chance.
func newCanary() string {
	var b [12]byte
	_, _ = rand.Read(b[:]) // never fails
	return "canary" + hex.EncodeToString(b[:])
}

// envFile writes a file that a shell sources.
func (s *k8sSite) envFile(values map[string]string) {
	s.t.Helper()
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(values)) {
		b.WriteString(name + "='" + strings.ReplaceAll(values[name], "'", `'\''`) + "'\n")
	}
	if err := os.WriteFile(filepath.Join(s.dir, "secrets.env"), []byte(b.String()), 0o600); err != nil {
		s.t.Fatal(err)
	}
	s.extra["env_file"], s.extra["env_file_format"] = "secrets.env", "shell"
}

// digests is a script that writes the digest of each variable to the results.
const digests = `for n in ${!H_*}; do printf %s "${!n}" | sha256sum | cut -d" " -f1 >$ASSAY_RESULTS_DIR/$n; done; `

// checkDigests fails the test unless each rank had exactly these values.
func (s *k8sSite) checkDigests(ranks int, values map[string]string) {
	s.t.Helper()
	for n := range ranks {
		dir := filepath.Join(rundir.RankDir(s.attempt("t", 1), n), rundir.ResultsDir)
		for name, value := range values {
			sum := sha256.Sum256([]byte(value))
			got, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil || strings.TrimSpace(string(got)) != hex.EncodeToString(sum[:]) {
				s.t.Errorf("rank %d did not have %s as it is: %v", n, name, err)
			}
		}
		if found, _ := filepath.Glob(filepath.Join(dir, "H_*")); len(found) != len(values) {
			s.t.Errorf("rank %d had %d variables, want %d", n, len(found), len(values))
		}
	}
}

// cmdlines looks for a word in the arguments of all processes of this machine, pods
// included, until it is stopped, and returns where it was.
func cmdlines(word string) (stop func() []string) {
	var wg sync.WaitGroup
	var found []string
	done := make(chan struct{})
	wg.Go(func() {
		for {
			files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
			for _, f := range files {
				if args, err := os.ReadFile(f); err == nil && strings.Contains(string(args), word) {
					found = append(found, string(args))
				}
			}
			select {
			case <-done:
				return
			default:
			}
		}
	})
	return func() []string {
		close(done)
		wg.Wait()
		return found
	}
}

// holding are the files below a directory that hold a word.
func (s *k8sSite) holding(dir, word string) []string {
	s.t.Helper()
	var found []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if strings.Contains(string(data), word) {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		s.t.Error(err)
	}
	return found
}

func TestK8sSecretValues(t *testing.T) {
	t.Parallel()
	s := newK8sSite(t)
	canary, password := newCanary(), "pass"+newCanary()
	values := hostile(canary)
	s.gated()
	s.envFile(values)
	s.extra["env_vars"] = map[string]any{"SITE_PASSWORD": password}
	s.manifest(map[string]any{"cleanup": "never"}, 2, workload{name: "t", script: digests + `[ ${#SITE_PASSWORD} = 34 ] || exit 3; ` + arrive + figure})
	rendered := s.assay("render", "m.json")
	stop := cmdlines(canary)
	r := s.startRun()
	s.awaitArrived("t", 2)
	objects := s.kubectl("get", "jobs,pods,services,configmaps,events,endpointslices,serviceaccounts", "--output", "yaml")
	secrets := strings.Fields(s.kubectl("get", "secrets", "--output", `jsonpath={range .items[*]}{range .data.*}{@}{"\n"}{end}{end}`))
	described := s.kubectl("describe", "pods,jobs,secrets")
	s.letGo()
	res := r.wait().want(verdict.Pass).clean()
	s.checkDigests(2, values)

	logs := s.kubectl("logs", "--selector", "app.kubernetes.io/managed-by=assay", "--all-containers", "--tail=-1")
	explained := s.assay("explain", "r")
	// What the manifest itself says is in the run directory, and nowhere else.
	for where, text := range map[string]string{
		"the objects": objects, "what kubectl describes": described, "the logs of the pods": logs,
		"what render prints": rendered.stdout + rendered.stderr, "what run prints": res.stdout + res.stderr,
		"what explain prints": explained.stdout + explained.stderr,
	} {
		if strings.Contains(text, canary) || strings.Contains(text, password) {
			t.Errorf("a value is in %s", where)
		}
	}
	if len(secrets) != len(values)+1 {
		t.Errorf("the Secret has %d values, want %d", len(secrets), len(values)+1)
	}
	for _, v := range secrets {
		if strings.Contains(objects, v) {
			t.Error("a value of the Secret is in another object")
		}
	}
	if found := stop(); len(found) > 0 {
		t.Errorf("a value is an argument of %q", found)
	}
	for _, path := range s.holding(filepath.Join(s.dir, "runs"), canary) {
		t.Errorf("a value is in %s", path)
	}
	s.kubectl("delete", "jobs", "--all")
	s.gone()
}

func TestK8sSecretStrategies(t *testing.T) {
	t.Parallel()
	for strategy, want := range map[string]map[string]string{
		"existing": {"H_MINE": "of the cluster"},
		"omit":     {},
	} {
		t.Run(strategy, func(t *testing.T) {
			t.Parallel()
			s := newK8sSite(t)
			s.kubectl("create", "secret", "generic", "mine", "--from-literal=H_MINE=of the cluster")
			s.envFile(map[string]string{"H_FILE": newCanary()})
			s.manifest(map[string]any{"secrets": map[string]any{"strategy": strategy, "runtime_secret_name": "mine"}}, 2,
				workload{name: "t", script: digests + figure})
			r := s.runJSON().want(verdict.Pass)
			if !strings.Contains(r.stderr, "the env_file is not read: secrets.strategy is "+strategy) {
				t.Errorf("nothing says that the env_file is not read:\n%s", r.stderr)
			}
			s.checkDigests(2, want)
			if got := s.kubectl("get", "secrets", "--output", "jsonpath={.items[*].metadata.name}"); got != "mine" {
				t.Errorf("the secrets of the namespace are %q", got)
			}
		})
	}
}
