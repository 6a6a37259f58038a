package engine

import (
	"errors"
	"strings"
)

// Kinds of errors, for errors.Is on any error of an engine.
var (
	ErrUnavailable  = errors.New("backend unavailable")
	ErrPlanMismatch = errors.New("engine plan mismatch")
	ErrUnsupported  = errors.New("unsupported model")
	ErrShape        = errors.New("shape mismatch")
	ErrClosed       = errors.New("engine closed")
	// ErrContextLost is the kind of an error after which the driver refuses everything that this process asks of the GPU: only another process
	// can use it again.
	ErrContextLost = errors.New("CUDA context lost")
)

// Error is the type of every error that an engine returns. Message describes the problem, Hint the remedy.
type Error struct {
	Op      string // open, submit, wait, build
	Backend string
	Code    int   // the backend's error code, or 0
	Kind    error // one of the Err values above, or nil
	Message string
	Hint    string
	Err     error // the cause, or nil
}

// Error returns "backend op: message: cause; hint" with the empty parts left out.
func (e *Error) Error() string {
	var text strings.Builder
	text.WriteString(strings.TrimSpace(e.Backend + " " + e.Op))
	if e.Message != "" {
		text.WriteString(": " + e.Message)
	}
	if e.Err != nil {
		text.WriteString(": " + e.Err.Error())
	}
	if e.Hint != "" {
		text.WriteString(" (" + e.Hint + ")")
	}
	return text.String()
}

// Attribute returns err as an *Error with operation and backend. An *Error keeps the values it has; for any other error, describe returns
// the message.
func Attribute(err error, op, backend string, describe func(error) string) *Error {
	if known, ok := errors.AsType[*Error](err); ok {
		complete := *known
		if complete.Op == "" || complete.Backend == "" {
			complete.Op, complete.Backend = op, backend
		}
		return &complete
	}
	return &Error{Op: op, Backend: backend, Message: describe(err)}
}

// Is reports whether target is the error's kind.
func (e *Error) Is(target error) bool { return e.Kind != nil && e.Kind == target }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
