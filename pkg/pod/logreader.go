package pod

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"assay/pkg/evidence"
)

// LogReader reads the log of the pod of a rank: it passes the words of the workload
// on and gathers the records between them. The log comes with timestamps, as the
// kubelet gives it, in one or more connections that may overlap; it may lack its
// beginning, its end, or something in the middle.
type LogReader struct {
	out    io.Writer
	outErr error
	head   string
	repeat repeated

	line lineState
	held bool // the line end of the last line has not been passed on yet

	process string // whose records count: the first that was seen
	begin   []byte
	pieces  map[int][]byte
	sum     *sum
}

// lineState is how far the line that is being read has come.
type lineState struct {
	part    []byte // of a line whose end has not come
	inside  bool   // what comes next belongs to a line that has begun
	dropped bool   // that line has been passed on before
	skip    int64  // bytes of it that have been passed on before
	at      key
	passed  int64
}

// longLine is the longest line that is looked at as a whole, in bytes; parts of
// longer ones are passed on as they come, and are no records.
const longLine = 64 << 10

// NewLogReader reads the log of the pod of one rank of a run, and passes on to out.
func NewLogReader(out io.Writer, nonce string, rank int) *LogReader {
	return &LogReader{out: out, head: recordHead(nonce, rank), pieces: map[int][]byte{}}
}

// Resume says that a connection begins: the first, or one after another broke. Half
// a line is forgotten, for it comes again as a whole.
func (r *LogReader) Resume() {
	if r.line.inside && !r.line.dropped {
		r.repeat.half(r.line.at, r.line.passed+r.line.skip)
	}
	r.repeat.again()
	r.line = lineState{}
}

// Line takes a line of the log, with its timestamp and its end, or the next part of
// one. It returns where a connection that follows has to begin so that nothing is
// missed, as RFC 3339 has it: a little earlier, for kubelets count whole seconds.
// What then comes again is not passed on again. It is empty before the first
// timestamp.
func (r *LogReader) Line(line []byte) (since string) {
	for len(line) > 0 {
		i := bytes.IndexByte(line, '\n')
		if i < 0 {
			r.line.part = append(r.line.part, line...)
			if len(r.line.part) >= longLine {
				part := r.line.part
				r.line.part = nil
				r.take(part, false)
			}
			break
		}
		whole := line[:i]
		if len(r.line.part) > 0 {
			whole = append(r.line.part, whole...)
			r.line.part = nil
		}
		r.take(whole, true)
		line = line[i+1:]
	}
	return r.repeat.since()
}

// Close passes on the last line, which has no end. The error is the first one of
// passing on.
func (r *LogReader) Close() error {
	if part := r.line.part; len(part) > 0 {
		r.line.part = nil
		if _, text := cutStamp(part); r.line.inside || !bytes.HasPrefix(text, []byte(r.head)) {
			r.take(part, false)
		} else { // a record, or half of one
			r.record(text)
		}
	}
	r.pass(nil)
	return r.outErr
}

// take takes a line, or a part of a long one.
func (r *LogReader) take(chunk []byte, ended bool) {
	if !r.line.inside {
		at, text := cutStamp(chunk)
		r.line = lineState{inside: true, at: keyOf(at, text)}
		r.line.dropped, r.line.skip = r.repeat.seen(at, r.line.at)
		chunk = text
		if ended && !r.line.dropped && r.record(chunk) {
			r.line = lineState{}
			return
		}
	}
	r.line.passed += int64(len(chunk))
	if n := min(r.line.skip, int64(len(chunk))); n > 0 {
		r.line.skip -= n
		chunk = chunk[n:]
	}
	if !r.line.dropped {
		r.pass(chunk)
		r.held = ended
	}
	if ended {
		r.line = lineState{}
	}
}

// pass writes words of the workload, and before them the line end that is due.
func (r *LogReader) pass(text []byte) {
	if r.held {
		r.held = false
		r.emit([]byte("\n"))
	}
	r.emit(text)
}

func (r *LogReader) emit(text []byte) {
	if r.outErr == nil && len(text) > 0 {
		_, r.outErr = r.out.Write(text)
	}
}

// cutStamp takes the timestamp off a line.
func cutStamp(line []byte) (time.Time, []byte) {
	i := bytes.IndexByte(line[:min(len(line), 40)], ' ')
	if i < 0 {
		i = min(len(line), 40) // of an empty line the kubelet gives the stamp alone
	}
	at, err := time.Parse(time.RFC3339Nano, string(line[:i]))
	if err != nil {
		return time.Time{}, line
	}
	return at, line[min(i+1, len(line)):]
}

// record takes a line that is a record. The records of other processes are words of
// the workload, whatever they look like.
func (r *LogReader) record(line []byte) bool {
	rec, ok := parseRecord(line, r.head)
	if !ok || (r.process != "" && rec.process != r.process) {
		return false
	}
	r.process = rec.process
	if rec.joined {
		r.held = false
	}
	switch rec.kind { // what cannot be read is missing
	case kindBegin:
		if json.Unmarshal(rec.content, &evidence.Begin{}) == nil {
			r.begin = bytes.Clone(rec.content)
		}
	case kindPiece:
		if data, err := base64.StdEncoding.DecodeString(string(rec.content)); err == nil && len(data) > len(r.pieces[rec.number]) {
			r.pieces[rec.number] = data
		}
	case kindEnd:
		if s, err := parseSum(rec.content); err == nil {
			r.sum = &s
		}
	}
	return true
}

// Begun says that the rank sends records: its directory is not shared with whoever
// reads the log.
func (r *LogReader) Begun() bool { return r.process != "" }

// Begin is the begin marker as the rank sent it; nil when it did not come. Whether
// it is of the right rank of the right attempt is for the caller to say.
func (r *LogReader) Begin() []byte { return r.begin }

// Complete says that the last record has come.
func (r *LogReader) Complete() bool { return r.sum != nil }

// Archive gives the files that the rank sent at its end, by their names in its
// directory, and what it left out of them. The error says why they are not there:
// all of them are, as they were, or none.
func (r *LogReader) Archive() (map[string][]byte, []Omitted, error) {
	archive, err := r.archive()
	if err != nil {
		return nil, nil, err
	}
	return unpack(archive)
}

// archive is the compressed archive, whole.
func (r *LogReader) archive() ([]byte, error) {
	switch {
	case r.process == "":
		return nil, errors.New("the log of the pod has no records of the rank")
	case r.sum == nil && len(r.pieces) == 0:
		return nil, errors.New("the log of the pod ends before the rank sent its files")
	case r.sum == nil:
		return nil, fmt.Errorf("the log of the pod breaks off after %d pieces of the rank's files", len(r.pieces))
	case r.sum.Lost != "":
		return nil, fmt.Errorf("the rank could not send its files: %s", r.sum.Lost)
	}
	var all bytes.Buffer
	missing := 0
	for i := range r.sum.Pieces {
		if r.pieces[i] == nil {
			missing++
		}
		all.Write(r.pieces[i])
	}
	if missing > 0 {
		return nil, fmt.Errorf("the log of the pod lacks %d of %d pieces of the rank's files", missing, r.sum.Pieces)
	}
	if got := sha256.Sum256(all.Bytes()); hex.EncodeToString(got[:]) != r.sum.SHA256 {
		return nil, errors.New("the rank's files were damaged in the log of the pod: their checksum is another")
	}
	return all.Bytes(), nil
}
