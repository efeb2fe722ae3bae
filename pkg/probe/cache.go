package probe

import (
	"fmt"
	"io/fs"
	"math"
	"path"
	"strconv"
	"strings"
)

// lastLevelCache sums the last-level caches that the CPUs use, in bytes. A cache
// that several of them share counts once. It is 0 when the system does not say,
// as in some virtual machines. root is the root of the file system.
func lastLevelCache(root fs.FS, cpus []int) int64 {
	seen := map[string]bool{}
	var total int64
	for _, cpu := range cpus {
		id, size := cpuLastLevel(root, cpu)
		if size > 0 && !seen[id] {
			seen[id] = true
			total += size
		}
	}
	return total
}

// cpuLastLevel finds the highest data cache of one CPU: what tells it from other
// caches, and its size.
func cpuLastLevel(root fs.FS, cpu int) (id string, size int64) {
	pattern := fmt.Sprintf("sys/devices/system/cpu/cpu%d/cache/index*", cpu)
	dirs, _ := fs.Glob(root, pattern) // the pattern is well-formed
	best := 0
	for _, dir := range dirs {
		if readWord(root, path.Join(dir, "type")) == "Instruction" {
			continue
		}
		level, err := strconv.Atoi(readWord(root, path.Join(dir, "level")))
		bytes, sizeErr := ParseSize(readWord(root, path.Join(dir, "size")) + "iB") // the kernel writes "32768K"
		if err != nil || sizeErr != nil || level <= best {
			continue
		}
		best, size = level, bytes
		id = fmt.Sprintf("%d:%s", level, readWord(root, path.Join(dir, "shared_cpu_list")))
	}
	return id, size
}

// availableMemory is the number of bytes that can be allocated without swapping
// or meeting the memory limit of a cgroup; 0 when the system does not say.
func availableMemory(root fs.FS) int64 {
	available := int64(math.MaxInt64)
	meminfo, _ := fs.ReadFile(root, "proc/meminfo")
	for line := range strings.Lines(string(meminfo)) {
		if rest, ok := strings.CutPrefix(line, "MemAvailable:"); ok {
			if kib, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64); err == nil {
				available = kib << 10
			}
		}
	}
	groups, _ := fs.ReadFile(root, "proc/self/cgroup")
	for line := range strings.Lines(string(groups)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) != 3 {
			continue
		}
		switch fields[1] {
		case "": // version 2
			available = min(available, groupHeadroom(root, "sys/fs/cgroup", fields[2], "memory.max", "memory.current"))
		case "memory": // version 1
			available = min(available, groupHeadroom(root, "sys/fs/cgroup/memory", fields[2], "memory.limit_in_bytes", "memory.usage_in_bytes"))
		}
	}
	if available == math.MaxInt64 {
		return 0
	}
	return available
}

// groupHeadroom is what a cgroup and all groups above it leave to be allocated.
func groupHeadroom(root fs.FS, mount, group, limitFile, usageFile string) int64 {
	headroom := int64(math.MaxInt64)
	for dir := path.Join("/", group); ; dir = path.Dir(dir) {
		at := path.Join(mount, dir)
		limit, err1 := strconv.ParseInt(readWord(root, path.Join(at, limitFile)), 10, 64) // "max" is no number: no limit
		usage, err2 := strconv.ParseInt(readWord(root, path.Join(at, usageFile)), 10, 64)
		if err1 == nil && err2 == nil {
			headroom = min(headroom, max(limit-usage, 0))
		}
		if dir == "/" {
			return headroom
		}
	}
}

// readWord reads a small file of the kernel; a file that cannot be read is empty.
func readWord(root fs.FS, name string) string {
	data, err := fs.ReadFile(root, name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}
