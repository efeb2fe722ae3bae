package rundir_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"assay/pkg/rundir"
)

// Whether a run is driven can be seen by who looks, which keeps nobody from driving it.
func TestDriven(t *testing.T) {
	dir := t.TempDir()
	r := &rundir.Run{Dir: dir}
	check := func(when string, want bool) {
		t.Helper()
		if got, err := rundir.Driven(dir); got != want || err != nil {
			t.Errorf("%s: driven %v, %v", when, got, err)
		}
	}
	check("never driven", false)
	unlock, err := r.Lock()
	if err != nil {
		t.Fatal(err)
	}
	check("driven", true)
	unlock()
	check("driven no more", false)

	looks, err := os.Open(filepath.Join(dir, rundir.LockFile))
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Flock(int(looks.Fd()), unix.LOCK_SH); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		go func() {
			time.Sleep(15 * time.Millisecond)
			_ = looks.Close()
		}()
		unlock, err := r.Lock()
		if err != nil {
			t.Fatalf("somebody looked for a moment: %v", err)
		}
		defer unlock()
		if _, err := r.Lock(); !errors.Is(err, rundir.ErrLocked) {
			t.Errorf("driven by another: %v", err)
		}
	})
}
