package regular

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestReadFile(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := os.WriteFile(at("file"), []byte("four"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(syscall.Mkfifo(at("pipe"), 0o600), os.Symlink(at("file"), at("link")), os.Symlink(at("pipe"), at("link to pipe"))); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		path  string
		limit int64
		want  error
	}{
		{at("file"), 4, nil},
		{at("link"), 100, nil},
		{at("file"), 3, ErrTooLarge},
		{at("none"), 4, fs.ErrNotExist},
		{at("pipe"), 4, ErrNotRegular},
		{at("link to pipe"), 4, ErrNotRegular},
		{dir, 4, ErrNotRegular},
		{os.DevNull, 4, ErrNotRegular},
	} {
		data, err := ReadFile(tt.path, tt.limit)
		if !errors.Is(err, tt.want) || (err == nil && string(data) != "four") {
			t.Errorf("%s: read %q, %v; want %v", tt.path, data, err, tt.want)
		}
		if err != nil && !strings.Contains(err.Error(), tt.path) {
			t.Errorf("%v does not name the file", err)
		}
	}
}
