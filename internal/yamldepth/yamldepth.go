// Package yamldepth limits the nesting of untrusted YAML before it is parsed: the parser needs memory in proportion to the square of the
// depth, so a file of 200 kB could exhaust a machine.
package yamldepth

import (
	"errors"

	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/token"
)

// maxDepth exceeds the nesting of any configuration or dataset file.
const maxDepth = 64

// ErrTooDeep is returned for text with more than 64 levels.
var ErrTooDeep = errors.New("nested too deeply")

// Check returns ErrTooDeep if more than 64 bracketed collections are open at once, or more than 64 block collections start on one line.
// Block collections nested over several lines need no limit, because their indentation makes the text long.
func Check(text []byte) error {
	var depth, started, line int
	for _, t := range lexer.Tokenize(string(text)) {
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			depth++
		case token.SequenceEndType, token.MappingEndType:
			depth = max(depth-1, 0)
		case token.SequenceEntryType, token.MappingKeyType:
			if t.Position.Line != line {
				started = 0
				line = t.Position.Line
			}
			started++
		}
		if depth > maxDepth || started > maxDepth {
			return ErrTooDeep
		}
	}
	return nil
}
