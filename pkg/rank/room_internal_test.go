package rank

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func TestInsist(t *testing.T) {
	full := fmt.Errorf("write: %w", syscall.ENOSPC)
	for _, tt := range []struct {
		name      string
		fails     int
		err, want error
		made      int
		at        time.Duration // not over before
	}{
		{"works", 0, nil, nil, 0, 0},
		{"room made", 1, full, nil, 1, 0},
		{"room comes", 10, full, nil, 2, time.Second},
		{"no room", 1 << 30, full, syscall.ENOSPC, 2, 8 * time.Second},
		{"another error", 1 << 30, os.ErrPermission, os.ErrPermission, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				made, tries, began := 0, 0, time.Now()
				err := insist(func() error {
					if tries++; tries <= tt.fails {
						return tt.err
					}
					return nil
				}, func() { made++ }, 10*time.Second)
				if !errors.Is(err, tt.want) || made != tt.made {
					t.Errorf("error %v, room made %d times", err, made)
				}
				if took := time.Since(began); took < tt.at || took > 10*time.Second {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}

// Where the filesystem sets nothing aside by itself, bytes are written.
func TestSetAsideByWriting(t *testing.T) {
	if os.Geteuid() != 0 {
		if os.Getenv("CI") == "true" {
			t.Fatal("mounting a ramfs needs root")
		}
		t.Skip("mounting a ramfs needs root")
	}
	dir := t.TempDir()
	if err := syscall.Mount("ramfs", dir, "ramfs", 0, ""); err != nil {
		t.Fatalf("mount ramfs: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	path := filepath.Join(dir, reserveFile)
	if err := setAside(path); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Size() != reserveSize {
		t.Errorf("%v, %v", info, err)
	}
}
