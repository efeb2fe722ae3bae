package probe

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// patternBytes is how much data streams repeat, and the largest chunk.
const patternBytes = 4 << 20

// patternStep is how far the next chunk begins in the pattern, so that a chunk that is
// lost, repeated or moved shows. It is odd, so that every place comes up.
const patternStep = 65_537

func validChunk(n int) bool { return n >= 64 && n <= patternBytes }

// pattern is data without a period that is seen by a stream.
type pattern []byte

// newPattern makes the same data on both sides. It is twice as long as what chunks
// begin in, so that none has to be put together.
func newPattern() pattern {
	p := make(pattern, 2*patternBytes)
	state := uint64(0x9e3779b97f4a7c15)
	for i := 0; i < patternBytes; i += 8 { // xorshift64
		state ^= state << 13
		state ^= state >> 7
		state ^= state << 17
		binary.LittleEndian.PutUint64(p[i:], state)
	}
	copy(p[patternBytes:], p[:patternBytes])
	return p
}

// chunk is the data of chunk n of a stream.
func (p pattern) chunk(n int64, size int) []byte {
	at := int(n * patternStep % patternBytes)
	return p[at : at+size]
}

// send streams chunks for a while, then says how many. It returns their bytes.
func (p pattern) send(conn net.Conn, size int, d, stall time.Duration, tamper func([]byte)) (int64, error) {
	end := time.Now().Add(d)
	n := int64(0)
	for ; n == 0 || time.Now().Before(end); n++ {
		data := p.chunk(n, size)
		if tamper != nil {
			data = bytes.Clone(data)
			tamper(data)
		}
		if err := write(conn, data, stall); err != nil {
			return n * int64(size), err
		}
	}
	last := make([]byte, size)
	binary.BigEndian.PutUint64(last, uint64(n))
	return n * int64(size), write(conn, last, stall)
}

// take receives a stream and compares it.
func (p pattern) take(conn net.Conn, size int, stall time.Duration) (count, damaged int64, err error) {
	buf := make([]byte, size)
	zeros := make([]byte, size-8)
	for n := int64(0); ; n++ {
		if err := conn.SetReadDeadline(time.Now().Add(stall)); err != nil {
			return 0, 0, err
		}
		if _, err := io.ReadFull(conn, buf); err != nil {
			return 0, 0, gone(err, stall)
		}
		if bytes.Equal(buf, p.chunk(n, size)) {
			continue
		}
		if !bytes.Equal(buf[8:], zeros) {
			damaged++
			continue
		}
		if sent := binary.BigEndian.Uint64(buf); sent != uint64(n) {
			return 0, 0, fmt.Errorf("%d chunks came, and %d were sent", n, sent)
		}
		return n * int64(size), damaged, nil
	}
}

func write(conn net.Conn, data []byte, stall time.Duration) error {
	if err := conn.SetWriteDeadline(time.Now().Add(stall)); err != nil {
		return err
	}
	_, err := conn.Write(data)
	return gone(err, stall)
}

// gone words why a peer is lost.
func gone(err error, stall time.Duration) error {
	var timeout net.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Errorf("no byte moved for %s", stall)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the connection ended in the middle of a stream")
	}
	return err
}
