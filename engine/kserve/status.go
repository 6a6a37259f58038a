package kserve

import (
	"fmt"
	"net/http"
	"strings"
	"unicode"
)

// Code is a gRPC status code.
type Code int

// Status codes that this protocol uses.
const (
	OK                Code = 0
	Cancelled         Code = 1
	Unknown           Code = 2
	InvalidArgument   Code = 3
	DeadlineExceeded  Code = 4
	NotFound          Code = 5
	AlreadyExists     Code = 6
	PermissionDenied  Code = 7
	ResourceExhausted Code = 8
	FailedCondition   Code = 9
	OutOfRange        Code = 11
	Unimplemented     Code = 12
	Internal          Code = 13
	Unavailable       Code = 14
	Unauthenticated   Code = 16
)

// Status is an error returned by a server. Its text is one line of limited length, whatever the server sent.
type Status struct {
	Code    Code
	Message string
}

// Error implements error.
func (s *Status) Error() string { return s.Message }

// NewStatus returns a Status with a server's message, shortened to one line.
func NewStatus(code Code, message string) *Status {
	message = strings.Join(strings.FieldsFunc(message, func(r rune) bool { return !unicode.IsPrint(r) }), " ")
	message = strings.TrimSpace(strings.ToValidUTF8(message, "?"))
	if len(message) > MaxErrorBytes {
		message = strings.ToValidUTF8(message[:MaxErrorBytes], "") + " ..."
	}
	if message == "" {
		message = fmt.Sprintf("status %d without a reason", code)
	}
	return &Status{Code: code, Message: message}
}

// Statusf returns a Status with a message of this program.
func Statusf(code Code, format string, arguments ...any) *Status {
	return &Status{Code: code, Message: fmt.Sprintf(format, arguments...)}
}

// HTTP returns the corresponding HTTP status.
func (c Code) HTTP() int {
	switch c {
	case OK:
		return http.StatusOK
	case InvalidArgument, FailedCondition, OutOfRange:
		return http.StatusBadRequest
	case DeadlineExceeded:
		return http.StatusGatewayTimeout
	case NotFound:
		return http.StatusNotFound
	case PermissionDenied:
		return http.StatusForbidden
	case ResourceExhausted:
		return http.StatusTooManyRequests
	case Unimplemented:
		return http.StatusNotImplemented
	case Unavailable:
		return http.StatusServiceUnavailable
	case Unauthenticated:
		return http.StatusUnauthorized
	}
	return http.StatusInternalServerError
}

// FromHTTP returns the code for an HTTP status.
func FromHTTP(status int) Code {
	switch status {
	case http.StatusOK:
		return OK
	case http.StatusBadRequest:
		return InvalidArgument
	case http.StatusUnauthorized:
		return Unauthenticated
	case http.StatusForbidden:
		return PermissionDenied
	case http.StatusNotFound:
		return NotFound
	case http.StatusRequestEntityTooLarge, http.StatusTooManyRequests:
		return ResourceExhausted
	case http.StatusNotImplemented:
		return Unimplemented
	case http.StatusBadGateway, http.StatusServiceUnavailable:
		return Unavailable
	case http.StatusGatewayTimeout:
		return DeadlineExceeded
	}
	if status >= http.StatusInternalServerError {
		return Internal
	}
	return Unknown
}
