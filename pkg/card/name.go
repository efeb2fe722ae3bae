package card

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
)

// maxName bounds a card's name, in bytes.
const maxName = 255

// ValidName says why a text cannot be the name of a card.
func ValidName(name string) error {
	switch {
	case strings.TrimSpace(name) == "":
		return errors.New("it is empty")
	case len(name) > maxName:
		return fmt.Errorf("it is longer than %d bytes", maxName)
	case strings.IndexFunc(name, unicode.IsControl) >= 0:
		return fmt.Errorf("%q has a control character in it", name)
	}
	return nil
}
