package config

import "fmt"

// UsageError is a wrong command line or configuration: what is wrong is known before anything is opened.
type UsageError struct{ Err error }

// Error gives the words of the error itself.
func (e UsageError) Error() string { return e.Err.Error() }

// Usagef makes a UsageError.
func Usagef(format string, arguments ...any) error {
	return UsageError{fmt.Errorf(format, arguments...)}
}

// Unwrap gives the error itself.
func (e UsageError) Unwrap() error { return e.Err }
