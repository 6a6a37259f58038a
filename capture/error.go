package capture

import (
	"errors"
	"strings"
)

// What a caller can decide by, with errors.Is on any error of this package.
var (
	ErrURI         = errors.New("malformed camera URI")
	ErrNotFound    = errors.New("camera not found")
	ErrUnavailable = errors.New("camera unavailable") // the source is there or may come back, but gives no image now
	ErrDenied      = errors.New("access denied")      // user name or password are missing or refused
	ErrFormat      = errors.New("unsupported image format")
	ErrImage       = errors.New("damaged image") // the source goes on with the next one
	ErrStalled     = errors.New("camera stalled")
	ErrMemory      = errors.New("out of memory")
)

// Error is every error that this package returns, apart from io.EOF and the context's own. It never holds credentials.
type Error struct {
	Op      string // parse, open, read, allocate
	URI     string // redacted
	Kind    error  // one of the Err values above
	Message string
	Hint    string // what to do about it
	Err     error  // the cause, or nil
}

// Error returns "op uri: message: cause (hint)" with the empty parts left out.
func (e *Error) Error() string {
	subject, why := strings.TrimSpace(e.Op+" "+e.URI), e.Reason()
	if why == "" {
		return subject
	}
	if e.Message == "" && e.Err == nil {
		return subject + " " + why
	}
	return subject + ": " + why
}

// Reason is the error without operation and camera.
func (e *Error) Reason() string {
	text := e.Message
	if e.Err != nil {
		if text != "" {
			text += ": "
		}
		text += e.Err.Error()
	}
	if e.Hint != "" {
		text = strings.TrimSpace(text + " (" + e.Hint + ")")
	}
	return text
}

// Is reports whether target is the error's kind.
func (e *Error) Is(target error) bool { return e.Kind != nil && e.Kind == target }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
