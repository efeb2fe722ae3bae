package container_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"assay/pkg/container"
)

// TestCheckStatic tells a program that needs a loader from one that needs none.
func TestCheckStatic(t *testing.T) {
	dir := t.TempDir()
	source := filepath.Join(dir, "main.go")
	if err := os.WriteFile(source, []byte("package main\nfunc main() {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	static := filepath.Join(dir, "static")
	build := exec.Command("go", "build", "-o", static, source)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := container.CheckStatic(static); err != nil {
		t.Errorf("a static program: %v", err)
	}
	if err := container.CheckStatic(source); err == nil || !strings.Contains(err.Error(), source) {
		t.Errorf("no program: %v", err)
	}
	shell, err := filepath.EvalSymlinks("/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	if err := container.CheckStatic(shell); err == nil || !strings.Contains(err.Error(), "/ld-") || !strings.Contains(err.Error(), "CGO_ENABLED=0") {
		t.Errorf("a program that needs a loader: %v", err)
	}
}
