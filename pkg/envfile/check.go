package envfile

import "fmt"

// SyntaxError says why a file cannot be read. It holds no value of it.
type SyntaxError struct {
	Line     int // from 1; 0 when it is not known
	Message  string
	Accepted bool // the file is read all the same
}

// Error returns the line and the message.
func (e *SyntaxError) Error() string {
	if e.Line == 0 {
		return e.Message
	}
	return fmt.Sprintf("line %d: %s", e.Line, e.Message)
}

// CheckDotenv parses the content of a dotenv file and returns what Load would
// refuse it for; nil when it would not. Nothing in it is executed.
func CheckDotenv(data []byte) *SyntaxError {
	_, fault := readDotenv(data)
	return fault
}
