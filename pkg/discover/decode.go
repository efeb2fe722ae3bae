package discover

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"
	"unicode/utf8"

	"assay/pkg/exitcode"
)

// Document is a decoded file.
type Document struct {
	// JSON is the content, with numbers spelled as the file spells them.
	JSON []byte
	// Position gives the line and column, from 1, of the value at a JSON pointer;
	// zeros when it is not known. A nil Position knows none.
	Position func(pointer string) (line, column int)
}

// Decode reads a file whose name, by its extension, tells the format. Its error
// begins with name:line:column.
type Decode func(name string, data []byte) (Document, error)

// DecodeJSON is the Decode for JSON alone. It refuses duplicate keys, which
// encoding/json resolves silently.
func DecodeJSON(name string, data []byte) (Document, error) {
	if ext := path.Ext(name); ext == ".yaml" || ext == ".yml" {
		return Document{}, exitcode.Errorf(exitcode.Invalid, "%s: YAML cannot be read here; write the card as JSON", name)
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if i := invalidUTF8(data); i >= 0 {
		return Document{}, at(name, data, int64(i), errors.New("the text is not UTF-8"))
	}
	places, err := scan(data)
	if err != nil {
		var where *offsetError
		if errors.As(err, &where) {
			return Document{}, at(name, data, where.offset, where.err)
		}
		return Document{}, exitcode.Errorf(exitcode.Invalid, "%s: %w", name, err)
	}
	return Document{JSON: data, Position: func(pointer string) (int, int) {
		offset, ok := places[pointer]
		if !ok {
			return 0, 0
		}
		return lineColumn(data, offset)
	}}, nil
}

func at(name string, data []byte, offset int64, err error) error {
	line, col := lineColumn(data, offset)
	return exitcode.Errorf(exitcode.Invalid, "%s:%d:%d: %w", name, line, col, err)
}

func invalidUTF8(data []byte) int {
	if utf8.Valid(data) {
		return -1
	}
	for i := 0; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return -1
}

func lineColumn(data []byte, offset int64) (line, column int) {
	before := data[:min(max(offset, 0), int64(len(data)))]
	line = 1 + bytes.Count(before, []byte{'\n'})
	column = 1 + utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:])
	return line, column
}

// offsetError is an error at a byte of the input.
type offsetError struct {
	offset int64
	err    error
}

func (e *offsetError) Error() string { return e.err.Error() }

// scanner walks the tokens of a JSON text and notes where each value begins.
type scanner struct {
	data   []byte
	dec    *json.Decoder
	places map[string]int64
}

// scan returns the offset of every value by its JSON pointer.
func scan(data []byte) (map[string]int64, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, &offsetError{0, errors.New("the file is empty")}
	}
	// The decoder's tokens are more lenient than the grammar.
	if err := json.Unmarshal(data, new(json.RawMessage)); err != nil {
		var syntax *json.SyntaxError
		if !errors.As(err, &syntax) {
			return nil, err
		}
		if strings.HasPrefix(syntax.Error(), "unexpected end") {
			return nil, &offsetError{int64(len(data)), errors.New("the JSON text ends too early")}
		}
		return nil, &offsetError{max(syntax.Offset-1, 0), syntax}
	}
	s := &scanner{data, json.NewDecoder(bytes.NewReader(data)), map[string]int64{}}
	s.dec.UseNumber()
	return s.places, s.value("")
}

// next is the offset of the next token.
func (s *scanner) next() int64 {
	i := s.dec.InputOffset()
	for i < int64(len(s.data)) && strings.IndexByte(" \t\r\n,:", s.data[i]) >= 0 {
		i++
	}
	return i
}

func (s *scanner) value(pointer string) error {
	s.places[pointer] = s.next()
	tok, err := s.dec.Token()
	if err != nil {
		return err
	}
	switch tok {
	case json.Delim('{'):
		return s.object(pointer)
	case json.Delim('['):
		for i := 0; s.dec.More(); i++ {
			if err := s.value(pointer + "/" + strconv.Itoa(i)); err != nil {
				return err
			}
		}
		_, err = s.dec.Token()
	}
	return err
}

func (s *scanner) object(pointer string) error {
	for s.dec.More() {
		start := s.next()
		tok, err := s.dec.Token()
		if err != nil {
			return err
		}
		key, _ := tok.(string)
		child := pointer + "/" + escapePointer(key)
		if _, twice := s.places[child]; twice {
			return &offsetError{start, fmt.Errorf("the key %q is given twice", key)}
		}
		if err := s.value(child); err != nil {
			return err
		}
	}
	_, err := s.dec.Token()
	return err
}

func escapePointer(key string) string {
	return strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
}
