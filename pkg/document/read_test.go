package document_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"assay/pkg/document"
)

func TestRead(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := os.WriteFile(at("plain"), []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(at("fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", at("socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	big, err := os.Create(at("big"))
	if err != nil {
		t.Fatal(err)
	}
	if err := big.Truncate(document.MaxSize + 1); err != nil { // sparse
		t.Fatal(err)
	}
	if err := big.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(at("secret"), nil, 0); err != nil {
		t.Fatal(err)
	}
	if data, err := document.Read(at("plain")); err != nil || string(data) != "hello" {
		t.Errorf("plain: %q, %v", data, err)
	}
	for name, want := range map[string]string{
		"":         "is a directory, not a file",
		"fifo":     "is a FIFO, not a file",
		"socket":   "cannot be read: no such device or address",
		"big":      "the file has 256 MiB; at most 256 MiB are read",
		"missing":  "cannot be read: no such file or directory",
		"plain/x":  "cannot be read: not a directory",
		"secret":   "cannot be read: permission denied",
		"a\x00b":   "cannot be read: invalid argument",
		"dangling": "cannot be read: no such file or directory",
	} {
		if name == "secret" && os.Geteuid() == 0 {
			continue // root reads everything
		}
		_, err := document.Read(at(name))
		if err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%q: %v, want … %s", name, err, want)
		}
	}
	if _, err := document.Read("/dev/zero"); err == nil || err.Error() != "/dev/zero is a device, not a file" {
		t.Errorf("/dev/zero: %v", err)
	}
}
