package rank

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// siginfoPID reads si_pid of a siginfo_t that waitid filled. The fields after
// the three leading ints begin at the next multiple of the size of a pointer.
func siginfoPID(info *unix.Siginfo) int {
	const offset = (3*4 + unsafe.Sizeof(uintptr(0)) - 1) / unsafe.Sizeof(uintptr(0)) * unsafe.Sizeof(uintptr(0))
	return int(*(*int32)(unsafe.Add(unsafe.Pointer(info), offset)))
}
