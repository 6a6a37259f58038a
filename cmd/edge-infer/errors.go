package main

import (
	"errors"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/terminal"
)

// reasons returns the text of an error, a line for each error that was joined in it. What stands in one, a file's name or a server's words,
// cannot begin another line, move the cursor or change the terminal.
func reasons(err error) (lines []string) {
	parts := []error{err}
	if all := config.Errors(nil); errors.As(err, &all) {
		parts = all
	} else if joined, ok := err.(interface{ Unwrap() []error }); ok { //nolint:errorlint // itself, not what it wraps
		if parts = joined.Unwrap(); errors.Join(parts...).Error() == err.Error() {
			for _, part := range parts {
				lines = append(lines, reasons(part)...)
			}
			return lines
		}
		parts = []error{err}
	}
	for _, part := range parts {
		lines = append(lines, string(terminal.Printable([]byte(part.Error()))))
	}
	return lines
}
