// Package nesting bounds how deep the YAML of others is nested, before a parser sees it: that takes memory by the square of the depth, so
// that a file of 200 kB could take all that a machine has.
package nesting

import (
	"errors"

	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/token"
)

// most is more than any file of settings or of a dataset opens.
const most = 64

// ErrYAML is what is said of a text that is nested deeper than anything that belongs here.
var ErrYAML = errors.New("nested too deeply")

// CheckYAML returns ErrYAML for a text with more than 64 collections in brackets around anything, or as many begun on one line. Blocks that
// are nested by lines need an indentation that makes them long.
func CheckYAML(text []byte) error {
	depth, begun, line := 0, 0, 0
	for _, t := range lexer.Tokenize(string(text)) {
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			depth++
		case token.SequenceEndType, token.MappingEndType:
			depth = max(depth-1, 0)
		case token.SequenceEntryType, token.MappingKeyType:
			if t.Position.Line != line {
				begun, line = 0, t.Position.Line
			}
			begun++
		}
		if depth > most || begun > most {
			return ErrYAML
		}
	}
	return nil
}
