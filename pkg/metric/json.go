package metric

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// ParseJSON reads a workload's metrics.json: {"name": 1.5} or {"metrics":
// {"name": 1.5}}; the string "n/a" says that it cannot be measured here. Only
// declared names count, and the last of each name stands. Place names the file
// in problems and readings. A file that is not JSON gives no readings.
func ParseJSON(data []byte, declared []string, place string) ([]Reading, []Problem) {
	p := jsonParser{declared: nameSet(declared), place: place, index: map[string]int{}}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	p.dec = json.NewDecoder(bytes.NewReader(data))
	p.dec.UseNumber()
	err := p.document()
	if err == nil {
		if _, more := p.dec.Token(); more != io.EOF {
			err = errors.New("there is more after the object")
		}
	}
	if err != nil {
		return nil, []Problem{{
			Code: CodeUnreadable, Source: SourceMetricsJSON,
			Message: fmt.Sprintf("%s: line %d: %v", place, lineAt(data, p.dec.InputOffset()), explainJSON(data, err)),
		}}
	}
	var readings []Reading
	var problems []Problem
	for _, e := range p.entries {
		if e.problem.Code != "" {
			problems = append(problems, e.problem)
		} else {
			readings = append(readings, e.reading)
		}
	}
	return readings, problems
}

type jsonParser struct {
	dec      *json.Decoder
	declared map[string]struct{}
	place    string
	index    map[string]int
	entries  []entry
}

// document reads the outer object.
func (p *jsonParser) document() error {
	return p.object(func(key string) error {
		if _, isMetric := p.declared[key]; key != "metrics" || isMetric {
			return p.member(key)
		}
		var raw json.RawMessage
		if err := p.dec.Decode(&raw); err != nil {
			return err
		}
		if len(raw) == 0 || raw[0] != '{' {
			return nil
		}
		inner := *p
		inner.dec = json.NewDecoder(bytes.NewReader(raw))
		inner.dec.UseNumber()
		err := inner.object(inner.member)
		p.entries = inner.entries
		return err
	})
}

// object calls member with each key of the object that comes next; member reads
// the value.
func (p *jsonParser) object(member func(key string) error) error {
	open, err := p.dec.Token()
	if err != nil {
		return err
	}
	if open != json.Delim('{') {
		return errors.New(`an object of names and numbers is expected, such as {"name": 1.5}`)
	}
	for p.dec.More() {
		key, err := p.dec.Token()
		if err != nil {
			return err
		}
		name, _ := key.(string)
		if err := member(name); err != nil {
			return err
		}
	}
	_, err = p.dec.Token()
	return err
}

func (p *jsonParser) member(name string) error {
	var raw json.RawMessage
	if err := p.dec.Decode(&raw); err != nil {
		return err
	}
	if _, ok := p.declared[name]; !ok {
		return nil
	}
	e := entry{reading: Reading{Name: name, Source: SourceMetricsJSON, Place: p.place}}
	q, err := jsonQuantity(raw)
	if err != nil {
		e.problem = notANumber(name, "%s: %s: %v", p.place, name, err)
		e.problem.Source = SourceMetricsJSON
	}
	e.reading.Value, e.reading.Text, e.reading.NotApplicable = q.value, q.text, q.notApplicable
	if i, ok := p.index[name]; ok {
		p.entries[i] = e
		return nil
	}
	p.index[name] = len(p.entries)
	p.entries = append(p.entries, e)
	return nil
}

func jsonQuantity(raw json.RawMessage) (quantity, error) {
	if c := raw[0]; c == '-' || isDigit(c) {
		return parseValue(string(raw))
	}
	var text string
	if raw[0] == '"' && json.Unmarshal(raw, &text) == nil {
		if strings.EqualFold(text, "n/a") {
			return quantity{text: text, notApplicable: true}, nil
		}
		return quantity{}, fmt.Errorf("the string %q is not a number; write it without quotes", clip(text))
	}
	return quantity{}, fmt.Errorf("a number is expected, not %s", clip(string(raw)))
}

// explainJSON adds what usually lies behind an error.
func explainJSON(data []byte, err error) error {
	switch {
	case len(bytes.TrimSpace(data)) == 0:
		return errors.New("the file is empty")
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the file ends too early")
	case bytes.Contains(data, []byte("NaN")), bytes.Contains(data, []byte("Infinity")):
		return fmt.Errorf("%w (NaN and Infinity are not JSON and are no measurements)", err)
	}
	return err
}

func lineAt(data []byte, offset int64) int {
	return 1 + bytes.Count(data[:min(int(offset), len(data))], []byte("\n"))
}
