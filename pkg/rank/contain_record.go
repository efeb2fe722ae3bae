package rank

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"assay/pkg/durable"
	"assay/pkg/evidence"
	"assay/pkg/regular"
	"assay/pkg/rundir"
)

// ranOutOfMemory begins what is said of a rank whose container did.
const ranOutOfMemory = "the container ran out of memory"

// outOfMemory says so, with the limit in bytes; 0: not known.
func outOfMemory(limit int64) string {
	switch {
	case limit <= 0:
		return ranOutOfMemory
	case limit%(1<<20) == 0:
		return fmt.Sprintf("%s (limit %d MiB)", ranOutOfMemory, limit>>20)
	}
	return fmt.Sprintf("%s (limit %d bytes)", ranOutOfMemory, limit)
}

// readEnd reads the end marker of this rank of this attempt.
func (c *outer) readEnd() (evidence.End, bool) {
	var end evidence.End
	ok := c.read(rundir.EndFile, &end) && end.Identity == c.a.Identity(c.o.Rank)
	return end, ok
}

func (c *outer) readBegin() (evidence.Begin, bool) {
	var b evidence.Begin
	ok := c.read(rundir.BeginFile, &b) && b.Identity == c.a.Identity(c.o.Rank)
	return b, ok
}

func (c *outer) read(name string, into any) bool {
	data, err := regular.ReadFile(filepath.Join(rundir.RankDir(c.a.Dir, c.o.Rank), name), maxMarker)
	return err == nil && json.Unmarshal(data, into) == nil
}

// write writes the end marker, as shared as the directory of the rank is.
func (c *outer) write(end evidence.End) error {
	dir, mode := rundir.RankDir(c.a.Dir, c.o.Rank), os.FileMode(0o600)
	if info, err := os.Stat(dir); err == nil {
		mode |= info.Mode().Perm() & 0o060
	}
	return durable.WriteJSON(filepath.Join(dir, rundir.EndFile), end, mode)
}

// linger stays after the end of the rank, until the wrapper is told to stop.
func (w *wrapper) linger(ctx context.Context) {
	if !w.options.Linger {
		return
	}
	select {
	case <-w.options.Signals:
	case <-ctx.Done():
	}
}

// memory is the account that the kernel keeps of the memory of this container.
type memory struct {
	kills int64 // processes that it killed for want of memory
	limit int64 // bytes; 0: none, or not known
}

// readMemory reads the account of the control group that this process sees as the
// root: of a container it is the container's own.
func readMemory(root string) memory {
	if kills, ok := field(filepath.Join(root, "memory.events"), "oom_kill"); ok {
		return memory{kills, number(filepath.Join(root, "memory.max"))}
	}
	kills, _ := field(filepath.Join(root, "memory", "memory.oom_control"), "oom_kill")
	return memory{kills, number(filepath.Join(root, "memory", "memory.limit_in_bytes"))}
}

// field reads a line "name value".
func field(path, name string) (int64, bool) {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(data)) {
		if key, value, _ := strings.Cut(strings.TrimSpace(line), " "); key == name {
			n, err := strconv.ParseInt(value, 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}

// unlimited is what a group without a limit has, or more.
const unlimited = 1 << 60

func number(path string) int64 {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
	if err != nil || n >= unlimited {
		return 0
	}
	return n
}

// cgroups is where the kernel shows control groups.
const cgroups = "/sys/fs/cgroup"

// noteMemory says when a process of the rank was killed for want of memory.
func (w *wrapper) noteMemory(before memory) {
	if !w.options.Contained {
		return
	}
	if now := readMemory(cgroups); now.kills > before.kills {
		w.end.Message = sentence(w.end.Message, outOfMemory(now.limit))
		w.note("%s", w.end.Message)
	}
}
