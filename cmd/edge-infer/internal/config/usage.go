package config

import "fmt"

// UsageError is an error in the command line or configuration, found before anything is opened.
type UsageError struct{ Err error }

// Error returns the text of the wrapped error.
func (e UsageError) Error() string { return e.Err.Error() }

// Usagef makes a UsageError.
func Usagef(format string, arguments ...any) error {
	return UsageError{fmt.Errorf(format, arguments...)}
}

// Unwrap returns the wrapped error.
func (e UsageError) Unwrap() error { return e.Err }
