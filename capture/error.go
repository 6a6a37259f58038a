package capture

import (
	"errors"
	"strings"
)

// Error kinds, for errors.Is on any error of this package.
var (
	ErrURI         = errors.New("malformed camera URI")
	ErrNotFound    = errors.New("camera not found")
	ErrUnavailable = errors.New("camera unavailable") // gives no image now, but may recover
	ErrDenied      = errors.New("access denied")      // credentials are missing or refused
	ErrFormat      = errors.New("unsupported image format")
	ErrImage       = errors.New("damaged image") // the source continues with the next image
	ErrStalled     = errors.New("camera stalled")
	ErrMemory      = errors.New("out of memory")
)

// ErrNotDecoded is returned for each access unit by Next of a source that receives units without decoding them. It is not a failure.
var ErrNotDecoded = errors.New("image not decoded")

// Error is the type of all errors of this package except io.EOF and context errors. It never contains credentials.
type Error struct {
	Op      string // parse, open, read, allocate
	URI     string // redacted
	Kind    error  // one of the Err values above
	Message string
	Hint    string // the remedy
	Err     error  // the cause, or nil
}

// Error returns "op uri: message: cause (hint)", without the empty parts.
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

// Reason returns the error without operation and camera.
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
