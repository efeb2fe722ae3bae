package discover

import (
	"assay/pkg/document"
	"assay/pkg/exitcode"
)

// Decoded is a file of cards or additional context.
type Decoded struct {
	// JSON is the content, with numbers spelled as the file spells them.
	JSON []byte
	doc  *document.Document
}

// Decode reads JSON or YAML, as the extension of the name tells. The error has
// code INVALID and begins with name:line:column.
func Decode(name string, data []byte) (Decoded, error) { return decode(name, name, data) }

// DecodeJSON is Decode for what has to be JSON, whatever its name.
func DecodeJSON(name string, data []byte) (Decoded, error) { return decode(name, name+".json", data) }

func decode(shown, name string, data []byte) (Decoded, error) {
	doc, problems := document.Parse(name, data)
	for _, p := range problems {
		if !p.Warning {
			return Decoded{}, exitcode.Errorf(exitcode.Invalid, "%s:%d:%d: %s", shown, p.Line, p.Column, p.Message)
		}
	}
	return Decoded{JSON: doc.JSON(), doc: doc}, nil
}

// Position gives the line and column, from 1, of the value at a JSON pointer;
// zeros when there is none.
func (d Decoded) Position(pointer string) (line, column int) {
	n := d.doc.Find(pointer)
	if !n.Exists() {
		return 0, 0
	}
	pos := n.Position()
	return pos.Line, pos.Column
}
