package probe

import (
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"assay/pkg/exitcode"
)

// cpuLimit bounds a CPU number: unix.CPUSet holds this many.
const cpuLimit = 1024

// ParseCPUs reads a CPU list in the kernel's notation, such as "0-3,8". The
// result is sorted and free of duplicates; an empty text is an empty list, which
// stands for all CPUs. A malformed list is an error of kind Invalid.
func ParseCPUs(s string) ([]int, error) {
	var cpus []int
	if strings.TrimSpace(s) == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(s, ",") {
		first, last, isRange := strings.Cut(strings.TrimSpace(part), "-")
		if !isRange {
			last = first
		}
		lo, err1 := strconv.ParseUint(first, 10, 31)
		hi, err2 := strconv.ParseUint(last, 10, 31)
		if err1 != nil || err2 != nil || lo > hi || hi >= cpuLimit {
			return nil, exitcode.Errorf(exitcode.Invalid,
				"%q in the CPU list %q is neither a CPU number below %d nor a range such as 0-3", part, s, cpuLimit)
		}
		for cpu := lo; cpu <= hi; cpu++ {
			cpus = append(cpus, int(cpu))
		}
	}
	slices.Sort(cpus)
	return slices.Compact(cpus), nil
}

// formatCPUs writes a sorted CPU list in the kernel's notation.
func formatCPUs(cpus []int) string {
	var parts []string
	for i := 0; i < len(cpus); {
		j := i
		for j+1 < len(cpus) && cpus[j+1] == cpus[j]+1 {
			j++
		}
		if i == j {
			parts = append(parts, strconv.Itoa(cpus[i]))
		} else {
			parts = append(parts, fmt.Sprintf("%d-%d", cpus[i], cpus[j]))
		}
		i = j + 1
	}
	return strings.Join(parts, ",")
}

// allowedCPUs lists the CPUs this process may run on.
func allowedCPUs() ([]int, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, exitcode.Errorf(exitcode.Error, "the CPUs this process may use cannot be read: %w", err)
	}
	var cpus []int
	for cpu := range cpuLimit {
		if set.IsSet(cpu) {
			cpus = append(cpus, cpu)
		}
	}
	return cpus, nil
}

// chooseCPUs checks the wanted CPUs against the allowed ones. With none wanted it
// takes all of them, but no more than the CPU quota of the cgroup lets run at the
// same time: a worker that waits for quota would be timed as slow memory.
func chooseCPUs(wanted, allowed []int) ([]int, error) {
	if len(wanted) == 0 {
		return allowed[:min(len(allowed), runtime.GOMAXPROCS(0))], nil
	}
	for _, cpu := range wanted {
		if !slices.Contains(allowed, cpu) {
			return nil, exitcode.Errorf(exitcode.Invalid,
				"CPU %d is not among the CPUs this process may use (%s): choose from those", cpu, formatCPUs(allowed))
		}
	}
	wanted = slices.Clone(wanted)
	slices.Sort(wanted)
	return slices.Compact(wanted), nil
}

// pin binds the calling goroutine to one CPU until it ends. The goroutine must
// not unlock its thread: the runtime then ends the thread with it, so that no
// other goroutine inherits the binding.
func pin(cpu int) error {
	runtime.LockOSThread()
	var set unix.CPUSet
	set.Set(cpu)
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return exitcode.Errorf(exitcode.Error, "a thread cannot be bound to CPU %d: %w", cpu, err)
	}
	return nil
}
