package probe

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"time"
)

// protocolVersion is refused when it differs: the ranks are of different builds.
const protocolVersion = 1

// messageLimit bounds a message, so that a stranger cannot make a rank allocate.
const messageLimit = 64 << 10

// controlTimeout bounds what takes no time between ranks that are alive: one
// message, or the greeting on a new connection.
const controlTimeout = 5 * time.Second

// messageType says what a message is.
type messageType string

// The messages of the ranks.
const (
	msgHello   messageType = "hello"   // a rank to rank 0, and to its right neighbour: who it is
	msgWelcome messageType = "welcome" // rank 0 to all, when all are there: what to do, and who is to the right
	msgRefuse  messageType = "refuse"  // rank 0 to one that does not belong
	msgResult  messageType = "result"  // a rank to rank 0: its mean time of a size
	msgPing    messageType = "ping"    // rank 0 to all: who is alive?
	msgPong    messageType = "pong"    // a rank to rank 0: I am
	msgLost    messageType = "lost"    // a rank to rank 0: a neighbour is gone or stalls, what is the matter?
	msgAbort   messageType = "abort"   // either way: this failed, end now
	msgBye     messageType = "bye"     // rank 0 to all, or the client of a link to its server: done

	msgPings  messageType = "pings"  // the client of a link to its server: send back what comes
	msgTake   messageType = "take"   // the same: take a stream and tell what came
	msgStream messageType = "stream" // the same: send a stream for that long
)

// message is all of them; the fields that do not belong to a type are empty.
type message struct {
	Type      messageType `json:"type"`
	Version   int         `json:"version,omitempty"`
	Token     string      `json:"token,omitempty"`
	Rank      int         `json:"rank"`
	WorldSize int         `json:"world_size,omitempty"`
	Host      string      `json:"host,omitempty"` // address on which the rank reached rank 0
	Port      int         `json:"port,omitempty"` // on which it waits for its left neighbour
	Sweep     *sweep      `json:"sweep,omitempty"`
	Right     string      `json:"right,omitempty"` // host:port of the right neighbour
	Seconds   float64     `json:"seconds,omitempty"`
	Chunk     int         `json:"chunk,omitempty"`   // bytes of a chunk of a stream
	Bytes     int64       `json:"bytes,omitempty"`   // of a stream, as they came
	Damaged   int64       `json:"damaged,omitempty"` // chunks of a stream that came otherwise than sent
	Text      string      `json:"text,omitempty"`
}

// writeMessage sends a message: its length in four bytes, then JSON.
func writeMessage(conn net.Conn, m message) error {
	body, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("a %s message cannot be written: %w", m.Type, err)
	}
	if len(body) > messageLimit {
		return fmt.Errorf("a %s message of %d bytes is too long", m.Type, len(body))
	}
	frame := append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
	if err := conn.SetWriteDeadline(time.Now().Add(controlTimeout)); err != nil {
		return err
	}
	_, err = conn.Write(frame)
	return err
}

// readMessage takes one message and not a byte more. The caller sets deadlines.
func readMessage(r io.Reader) (message, error) {
	var size [4]byte
	var m message
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return m, err
	}
	n := binary.BigEndian.Uint32(size[:])
	if n > messageLimit {
		return m, fmt.Errorf("what came is no message of a probe")
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(r, body); err != nil {
		return m, err
	}
	if err := json.Unmarshal(body, &m); err != nil {
		return m, fmt.Errorf("what came is no message of a probe: %w", err)
	}
	return m, nil
}
