package rank

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
)

// procNet is where the kernel lists the sockets of the network namespace of this
// process.
const procNet = "/proc/net"

// stateListen is the state of a socket that listens, as the kernel writes it.
const stateListen = "0A"

// listening are the sockets that listen on a port at any address of this machine, by
// their inodes. It is read and not tried: to connect would take from the server the
// one connection that it may be made for.
func listening(dir string, port int) map[string]bool {
	var found map[string]bool
	suffix := fmt.Appendf(nil, ":%04X", port)
	for _, table := range []string{"tcp", "tcp6"} {
		f, err := os.Open(filepath.Join(dir, table))
		if err != nil {
			continue // the kernel has no such protocol
		}
		for lines := bufio.NewScanner(f); lines.Scan(); {
			if !bytes.Contains(lines.Bytes(), suffix) { // most of them
				continue
			}
			// sl local_address rem_address st tx:rx tr:when retrnsmt uid timeout inode
			fields := bytes.Fields(lines.Bytes())
			if len(fields) < 10 || !bytes.HasSuffix(fields[1], suffix) || string(fields[3]) != stateListen {
				continue
			}
			if found == nil {
				found = map[string]bool{}
			}
			found[string(fields[9])] = true
		}
		_ = f.Close()
	}
	return found
}
