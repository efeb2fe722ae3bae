//go:build docker

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	built "assay/pkg/manifest"
)

// workshop is a models root whose cards are built with the Docker Engine of
// testdata/clusters/docker/with.
type workshop struct {
	t        *testing.T
	dir      string
	registry string   // 127.0.0.1:PORT
	tag      string   // in the names of all cards, so that tests do not meet
	env      []string // for assay, over that of the test
}

// newWorkshop makes one whose docker/box is what an image FROM scratch is made of.
func newWorkshop(t *testing.T) *workshop {
	t.Helper()
	w := &workshop{t: t, dir: t.TempDir(), registry: os.Getenv("ASSAY_TEST_REGISTRY"), tag: fmt.Sprintf("t%d", time.Now().UnixNano())}
	if os.Getenv("ASSAY_TEST_DOCKER") == "" || w.registry == "" {
		t.Fatal("there is no Docker Engine: ASSAY_TEST_DOCKER is not set; run the tests under testdata/clusters/docker/with")
	}
	box := filepath.Join(w.dir, "docker", "box")
	if out, err := exec.Command(filepath.Join("..", "..", "testdata", "clusters", "docker", "context"), box).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	w.write("run.sh", "#!/bin/sh\necho performance: 5 GBs triad\n")
	if err := os.Chmod(filepath.Join(w.dir, "run.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *workshop) write(name, text string) {
	w.t.Helper()
	path := filepath.Join(w.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

// cards declares cards of these names, each with a Dockerfile that goes on with lines
// after the image is furnished, and takes them all away from the engine at the end.
func (w *workshop) cards(lines map[string]string) {
	w.t.Helper()
	var list []map[string]any
	for name, more := range lines {
		list = append(list, map[string]any{"name": name + "-" + w.tag, "scripts": "run.sh", "dockerfile": "docker/" + name, "tags": []string{"all"}})
		w.write("docker/"+name+".ubuntu.amd.Dockerfile", "# CONTEXT {'gpu_vendor': 'AMD', 'guest_os': 'UBUNTU'}\n"+
			"FROM scratch\nCOPY box/root /\nENV PATH=/bin\n"+more+"\n")
	}
	slices.SortFunc(list, func(a, b map[string]any) int { return strings.Compare(fmt.Sprint(a["name"]), fmt.Sprint(b["name"])) })
	text, err := json.Marshal(list)
	if err != nil {
		w.t.Fatal(err)
	}
	w.write("models.json", string(text))
}

// assay runs a command in the workshop, which has to exit with the code.
func (w *workshop) assay(code int, args ...string) (stdout, stderr string) {
	w.t.Helper()
	cmd := exec.Command("assay", args...)
	cmd.Dir = w.dir
	cmd.Env = append(os.Environ(), w.env...)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	err := cmd.Run()
	if cmd.ProcessState == nil {
		w.t.Fatal(err)
	}
	if got := cmd.ProcessState.ExitCode(); got != code {
		w.t.Fatalf("assay %s exited with %d, want %d:\n%s%s", strings.Join(args, " "), got, code, &out, &said)
	}
	return out.String(), said.String()
}

// build builds the cards with the tag all.
func (w *workshop) build(code int, more ...string) (stderr string) {
	w.t.Helper()
	args := []string{"build", "--tags", "all", "--additional-context", `{"gpu_vendor": "AMD", "guest_os": "UBUNTU"}`}
	_, stderr = w.assay(code, append(args, more...)...)
	return stderr
}

// image is the entry of a card's image in the manifest.
func (w *workshop) image(name string) built.Image {
	w.t.Helper()
	data, err := os.ReadFile(filepath.Join(w.dir, "build_manifest.json"))
	if err != nil {
		w.t.Fatal(err)
	}
	m, err := built.Decode(data)
	if err != nil {
		w.t.Fatal(err)
	}
	image, ok := m.Images[name+"-"+w.tag]
	if !ok {
		w.t.Fatalf("the manifest has no image of %s: %s", name, data)
	}
	return image
}

// summary is that of the builds in the manifest.
func (w *workshop) summary() (s struct {
	Succeeded []string            `json:"successful_builds"`
	Failed    []map[string]string `json:"failed_builds"`
	Pushed    []map[string]string `json:"successful_pushes"`
	Unpushed  []map[string]string `json:"failed_pushes"`
},
) {
	w.t.Helper()
	data, err := os.ReadFile(filepath.Join(w.dir, "build_manifest.json"))
	if err != nil {
		w.t.Fatal(err)
	}
	m, err := built.Decode(data)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := json.Unmarshal(m.Summary, &s); err != nil {
		w.t.Fatal(err)
	}
	return s
}

// engine runs docker and returns what it printed.
func engine(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command("docker", args...)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("docker %s: %v: %s", strings.Join(args, " "), err, &said)
	}
	return strings.TrimSpace(string(out))
}

func TestDockerBuildPushPull(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	w.cards(map[string]string{"box": "ARG WORD=none\nRUN echo $WORD >/word"})
	w.env = []string{"WORD=it's \"$HOME\" and more"}
	w.build(0, "--registry", w.registry+"/team", "--build-arg", "WORD")
	i := w.image("box")
	name := "ci-box-" + w.tag + "_box.ubuntu.amd"
	if i.DockerImage != name || i.RegistryImage != w.registry+"/team/"+name || i.BaseDocker != "scratch" || i.GPUVendor != "AMD" ||
		i.Dockerfile != "docker/box.ubuntu.amd.Dockerfile" || i.Architecture != engine(t, "version", "--format", "{{.Server.Arch}}") {
		t.Errorf("%+v", i)
	}
	if id := engine(t, "image", "inspect", "--format", "{{.Id}}", name); id != i.ImageID {
		t.Errorf("the id is %s, the manifest says %s", id, i.ImageID)
	}
	engine(t, "rmi", "--force", i.ImageID)
	pinned := w.registry + "/team/" + name + "@" + i.DockerSHA
	engine(t, "pull", "--quiet", pinned)
	if id := engine(t, "image", "inspect", "--format", "{{.Id}}", pinned); id != i.ImageID {
		t.Errorf("what was pulled is %s, what was built %s", id, i.ImageID)
	}
	if word := engine(t, "run", "--rm", "--network", "none", pinned, "cat", "/word"); word != `it's "$HOME" and more` {
		t.Errorf("the argument arrived as %q", word)
	}
	for _, file := range []string{"build_manifest.json", "build_logs/" + name + ".log"} {
		if data, err := os.ReadFile(filepath.Join(w.dir, file)); err != nil || bytes.Contains(data, []byte("and more")) {
			t.Errorf("%s shows the value of a build argument, or is missing: %v", file, err)
		}
	}
}

func TestDockerBuildOneOfThreeFails(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	w.cards(map[string]string{"one": "RUN true", "two": "RUN echo too bad && exit 7", "three": "RUN true"})
	stderr := w.build(2, "--summary-output", "summary.json")
	w.image("one")
	w.image("three")
	s := w.summary()
	if diff := cmp.Diff([]string{"one-" + w.tag, "three-" + w.tag}, s.Succeeded); diff != "" {
		t.Error(diff)
	}
	log := "build_logs/ci-two-" + w.tag + "_two.ubuntu.amd.log"
	if len(s.Failed) != 1 || s.Failed[0]["model"] != "two-"+w.tag || !strings.Contains(s.Failed[0]["error"], "too bad") ||
		!strings.HasSuffix(s.Failed[0]["error"], "its log is "+log) {
		t.Errorf("%v", s.Failed)
	}
	if !strings.Contains(stderr, "1 of 3 image builds failed: card \"two-"+w.tag+"\": docker build ended with exit code 7") {
		t.Errorf("%s", stderr)
	}
	if data, err := os.ReadFile(filepath.Join(w.dir, log)); err != nil || !bytes.Contains(data, []byte("RUN echo too bad")) {
		t.Errorf("%v: %s", err, data)
	}
	var summary map[string]any
	if data, err := os.ReadFile(filepath.Join(w.dir, "summary.json")); err != nil || json.Unmarshal(data, &summary) != nil || len(summary["failed_builds"].([]any)) != 1 {
		t.Errorf("%v: %s", err, data)
	}
	if left := engine(t, "ps", "--all", "--quiet", "--filter", "ancestor="+w.image("one").ImageID); left != "" {
		t.Errorf("containers are left: %s", left)
	}
}

func TestDockerBuildAtTheSameTime(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	// Each waits on the host's network until the other is there too.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		var waiting []net.Conn
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if waiting = append(waiting, c); len(waiting) == 2 {
				for _, c := range waiting {
					_, _ = c.Write([]byte("go\n"))
					c.Close()
				}
			}
		}
	}()
	host, port, _ := net.SplitHostPort(l.Addr().String())
	meet := func(who string) string {
		return fmt.Sprintf("RUN test \"$(: %s %s; timeout 60 nc %s %s </dev/null)\" = go", who, w.tag, host, port)
	}
	w.cards(map[string]string{"left": meet("left"), "right": meet("right")})
	w.build(0, "--build-jobs", "2")
}

func TestDockerBuildUseImage(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	w.cards(map[string]string{"box": ""})
	w.write("docker/box.ubuntu.amd.Dockerfile", "ARG BASE=rocm/pytorch\nFROM ${BASE}:latest\nRUN exit 1\n")
	w.build(0, "--use-image", "auto")
	if i := w.image("box"); i.DockerImage != "rocm/pytorch:latest" || i.GPUVendor != "AMD" {
		t.Errorf("%+v", i)
	}
	w.build(0, "--use-image", w.registry+"/mine:2")
	if i := w.image("box"); i.DockerImage != w.registry+"/mine:2" {
		t.Errorf("%+v", i)
	}
}

func TestDockerBuildBatch(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	w.cards(map[string]string{"fresh": "RUN true", "old": "RUN exit 1", "other": "RUN exit 1"})
	old, as := w.registry+"/old:7", w.registry+"/team/fresh-"+w.tag+":3"
	w.write("batch.json", fmt.Sprintf(`[{"model_name": "fresh-%s", "build_new": true, "registry_image": %q, "registry": %q},
		{"model_name": "old-%s", "build_new": false, "registry_image": %q}]`, w.tag, as, w.registry, w.tag, old))
	w.assay(0, "build", "--batch-manifest", "batch.json")
	i := w.image("fresh")
	if i.RegistryImage != as || i.Registry != w.registry || !strings.HasPrefix(i.DockerSHA, "sha256:") || i.DockerSHA == i.ImageID {
		t.Errorf("%+v", i)
	}
	engine(t, "pull", "--quiet", as)
	if i := w.image("old"); i.DockerImage != old || i.RegistryImage != old {
		t.Errorf("%+v", i)
	}
	if s := w.summary(); len(s.Succeeded) != 2 || len(s.Pushed) != 1 {
		t.Errorf("%+v", s)
	}
}

func TestDockerBuildArchitectures(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	w.cards(map[string]string{"box": "ARG MAD_SYSTEM_GPU_ARCHITECTURE\nRUN echo $MAD_SYSTEM_GPU_ARCHITECTURE >/arch"})
	w.build(0, "--target-archs", "gfx90a,gfx942")
	for _, arch := range []string{"gfx90a", "gfx942"} {
		w.tag += "_" + arch
		i := w.image("box")
		if got := engine(t, "run", "--rm", "--network", "none", i.DockerImage, "cat", "/arch"); got != arch || i.GPUArch != arch {
			t.Errorf("%s: the image has %s, the manifest %s", arch, got, i.GPUArch)
		}
		w.tag = strings.TrimSuffix(w.tag, "_"+arch)
	}
}

func TestDockerBuildPushFails(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	w.cards(map[string]string{"box": "RUN true"})
	l, err := net.Listen("tcp", "127.0.0.1:0") // a port that nobody listens on from here on
	if err != nil {
		t.Fatal(err)
	}
	nowhere := l.Addr().String()
	l.Close()
	stderr := w.build(2, "--registry", nowhere)
	if i := w.image("box"); i.RegistryImage != "" || i.LocalImage != "true" {
		t.Errorf("%+v", i)
	}
	if s := w.summary(); len(s.Unpushed) != 1 || !strings.Contains(s.Unpushed[0]["error"], "connection refused") || !strings.Contains(stderr, "1 of 1 image could not be pushed") {
		t.Errorf("%+v\n%s", s, stderr)
	}
}

func TestDockerBuildLogin(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	w.cards(map[string]string{"box": "RUN true"})
	registry := privateRegistry(t)
	w.env = []string{"ASSAY_REGISTRY_PASSWORD=wrong"}
	stderr := w.build(2, "--registry", registry+"/team", "--registry-username", "me")
	if !strings.Contains(stderr, "docker login to "+registry+" as me failed: ") || strings.Contains(stderr, "building") {
		t.Errorf("%s", stderr)
	}
	w.env = nil
	w.write("password", "correct horse\n")
	w.build(0, "--registry", registry+"/team", "--registry-username", "me", "--registry-password-file", "password")
	if i := w.image("box"); i.RegistryImage == "" || i.DockerSHA == i.ImageID {
		t.Errorf("%+v", i)
	}
	if data, err := os.ReadFile(filepath.Join(os.Getenv("DOCKER_CONFIG"), "config.json")); err == nil && bytes.Contains(data, []byte(registry)) {
		t.Error("the login is in the user's configuration")
	}
}

// privateRegistry starts a registry that lets in "me" with "correct horse".
func privateRegistry(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	dir := t.TempDir()
	hash, err := exec.Command("perl", "-e", `print crypt("correct horse", '$2y$05$abcdefghijklmnopqrstuu')`).Output()
	if err != nil || !bytes.HasPrefix(hash, []byte("$2y$")) {
		t.Fatalf("no hash of the password: %v: %s", err, hash)
	}
	config := fmt.Sprintf("version: 0.1\nstorage: {filesystem: {rootdirectory: %s/data}}\nhttp: {addr: %q}\n"+
		"auth: {htpasswd: {realm: test, path: %s/htpasswd}}\n", dir, address, dir)
	for name, text := range map[string]string{"htpasswd": "me:" + string(hash) + "\n", "registry.yml": config} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("docker-registry", "serve", filepath.Join(dir, "registry.yml"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for {
		c, err := net.Dial("tcp", address)
		if err == nil {
			c.Close()
			return address
		}
		if errors.Is(cmd.Process.Signal(syscall.Signal(0)), os.ErrProcessDone) || t.Context().Err() != nil {
			t.Fatalf("the registry ended: %s", &said)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func TestDockerBuildInterrupted(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	w.cards(map[string]string{"box": "RUN echo begun " + w.tag + " && sleep 300"})
	cmd := exec.Command("assay", "build", "--tags", "all")
	cmd.Dir = w.dir
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(w.dir, "build_logs", "ci-box-"+w.tag+"_box.ubuntu.amd.log")
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if data, _ := os.ReadFile(log); bytes.Contains(data, []byte("\nbegun "+w.tag)) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the build did not begin")
		}
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 130 || !strings.Contains(said.String(), "stopped by SIGINT") {
		t.Errorf("exit %d: %s", code, &said)
	}
	if _, err := os.Stat(filepath.Join(w.dir, "build_manifest.json")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a manifest was written: %v", err)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		running := engine(t, "ps", "--no-trunc", "--format", "{{.Command}}")
		if !strings.Contains(running, w.tag) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the build still runs: %s", running)
		}
	}
}

// TestDockerBuildPodman does without the engine: podman has none. It needs the
// registry.
func TestDockerBuildPodman(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("podman"); err != nil {
		t.Fatal("there is no podman: install the packages of testdata/clusters/docker/packages")
	}
	w := newWorkshop(t)
	w.cards(map[string]string{"box": "ARG WORD\nRUN echo $WORD >/word"})
	registry := privateRegistry(t)
	config := t.TempDir()
	for name, text := range map[string]string{
		"storage.conf":    fmt.Sprintf("[storage]\ndriver = \"vfs\"\nrunroot = %q\ngraphroot = %q\n", config+"/run", config+"/root"),
		"registries.conf": fmt.Sprintf("[[registry]]\nlocation = %q\ninsecure = true\n", registry),
		"containers.conf": "[engine]\nruntime = \"runc\"\ncgroup_manager = \"cgroupfs\"\n", // crun refuses a mixture of cgroups
	} {
		if err := os.WriteFile(filepath.Join(config, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w.env = []string{
		"CONTAINERS_STORAGE_CONF=" + config + "/storage.conf", "CONTAINERS_REGISTRIES_CONF=" + config + "/registries.conf",
		"CONTAINERS_CONF=" + config + "/containers.conf", "ASSAY_REGISTRY_PASSWORD=correct horse", "WORD=a word",
	}
	w.build(0, "--runtime", "podman", "--build-arg", "WORD", "--registry", registry+"/team", "--registry-username", "me")
	i := w.image("box")
	if !strings.HasPrefix(i.ImageID, "sha256:") || !strings.HasPrefix(i.DockerSHA, "sha256:") || i.DockerSHA == i.ImageID || i.BaseDocker != "scratch" {
		t.Errorf("%+v", i)
	}
	podman := func(args ...string) string {
		cmd := exec.Command("podman", args...)
		cmd.Env = append(os.Environ(), w.env...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("podman %s: %v: %s", strings.Join(args, " "), err, out)
		}
		return strings.TrimSpace(string(out))
	}
	podman("rmi", "--all", "--force")
	podman("pull", "--quiet", "--creds", "me:correct horse", i.RegistryImage+"@"+i.DockerSHA)
	if id := podman("image", "inspect", "--format", "{{.Id}}", i.RegistryImage+"@"+i.DockerSHA); "sha256:"+id != i.ImageID {
		t.Errorf("what was pulled is %s, what was built %s", id, i.ImageID)
	}
}
