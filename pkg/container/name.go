package container

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// The labels of our containers.
const (
	LabelRun     = "assay.run"
	LabelNonce   = "assay.nonce"
	LabelJob     = "assay.job"
	LabelAttempt = "assay.attempt"
	LabelRank    = "assay.rank"
	LabelDir     = "assay.dir"     // absolute attempt directory
	LabelHost    = "assay.host"    // where the process that watches it runs
	LabelWrapper = "assay.wrapper" // that process: pid, start and boot, as WrapperID writes them
	LabelKeep    = "assay.keep"    // "true" when it is to stay
)

// nonceInName is how much of the nonce a name carries, and jobInName the longest id
// of a job that is not cut, in bytes.
const (
	nonceInName = 12
	jobInName   = 64
)

// Name is the name of the container of a rank. It is different for every run, job,
// attempt and rank.
func Name(nonce, job string, attempt, rank int) string {
	return fmt.Sprintf("assay-%s-%s-%d-%d", sanitise(nonce[:min(len(nonce), nonceInName)]), sanitise(job), attempt, rank)
}

// sanitise makes a text fit for a name. What had to change gets a part of its hash,
// so that two texts stay two.
func sanitise(text string) string {
	out := strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '_', r == '.', r == '-':
			return r
		}
		return '-'
	}, text)
	if len(out) > jobInName {
		out = out[:jobInName]
	}
	if out != text {
		sum := sha256.Sum256([]byte(text))
		out += "." + hex.EncodeToString(sum[:4])
	}
	return out
}

// WrapperID names a process of this machine for good: pid, start in clock ticks after
// boot, id of the boot.
func WrapperID(pid int, start uint64, boot string) string {
	return fmt.Sprintf("%d/%d/%s", pid, start, boot)
}

// ParseWrapperID reads what WrapperID wrote.
func ParseWrapperID(text string) (pid int, start uint64, boot string, ok bool) {
	parts := strings.SplitN(text, "/", 3)
	if len(parts) != 3 {
		return 0, 0, "", false
	}
	pid, perr := strconv.Atoi(parts[0])
	start, serr := strconv.ParseUint(parts[1], 10, 64)
	return pid, start, parts[2], perr == nil && serr == nil
}

// HowToEnter says how to enter a container that was kept, and how to remove it.
func HowToEnter(engine, name string) string {
	return fmt.Sprintf("the container is kept; enter it with: %[1]s exec -it %[2]s sh; remove it with: %[1]s rm -f %[2]s", engine, name)
}
