package pod

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// unpack reads an archive: the files in it, and what its sender left out. Names are
// end.json, begin.json, metrics.json, assay.log, stdout, stderr, and local paths
// below results/.
func unpack(archive []byte) (map[string][]byte, []Omitted, error) {
	z, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return nil, nil, fmt.Errorf("the rank's files cannot be read: %w", err)
	}
	var list contents
	files := map[string][]byte{}
	room := int64(MaxArchive + 4<<20) // the manifest and the lines in cut logs come on top
	for t := tar.NewReader(io.LimitReader(z, 4*MaxArchive)); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return files, list.Omitted, nil
		}
		if err != nil {
			return nil, nil, fmt.Errorf("the rank's files cannot be read: %w", err)
		}
		if h.Typeflag != tar.TypeReg || files[h.Name] != nil || (h.Name != manifestName && importance(h.Name) < 0) {
			return nil, nil, fmt.Errorf("the rank's files have an entry %q, which no rank sends", h.Name)
		}
		if room -= h.Size; h.Size < 0 || room < 0 {
			return nil, nil, fmt.Errorf("the rank's files have more than the %d MiB that a rank sends", MaxArchive>>20)
		}
		data := make([]byte, h.Size)
		if _, err := io.ReadFull(t, data); err != nil {
			return nil, nil, fmt.Errorf("the rank's files cannot be read: %s: %w", h.Name, err)
		}
		if h.Name != manifestName {
			files[h.Name] = data
		} else if err := json.Unmarshal(data, &list); err != nil {
			return nil, nil, fmt.Errorf("the list of the rank's files cannot be read: %w", err)
		}
	}
}
