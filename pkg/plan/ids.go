package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	"assay/pkg/manifest"
)

// maxID is the length of a job id in bytes; it is a directory name, and part of
// the names of scheduler jobs.
const maxID = 80

// jobIDs returns an id for each entry: the key itself where it is fit for a
// directory name, else a readable form of it with a digest of the key. Ids are
// distinct even on a file system that ignores case.
func jobIDs(entries []manifest.Entry) []string {
	ids := make([]string, len(entries))
	taken := map[string]bool{}
	claim := func(i int, id string) bool {
		lower := strings.ToLower(id)
		if taken[lower] {
			return false
		}
		taken[lower] = true
		ids[i] = id
		return true
	}
	for i, e := range entries { // a fit key keeps its name, whatever the others are
		if fit(e.Key) {
			claim(i, e.Key)
		}
	}
	for i, e := range entries {
		if ids[i] != "" {
			continue
		}
		digest := sha256.Sum256([]byte(e.Key))
		suffix := "-" + hex.EncodeToString(digest[:4])
		for n := 2; !claim(i, readable(e.Key, maxID-len(suffix))+suffix); n++ {
			suffix = "-" + hex.EncodeToString(digest[:4]) + "-" + strconv.Itoa(n)
		}
	}
	return ids
}

// fit says whether a key can be a directory name as it stands.
func fit(key string) bool {
	return key != "" && len(key) <= maxID && key == readable(key, maxID)
}

// readable replaces what a directory name should not have: it keeps letters,
// digits, dot, underscore and hyphen, begins with neither dot nor hyphen, and is
// at most limit bytes long.
func readable(key string, limit int) string {
	var b strings.Builder
	for i, r := range key {
		switch {
		case b.Len() == limit:
			return b.String()
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_',
			i > 0 && (r == '.' || r == '-'):
			b.WriteRune(r)
		default:
			b.WriteByte('_')
		}
	}
	if b.Len() == 0 {
		return "job"
	}
	return b.String()
}
