package rank

import (
	"fmt"
	"os"
	"syscall"
)

// guardVariable is the variable by which the guard knows the rank's processes:
// its value is different for every attempt of every rank.
const guardVariable = "ASSAY_RESULTS_DIR"

// guardScript waits for the end of its input. A line means that all is well. No
// line means that the wrapper died without a word, killed or out of memory: then
// whatever carries the rank's mark in its environment, or has one of the rank's
// pipes for its output, is killed, so that no orphan holds a GPU. A process that
// gave up both is not found.
const guardScript = `trap "" HUP INT TERM
read -r word && exit 0
mark=$1
shift
round=0
while [ $round -lt 20 ]; do
  round=$((round + 1))
  found=
  for file in $(
    grep -lszxF -e "$mark" /proc/[0-9]*/environ
    ls -l /proc/[0-9]*/fd/[12] 2>/dev/null | grep -F "$@" | sed 's|.*\(/proc/[0-9]*/fd/\).*|\1|'
  ); do
    pid=${file#/proc/}
    pid=${pid%%/*}
    kill -KILL "$pid" 2>/dev/null && found=1
  done
  [ -n "$found" ] || exit 0
done
`

// guard outlives the wrapper when that is killed.
type guard struct {
	in    *os.File
	child *child
}

// startGuard starts the guard, or returns nil where there is no shell: then the
// kernel still kills the workload's main process.
func startGuard(t *tree, results string, outputs ...*output) *guard {
	r, w, err := os.Pipe()
	if err != nil {
		return nil
	}
	defer r.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		_ = w.Close()
		return nil
	}
	defer null.Close()
	argv := []string{"assay-guard", "-c", guardScript, "assay-guard", guardVariable + "=" + results}
	for _, o := range outputs {
		argv = append(argv, o.pipes()...)
	}
	c, err := t.startHidden("/bin/sh", argv, &os.ProcAttr{
		Dir: "/", Env: []string{"PATH=/usr/bin:/bin"}, Files: []*os.File{r, null, null},
	})
	if err != nil {
		_ = w.Close()
		return nil
	}
	return &guard{in: w, child: c}
}

// dismiss tells the guard that all is well.
func (g *guard) dismiss() {
	if g == nil {
		return
	}
	_, _ = g.in.WriteString("done\n")
	_ = g.in.Close()
}

// pipes names the pipes of a log for grep, as /proc shows them.
func (o *output) pipes() []string {
	var out []string
	for _, s := range []*stream{o.workload, o.steps} {
		if info, err := s.w.Stat(); err == nil {
			if st, ok := info.Sys().(*syscall.Stat_t); ok {
				out = append(out, "-e", fmt.Sprintf("-> pipe:[%d]", st.Ino))
			}
		}
	}
	return out
}
