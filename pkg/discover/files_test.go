package discover_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"assay/pkg/discover"
	"assay/pkg/exitcode"
)

func write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

func TestUnreadableSourcesAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		make func(t *testing.T, root string)
		want string
	}{
		"root is missing":  {func(t *testing.T, root string) { remove(t, root) }, "the model directory cannot be read"},
		"root is a file":   {func(t *testing.T, root string) { remove(t, root); write(t, root, "", 0o644) }, "is not a directory"},
		"fifo":             {func(t *testing.T, root string) { fifo(t, root+"/models.json") }, "models.json: the card file cannot be read: it is not a regular file"},
		"directory":        {func(t *testing.T, root string) { write(t, root+"/models.json/x", "", 0o644) }, "models.json: the card file cannot be read: it is not a regular file"},
		"dangling symlink": {func(t *testing.T, root string) { link(t, "nowhere", root+"/models.json") }, "models.json: the card file cannot be read: no such file or directory"},
		"symlink loop":     {func(t *testing.T, root string) { link(t, "models.json", root+"/models.json") }, "models.json: the card file cannot be read: too many levels of symbolic links"},
		"models is a file": {func(t *testing.T, root string) { write(t, root+"/models", "", 0o644) }, "models: the directory cannot be read: not a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			root := filepath.Join(t.TempDir(), "root")
			if err := os.Mkdir(root, 0o755); err != nil {
				t.Fatal(err)
			}
			c.make(t, root)
			_, err := discover.Find(context.Background(), discover.Options{Root: root})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want %q in it", err, c.want)
			}
			if got := exitcode.Of(err); got != exitcode.Invalid {
				t.Errorf("exit code %v, want INVALID", got)
			}
		})
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

func fifo(t *testing.T, path string) {
	t.Helper()
	if err := syscall.Mkfifo(path, 0o644); err != nil {
		t.Fatal(err)
	}
}

func link(t *testing.T, to, path string) {
	t.Helper()
	if err := os.Symlink(to, path); err != nil {
		t.Fatal(err)
	}
}

func TestSymlinkedDirectoriesAreFollowed(t *testing.T) {
	root, other := t.TempDir(), t.TempDir()
	write(t, other+"/models.json", `[{"name": "m", "scripts": "m.sh"}]`, 0o644)
	write(t, root+"/scripts/x/run.sh", "", 0o644)
	link(t, other, root+"/scripts/linked")
	res, err := discover.Find(context.Background(), discover.Options{Root: root, Tags: []string{"linked/m"}})
	if err != nil || len(res.Cards) != 1 {
		t.Fatalf("got %v, %v", res.Cards, err)
	}
}

// A program that hangs, and what it started, is killed at the limit.
func TestDynamicTimeLimit(t *testing.T) {
	root := t.TempDir()
	script := "#!/bin/sh\ntrap '' TERM\necho waiting for the moon >&2\nsleep 1000 & echo $! > child\nwait\nsleep 1000\n"
	write(t, root+"/scripts/slow/get_models_json.sh", script, 0o755)
	_, err := discover.Find(context.Background(), discover.Options{Root: root, AllowDynamic: true, DynamicTimeout: 500 * time.Millisecond})
	if err == nil || !strings.Contains(err.Error(), "did not end within 500ms and was killed") || !strings.Contains(err.Error(), "waiting for the moon") {
		t.Fatalf("got %v", err)
	}
	expectGone(t, root+"/scripts/slow/child")
}

// A process that a successful program leaves behind ends with it.
func TestDynamicLeavesNothingBehind(t *testing.T) {
	root := t.TempDir()
	script := "#!/bin/sh\nsleep 1000 & echo $! > child\necho '[]'\n"
	write(t, root+"/scripts/s/get_models_json.sh", script, 0o755)
	if _, err := discover.Find(context.Background(), discover.Options{Root: root, AllowDynamic: true}); err != nil {
		t.Fatal(err)
	}
	expectGone(t, root+"/scripts/s/child")
}

func expectGone(t *testing.T, pidFile string) {
	t.Helper()
	text, err := os.ReadFile(pidFile)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	// The kernel ends it soon after the signal; nobody but init reaps it.
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if errors.Is(err, os.ErrNotExist) || strings.Contains(string(stat), ") Z ") {
			return
		}
	}
	t.Errorf("process %d is still there", pid)
}

func TestDynamicOutputIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("prints 64 MiB")
	}
	root := t.TempDir()
	write(t, root+"/scripts/s/get_models_json.sh", "#!/bin/sh\nexec cat /dev/zero\n", 0o755)
	_, err := discover.Find(context.Background(), discover.Options{Root: root, AllowDynamic: true})
	if err == nil || !strings.Contains(err.Error(), "it printed more than") {
		t.Fatalf("got %v", err)
	}
}

func TestDynamicGetsTheEnvironmentItIsGiven(t *testing.T) {
	root := t.TempDir()
	write(t, root+"/scripts/s/get_models_json.sh", "#!/bin/sh\necho '[{\"name\": \"'$SITE'\", \"scripts\": \"x\"}]'\n", 0o755)
	res, err := discover.Find(context.Background(), discover.Options{Root: root, AllowDynamic: true, Env: []string{"SITE=here"}})
	if err != nil || len(res.Cards) != 1 || res.Cards[0].Name != "s/here" {
		t.Fatalf("got %v, %v", res.Cards, err)
	}
}

func TestCancelledDiscoveryEnds(t *testing.T) {
	root := t.TempDir()
	write(t, root+"/scripts/s/get_models_json.sh", "#!/bin/sh\nsleep 1000\n", 0o755)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := discover.Find(ctx, discover.Options{Root: root, AllowDynamic: true}); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want context.Canceled", err)
	}
}

// The digest is the card's own: it follows what the card says, not how the file
// is laid out, what else is in it or how the card is selected.
func TestDigest(t *testing.T) {
	digest := func(text string, tags ...string) string {
		root := t.TempDir()
		write(t, root+"/models.json", text, 0o644)
		if tags == nil {
			tags = []string{"a"}
		}
		res, err := discover.Find(context.Background(), discover.Options{Root: root, Tags: tags})
		if err != nil {
			t.Fatal(err)
		}
		return res.Cards[0].Digest
	}
	base := digest(`[{"name": "a", "scripts": "s.sh", "n_gpus": 1}]`)
	for name, same := range map[string]string{
		"order": `[{"n_gpus":1,"scripts":"s.sh","name":"a"}]`,
		"more":  `[{"name": "b", "scripts": "t.sh"}, {"name": "a", "scripts": "s.sh", "n_gpus": 1}]`,
	} {
		if digest(same) != base {
			t.Errorf("%s: the digest differs", name)
		}
	}
	if digest(`[{"name": "a", "scripts": "s.sh", "n_gpus": 1}]`, "a:k=v") != base {
		t.Error("an override changes the digest")
	}
	if digest(`[{"name": "a", "scripts": "s.sh", "n_gpus": "1"}]`) == base {
		t.Error("another value has the same digest")
	}
}
