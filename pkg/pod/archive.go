package pod

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
)

// MaxArchive is how much of the files of a rank goes into the log of its pod, in
// bytes, before they are compressed.
const MaxArchive = 16 << 20

// The names of what is in an archive beside results.
const (
	manifestName  = "manifest.json"
	resultsPrefix = "results/"
	maxNames      = 1000 // of files that are named as omitted
	noteRoom      = 64   // for the line in a log that says what is cut, in bytes
)

// File is a file of the directory of a rank.
type File struct {
	Name string // below that directory, with slashes
	Size int64  // in bytes
	Data io.ReaderAt
}

// Omitted is a file, or a part of one, that an archive does not have.
type Omitted struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"` // that are not there
	Why   string `json:"why"`
}

// String says it for people.
func (o Omitted) String() string {
	return fmt.Sprintf("%s (%d bytes): %s", o.Name, o.Bytes, o.Why)
}

// contents is the manifest of an archive.
type contents struct {
	Version int       `json:"version"`
	Omitted []Omitted `json:"omitted,omitempty"`
}

// rank of importance of the files that an archive may hold; -1 for all others.
func importance(name string) int {
	order := []string{"end.json", "begin.json", "metrics.json", resultsPrefix, "assay.log", "stdout", "stderr"}
	if local, ok := strings.CutPrefix(name, resultsPrefix); ok {
		if len(name) > 4096 || local == "." || !fs.ValidPath(local) || strings.ContainsAny(local, "\\\x00") {
			return -1
		}
		return slices.Index(order, resultsPrefix)
	}
	return slices.Index(order, name)
}

// logs are files of which a part is better than nothing.
func isLog(name string) bool { return importance(name) > importance(resultsPrefix+"x") }

// part is a file in an archive: its beginning, a line that says what is cut, and
// its end.
type part struct {
	File
	head, tail int64
	note       string
}

// pack writes files as a compressed archive: records first, then results, then
// logs, as much as fits into limit bytes. Omitted is what is known not to be there.
func pack(to io.Writer, files []File, omitted []Omitted, limit int64) error {
	parts, omitted := choose(files, omitted, limit)
	z := gzip.NewWriter(to)
	t := tar.NewWriter(z)
	list := marshal(contents{Version: 1, Omitted: bounded(omitted)})
	if err := errors.Join(t.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: manifestName, Mode: 0o600, Size: int64(len(list))}), write(t, list)); err != nil {
		return err
	}
	for _, p := range parts {
		if err := p.write(t); err != nil {
			return fmt.Errorf("%s: %w", p.Name, err)
		}
	}
	return errors.Join(t.Close(), z.Close())
}

func write(to io.Writer, p []byte) error {
	_, err := to.Write(p)
	return err
}

func (p part) write(t *tar.Writer) error {
	err := t.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: p.Name, Mode: 0o600, Size: p.head + int64(len(p.note)) + p.tail})
	if err != nil {
		return err
	}
	for _, r := range []io.Reader{
		io.NewSectionReader(p.Data, 0, p.head), strings.NewReader(p.note), io.NewSectionReader(p.Data, p.Size-p.tail, p.tail),
	} {
		if _, err := io.Copy(t, r); err != nil {
			return err
		}
	}
	return t.Flush() // fails when the file has become shorter
}

// choose says what of the files fits.
func choose(files []File, omitted []Omitted, limit int64) ([]part, []Omitted) {
	files = slices.Clone(files)
	slices.SortStableFunc(files, func(a, b File) int { return importance(a.Name) - importance(b.Name) })
	var parts []part
	var logs []File
	for _, f := range files {
		switch {
		case importance(f.Name) < 0:
			omitted = append(omitted, Omitted{f.Name, f.Size, "its name is none that an archive can hold"})
		case isLog(f.Name):
			logs = append(logs, f)
		case f.Size > limit:
			omitted = append(omitted, Omitted{f.Name, f.Size, fmt.Sprintf("an archive holds %d MiB", MaxArchive>>20)})
		default:
			limit -= f.Size
			parts = append(parts, part{File: f, head: f.Size})
		}
	}
	slices.SortStableFunc(logs, func(a, b File) int { return int(min(max(a.Size-b.Size, -1), 1)) })
	for i, f := range logs {
		share := limit / int64(len(logs)-i)
		p := part{File: f, head: f.Size}
		if f.Size > share {
			share = max(share-noteRoom, 0)
			p.head, p.tail = share-share/2, share/2
			p.note = fmt.Sprintf("\n[assay: %d bytes cut here]\n", f.Size-share)
			omitted = append(omitted, Omitted{f.Name, f.Size - share, "only its beginning and its end fit"})
		}
		limit = max(limit-p.head-p.tail-int64(len(p.note)), 0)
		parts = append(parts, p)
	}
	return parts, omitted
}

// bounded keeps the list of what is missing short.
func bounded(omitted []Omitted) []Omitted {
	if len(omitted) <= maxNames {
		return omitted
	}
	rest := Omitted{Name: "…", Why: fmt.Sprintf("%d more", len(omitted)-maxNames)}
	for _, o := range omitted[maxNames:] {
		rest.Bytes += o.Bytes
	}
	return append(slices.Clone(omitted[:maxNames]), rest)
}
