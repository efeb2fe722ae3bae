package document

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"
)

// checkpointEvery bounds how many bytes must be looked at to find a column, so
// that a file of one enormous line costs no more than any other.
const checkpointEvery = 1024

// checkpoint is a place in the source whose line and column are known. There is
// one at the beginning of each line and one in every checkpointEvery bytes.
type checkpoint struct{ offset, line, column uint32 }

// position turns an offset in the source into a line and a column.
func (d *Document) position(offset int) Position {
	d.indexOnce.Do(d.index)
	offset = max(0, min(offset, len(d.source)))
	i, found := slices.BinarySearchFunc(d.checkpoints, offset, func(c checkpoint, offset int) int {
		return cmp.Compare(int(c.offset), offset)
	})
	if !found {
		i--
	}
	c := d.checkpoints[i]
	return Position{int(c.line), int(c.column) + utf8.RuneCountInString(d.source[c.offset:offset])}
}

// offsetOf turns a line and a column into an offset in the source.
func (d *Document) offsetOf(line, column int) int {
	d.indexOnce.Do(d.index)
	i, found := slices.BinarySearchFunc(d.checkpoints, Position{line, column}, func(c checkpoint, p Position) int {
		return cmp.Or(cmp.Compare(int(c.line), p.Line), cmp.Compare(int(c.column), p.Column))
	})
	if !found {
		i--
	}
	c := d.checkpoints[max(i, 0)]
	offset := int(c.offset)
	for range column - int(c.column) {
		_, size := utf8.DecodeRuneInString(d.source[offset:])
		offset += size
	}
	return offset
}

func (d *Document) index() {
	d.checkpoints = make([]checkpoint, 1, strings.Count(d.source, "\n")+len(d.source)/checkpointEvery+2)
	last := checkpoint{line: 1, column: 1}
	d.checkpoints[0] = last
	for {
		rest := d.source[last.offset:]
		end := strings.IndexByte(rest[:min(len(rest), checkpointEvery)], '\n')
		switch {
		case end >= 0:
			last = checkpoint{last.offset + uint32(end) + 1, last.line + 1, 1}
		case len(rest) <= checkpointEvery:
			return
		default:
			end = checkpointEvery
			for end > checkpointEvery-utf8.UTFMax && !utf8.RuneStart(rest[end]) {
				end--
			}
			last.column += uint32(utf8.RuneCountInString(rest[:end]))
			last.offset += uint32(end)
		}
		d.checkpoints = append(d.checkpoints, last)
	}
}

// Line returns the text of a line without its end, and whether there is one.
func (d *Document) Line(number int) (string, bool) {
	if number < 1 {
		return "", false
	}
	start := d.offsetOf(number, 1)
	if d.position(start).Line != number {
		return "", false
	}
	text := d.source[start:]
	if end := strings.IndexByte(text, '\n'); end >= 0 {
		text = text[:end]
	}
	return strings.TrimSuffix(text, "\r"), true
}

// Excerpt returns at most about width characters of the line around a position,
// and the column of the position in them. A cut is marked with an ellipsis.
func (d *Document) Excerpt(p Position, width int) (text string, column int) {
	begin, at := d.offsetOf(p.Line, 1), d.offsetOf(p.Line, p.Column)
	from := max(begin, at-width*utf8.UTFMax)
	line := d.source[from:min(len(d.source), at+width*utf8.UTFMax)]
	if end := strings.IndexByte(line[at-from:], '\n'); end >= 0 {
		line = strings.TrimSuffix(line[:at-from+end], "\r")
	}
	for from > begin && line != "" && !utf8.RuneStart(line[0]) {
		line, from = line[1:], from+1
	}
	return Cut(strings.ToValidUTF8(line, "\ufffd"), utf8.RuneCountInString(d.source[from:at])+1, width, from > begin)
}

// Cut cuts a line to width characters around a column. More says that there is
// text before the line already.
func Cut(line string, column, width int, more bool) (text string, at int) {
	runes := []rune(line)
	at = max(1, min(column, len(runes)+1))
	start := max(0, min(at-1-width/2, len(runes)-width))
	end := min(len(runes), start+width)
	text, at = string(runes[start:end]), at-start
	if start > 0 || more {
		text, at = "…"+text, at+1
	}
	if end < len(runes) {
		text += "…"
	}
	return text, at
}
