package pod

import (
	"hash/fnv"
	"time"
)

// overlap is how long before the last line a new connection begins. Lines of two
// streams may come a little out of order.
const overlap = 2 * time.Second

// keyBytes is how much of a line tells it from others, in bytes.
const keyBytes = 4 << 10

// key stands for a line: its timestamp and its beginning.
type key struct {
	second int64
	hash   uint64
}

func keyOf(at time.Time, text []byte) key {
	h := fnv.New64a()
	stamp, _ := at.MarshalBinary()
	_, _ = h.Write(stamp)
	_, _ = h.Write(text[:min(len(text), keyBytes)])
	return key{at.Unix(), h.Sum64()}
}

// repeated knows the lines that come again after a connection broke.
type repeated struct {
	newest time.Time
	recent map[int64]map[uint64]int // lines of the last seconds, by second
	due    map[key]int              // those that may come again
	broken key                      // a line of which a part came
	part   int64                    // how much of it, in bytes
}

// since is where the next connection has to begin, "" when that is not known.
func (r *repeated) since() string {
	if r.newest.IsZero() {
		return ""
	}
	return r.oldest().UTC().Format(time.RFC3339)
}

func (r *repeated) oldest() time.Time { return r.newest.Truncate(time.Second).Add(-overlap) }

// again says that a new connection begins.
func (r *repeated) again() {
	r.due = map[key]int{}
	for second, lines := range r.recent {
		for hash, n := range lines {
			r.due[key{second, hash}] = n
		}
	}
	if r.part > 0 { // it comes after the whole lines that look like it
		r.due[r.broken]--
	}
}

// half says that only a part of the last line came.
func (r *repeated) half(k key, bytes int64) { r.broken, r.part = k, bytes }

// seen takes a line, or the beginning of a long one, and says whether it came
// before, or how much of it.
func (r *repeated) seen(at time.Time, k key) (dropped bool, passed int64) {
	if at.IsZero() {
		return false, 0
	}
	if r.due[k] > 0 {
		r.due[k]--
		return true, 0
	}
	if r.part > 0 && k == r.broken {
		passed, r.part = r.part, 0
		return false, passed
	}
	if r.recent == nil {
		r.recent = map[int64]map[uint64]int{}
	}
	if r.recent[k.second] == nil {
		r.recent[k.second] = map[uint64]int{}
	}
	r.recent[k.second][k.hash]++
	if at.After(r.newest) {
		r.newest = at
		oldest := r.oldest().Unix()
		for second := range r.recent {
			if second < oldest {
				delete(r.recent, second)
			}
		}
	}
	return false, 0
}
