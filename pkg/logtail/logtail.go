// Package logtail reads the last lines of a log file without reading the rest.
package logtail

import (
	"bytes"
	"io"

	"assay/pkg/regular"
)

// window is how much of the end of a file is looked at: enough for any number of
// lines that a person reads.
const window = 64 << 10

// Last returns the last n lines of a file, at most 64 KiB of them, and whether
// there are more before them. A file that is missing or empty has none.
func Last(path string, n int) (lines []string, more bool) {
	f, err := regular.Open(path)
	if err != nil {
		return nil, false
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, false
	}
	offset := max(0, info.Size()-window)
	data, err := io.ReadAll(io.NewSectionReader(f, offset, window))
	if err != nil {
		return nil, false
	}
	if offset > 0 {
		// The first line is cut somewhere.
		if _, rest, found := bytes.Cut(data, []byte{'\n'}); found {
			data = rest
		}
	}
	lines, more = lastLines(data, n)
	return lines, more || offset > 0
}

func lastLines(data []byte, n int) (last []string, more bool) {
	data = bytes.TrimRight(data, "\n")
	if len(data) == 0 || n <= 0 {
		return nil, len(data) > 0
	}
	lines := bytes.Split(data, []byte{'\n'})
	kept := lines[max(0, len(lines)-n):]
	for _, l := range kept {
		last = append(last, string(bytes.TrimSuffix(l, []byte{'\r'})))
	}
	return last, len(kept) < len(lines)
}
