package rank_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"assay/pkg/evidence"
	"assay/pkg/metric"
	"assay/pkg/rundir"
)

func TestLongAndBinaryOutput(t *testing.T) {
	f := newFixture(t, `head -c 10485760 /dev/zero; echo; echo 'performance: 5 x'; head -c 1000 /dev/urandom; printf '\n\r\nperformance: 6 y'`)
	_, end := f.run()
	info, err := os.Stat(filepath.Join(f.dir(), "stdout"))
	if err != nil {
		t.Fatal(err)
	}
	if want := int64(10485760 + 1 + 18 + 1000 + 4 + 16 - 1); end.Stdout.Bytes != info.Size() || info.Size() < want-2 || info.Size() > want+2 {
		t.Errorf("kept %d, counted %d, want about %d", info.Size(), end.Stdout.Bytes, want)
	}
	if got := len(f.metrics().Readings); got != 2 {
		t.Errorf("%d readings, want both", got)
	}
}

func TestMuchOutput(t *testing.T) {
	f := newFixture(t, `yes 'loss=0.25 step 7 of 1000 throughput is fine' | head -c 209715200; echo; echo 'performance: 5 x'`)
	f.attempt.Job.Expect.Metrics = []metric.Spec{{Name: "busGbps"}}
	cmd := f.command()
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	if end := f.end(); end.Stdout.Bytes != 209715200+18 || end.Stdout.Dropped != 0 || !end.Metrics {
		t.Errorf("end %+v", end)
	}
	if use, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok && use.Maxrss > 150<<10 {
		t.Errorf("the wrapper took %d MiB", use.Maxrss>>10)
	}
	if err := os.Remove(filepath.Join(f.dir(), "stdout")); err != nil {
		t.Fatal(err)
	}
}

func TestLogLimit(t *testing.T) {
	f := newFixture(t, `seq 1 20000; seq 1 5 >&2`)
	f.attempt.LogLimit = 1000
	_, end := f.run()
	whole := strings.Builder{}
	for i := range 20000 {
		fmt.Fprintln(&whole, i+1)
	}
	all, got := whole.String(), f.read("stdout")
	m := regexp.MustCompile(`(?s)^(.*?)\n?\[assay: (\d+) bytes cut here\]\n(.*)$`).FindStringSubmatch(got)
	if m == nil {
		t.Fatalf("no cut is stated in %q", got)
	}
	if !strings.HasPrefix(all, m[1]) || !strings.HasSuffix(all, m[3]) || len(m[1])+len(m[3]) < 999 {
		t.Errorf("head and tail are not kept: %d and %d bytes", len(m[1]), len(m[3]))
	}
	if dropped := fmt.Sprint(end.Stdout.Dropped); m[2] != dropped || end.Stdout.Bytes != int64(len(all)) || end.Stdout.Bytes-end.Stdout.Dropped != 1000 {
		t.Errorf("cut says %s, end marker %+v of %d", m[2], end.Stdout, len(all))
	}
	if f.read("stderr") != "1\n2\n3\n4\n5\n" || end.Stderr.Dropped != 0 {
		t.Errorf("stderr is %q", f.read("stderr"))
	}
	if left, _ := filepath.Glob(filepath.Join(f.dir(), ".stdout.tail*")); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
}

// A full disk costs log, never the workload or its end marker.
func TestDiskFull(t *testing.T) {
	mount := smallDisk(t, "2m")
	f := newFixture(t, `head -c 8388608 /dev/zero; echo; echo 'performance: 5 x'; exit 3`)
	f.attempt.Dir = rundir.AttemptDir(mount, "job", 1)
	exit, end := f.run()
	if exit != 3 || end.Outcome != evidence.OutcomeExited {
		t.Errorf("exit %d, outcome %v, want the workload's 3", exit, end.Outcome)
	}
	if !strings.Contains(end.Lost, "no space left") || end.Stdout.Dropped == 0 || end.Stdout.Bytes != 8388608+18 {
		t.Errorf("the loss is not stated: %q %+v", end.Lost, end.Stdout)
	}
	if !end.Metrics || len(f.metrics().Readings) != 1 {
		t.Error("the reading is lost")
	}
}

// The workload itself fills the disk to the last byte.
func TestDiskFilledByTheWorkload(t *testing.T) {
	mount := smallDisk(t, "2m")
	f := newFixture(t, `echo 'performance: 5 x'; head -c 99999999 /dev/zero > fill; for i in $(seq 500); do echo x > f$i; done 2>/dev/null; echo out; exit 0`)
	f.attempt.Dir = rundir.AttemptDir(mount, "job", 1)
	exit, end := f.run()
	if exit != 0 || end.Outcome != evidence.OutcomeExited || !end.Metrics {
		t.Errorf("exit %d, end %+v", exit, end)
	}
}

// A disk without room for what the rank must say is no place to start it.
func TestNoRoomToStart(t *testing.T) {
	for _, left := range []int64{0, 24 << 10, 60 << 10} {
		mount := smallDisk(t, "2m")
		f := newFixture(t, `echo ran > "$MODEL_DIR/ran"`)
		f.attempt.Job.Env = map[string]string{"MODEL_DIR": f.model}
		f.attempt.Dir = rundir.AttemptDir(mount, "job", 1)
		cmd := f.command()
		fill(t, mount, left)
		exit := exitCode(t, cmd.Run())
		if _, err := os.Stat(filepath.Join(f.model, "ran")); err == nil || exit != 6 {
			t.Errorf("%d bytes left: exit %d, the workload ran: %v", left, exit, err == nil)
		}
		if left == 0 {
			continue
		}
		if end := f.end(); end.Outcome != evidence.OutcomeRefused || end.Code != "LAUNCH_REFUSED" || !strings.Contains(end.Message, "no room") {
			t.Errorf("%d bytes left: %+v", left, end)
		}
	}
}

// fill leaves so many bytes of a disk free.
func fill(t *testing.T, mount string, left int64) {
	t.Helper()
	var st syscall.Statfs_t
	if err := syscall.Statfs(mount, &st); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(mount, "fill"), make([]byte, int64(st.Bavail)*st.Bsize-left), 0o600); err != nil {
		t.Fatal(err)
	}
}

func smallDisk(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	if os.Geteuid() != 0 {
		if os.Getenv("CI") == "true" {
			t.Fatal("mounting a small disk needs root")
		}
		t.Skip("mounting a small disk needs root")
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Fatalf("mount tmpfs: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	return dir
}

// A process outside the tree that holds the pipes does not hold up the end. It
// gets them from a server that hands descriptors out.
func TestPipeHeldFromOutside(t *testing.T) {
	t.Parallel()
	f := newFixture(t, `echo $$ > "$MODEL_DIR/pid"; while [ ! -e "$MODEL_DIR/held" ]; do sleep 0.01; done; echo out`)
	f.attempt.Job.Env = map[string]string{"MODEL_DIR": f.model}
	cmd := f.command()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := waitFor(t, filepath.Join(f.model, "pid"))
	held, err := os.OpenFile("/proc/"+pid+"/fd/1", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	f.file("held", "", 0o600)
	if exit := exitCode(t, cmd.Wait()); exit != 0 {
		t.Errorf("exited %d", exit)
	}
	if got := f.read("stdout"); !bytes.Equal([]byte(got), []byte("out\n")) {
		t.Errorf("stdout is %q", got)
	}
}

// What follows the last line end of a stream may be half of a line.
func TestReadingWithoutALineEnd(t *testing.T) {
	f := newFixture(t, `echo performance: 1 x; printf 'performance: 2 y'; printf 'performance: 3 z' >&2; kill -9 $$`)
	f.run()
	got := map[string]bool{}
	for _, r := range f.metrics().Readings {
		got[r.Name] = r.Unended
	}
	if len(got) != 3 || got["x"] || !got["y"] || !got["z"] {
		t.Errorf("%+v", f.metrics())
	}
}
