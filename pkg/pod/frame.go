package pod

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"strconv"
	"strings"
	"sync"

	"assay/pkg/evidence"
)

// A record in the log of a pod is a line of its own:
//
//	assay-record/1 <nonce> <rank> <process> <+ or -> <kind> <number> <content>
//
// The nonce is the beginning of that of the run, and the process a word that is
// different for every process that writes records. A plus says that the line end
// before the record is no word of the workload: its last line had none. The kinds
// are begin, with the begin marker; piece, with a part of an archive, counted from
// 0; and end, with the sum of the archive.
const (
	recordMagic = "assay-record/1 "

	kindBegin = "begin"
	kindPiece = "piece"
	kindEnd   = "end"

	nonceShown = 8    // characters of the nonce in a record
	pieceChars = 4000 // of base64 in a piece
	pieceBytes = pieceChars / 4 * 3
	maxPieces  = 2 * MaxArchive / pieceBytes
)

// sum is the content of the last record of an archive.
type sum struct {
	Pieces int    `json:"pieces"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
	Lost   string `json:"lost,omitempty"` // why there is no archive
}

// Console is the output of a pod that the words of the workload and the records of
// the rank go to. It is safe for concurrent use.
type Console struct {
	mu   sync.Mutex
	to   io.Writer
	open bool // the last line has no end
}

// NewConsole writes to a writer that nobody else writes to.
func NewConsole(to io.Writer) *Console { return &Console{to: to} }

// Write writes words of the workload.
func (c *Console) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.write(p)
}

func (c *Console) write(p []byte) (int, error) {
	n, err := c.to.Write(p)
	if n > 0 && n <= len(p) {
		c.open = p[n-1] != '\n'
	}
	return n, err
}

// line writes a record: head, whether it had to end a line, and the rest.
func (c *Console) line(head, rest string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	text := head + "- " + rest + "\n"
	if c.open {
		text = "\n" + head + "+ " + rest + "\n"
	}
	_, err := c.write([]byte(text))
	return err
}

// Sender writes the records of one rank.
type Sender struct {
	to   *Console
	head string
}

// NewSender writes records of a rank. Process is a word without spaces that no
// other process has.
func NewSender(to *Console, id evidence.Identity, process string) *Sender {
	return &Sender{to: to, head: recordHead(id.Nonce, id.Rank) + process + " "}
}

// recordHead is what records of a rank begin with.
func recordHead(nonce string, rank int) string {
	shown := strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' {
			return '_'
		}
		return r
	}, nonce[:min(len(nonce), nonceShown)])
	return recordMagic + shown + " " + strconv.Itoa(rank) + " "
}

// Begin sends the begin marker.
func (s *Sender) Begin(b evidence.Begin) error {
	return s.send(kindBegin, 0, string(marshal(b)))
}

// Archive sends files of a rank, and what could not be taken into account. Reading
// them may fail: then the records say so.
func (s *Sender) Archive(files []File, omitted []Omitted) error {
	p := &pieces{sender: s, sum: sha256.New()}
	err := pack(p, files, omitted, MaxArchive)
	if err == nil {
		err = p.flush()
	}
	last := sum{Pieces: p.number, Bytes: p.bytes, SHA256: hex.EncodeToString(p.sum.Sum(nil))}
	if err != nil {
		last = sum{Lost: shorten(err.Error(), longText)}
	}
	if serr := s.send(kindEnd, p.number, string(marshal(last))); err == nil {
		err = serr
	}
	return err
}

func (s *Sender) send(kind string, number int, content string) error {
	return s.to.line(s.head, kind+" "+strconv.Itoa(number)+" "+content)
}

// pieces sends what is written to it in pieces.
type pieces struct {
	sender *Sender
	sum    hash.Hash
	held   []byte
	number int
	bytes  int64
}

func (p *pieces) Write(b []byte) (int, error) {
	_, _ = p.sum.Write(b)
	p.bytes += int64(len(b))
	p.held = append(p.held, b...)
	for len(p.held) >= pieceBytes {
		if err := p.put(p.held[:pieceBytes]); err != nil {
			return 0, err
		}
		p.held = p.held[pieceBytes:]
	}
	return len(b), nil
}

func (p *pieces) put(b []byte) error {
	err := p.sender.send(kindPiece, p.number, base64.StdEncoding.EncodeToString(b))
	p.number++
	return err
}

func (p *pieces) flush() error {
	if len(p.held) == 0 {
		return nil
	}
	return p.put(p.held)
}

// record is a line that is one.
type record struct {
	process, kind string
	joined        bool
	number        int
	content       []byte
}

// parseRecord reads a line that may be a record of the rank whose records begin
// with head.
func parseRecord(line []byte, head string) (record, bool) {
	rest, ok := bytes.CutPrefix(line, []byte(head))
	if !ok {
		return record{}, false
	}
	words := bytes.SplitN(rest, []byte(" "), 5)
	if len(words) != 5 || len(words[0]) == 0 {
		return record{}, false
	}
	r := record{process: string(words[0]), joined: string(words[1]) == "+", kind: string(words[2]), content: words[4]}
	var err error
	if r.number, err = strconv.Atoi(string(words[3])); err != nil || r.number < 0 || r.number >= maxPieces {
		return record{}, false
	}
	switch {
	case !r.joined && string(words[1]) != "-":
		return record{}, false
	case r.kind != kindBegin && r.kind != kindPiece && r.kind != kindEnd:
		return record{}, false
	}
	return r, true
}

func parseSum(content []byte) (sum, error) {
	var s sum
	if err := json.Unmarshal(content, &s); err != nil {
		return s, err
	}
	if s.Lost == "" && (s.Pieces < 0 || s.Pieces >= maxPieces || len(s.SHA256) != 2*sha256.Size) {
		return s, fmt.Errorf("it speaks of %d pieces", s.Pieces)
	}
	return s, nil
}
