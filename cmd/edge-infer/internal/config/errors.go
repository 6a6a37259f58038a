package config

import (
	"fmt"

	"github.com/spf13/pflag"
)

// Errors lists all errors of a configuration. Each names its file and line, its variable or its flag.
type Errors []error

// Error returns the first error, on one line.
func (m Errors) Error() string {
	if more := len(m) - 1; more > 0 {
		return fmt.Sprintf("%v (and %d more: edge-infer config check lists all)", m[0], more)
	}
	return m[0].Error()
}

// Unwrap returns all errors.
func (m Errors) Unwrap() []error { return m }

// valueError returns the error for a variable's or flag's text that is not a value of the setting's kind, in the same words as for a file.
func valueError(value pflag.Value, text string, err error) error {
	want := map[string]string{
		"int": wholeNumberKind, "float64": numberKind, "duration": timeKind,
		"stringSlice": "pieces of text separated by commas", "float64Slice": "numbers separated by commas",
	}[value.Type()]
	if want == "" {
		return err
	}
	return must(text, "must be "+want)
}
