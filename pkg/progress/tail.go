package progress

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"assay/pkg/phrase"
	"assay/pkg/regular"
)

// tail follows one log file of a rank.
type tail struct {
	label  string
	path   string
	offset int64
	rest   []byte // an incomplete last line
}

// maxTailRead bounds what one look reads of a file, so that a rank that writes a
// lot does not hold up the others.
const maxTailRead = 1 << 20

// maxTailLine bounds the line that is kept while its end has not come.
const maxTailLine = 64 << 10

// tailAll prints what the ranks of the active jobs have written since.
func (p *Printer) tailAll() {
	for _, j := range p.jobs {
		for _, t := range j.tails {
			p.tailLines(t, t.read())
		}
	}
}

// tailRest prints all that the ranks of a job that has ended still left, the last
// line with or without its end.
func (p *Printer) tailRest(j *jobLine) {
	for _, t := range j.tails {
		for offset := int64(-1); t.offset != offset; {
			offset = t.offset
			p.tailLines(t, t.read())
		}
		if len(t.rest) > 0 {
			p.tailLines(t, []string{string(t.rest)})
		}
	}
}

func (p *Printer) tailLines(t *tail, lines []string) {
	for _, line := range lines {
		fmt.Fprintf(p.opt.Out, "[%s] %s\n", phrase.Line(t.label), phrase.Clean(line))
	}
}

// read returns the lines that were added.
func (t *tail) read() []string {
	f, err := regular.Open(t.path)
	if err != nil {
		return nil
	}
	defer f.Close()
	data, err := io.ReadAll(io.NewSectionReader(f, t.offset, maxTailRead))
	if err != nil || len(data) == 0 {
		return nil
	}
	t.offset += int64(len(data))
	t.rest = append(t.rest, data...)
	var lines []string
	for {
		i := bytes.IndexByte(t.rest, '\n')
		if i < 0 && len(t.rest) > maxTailLine {
			i = len(t.rest) - 1
		}
		if i < 0 {
			return lines
		}
		lines = append(lines, strings.TrimRight(string(t.rest[:i]), "\r"))
		t.rest = t.rest[i+1:]
	}
}
