package web

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"net/http"

	"github.com/edge-infer/edge-infer/internal/inflight"
)

// Memory that is reserved before its size is known, in bytes.
const (
	requestMemory    = 64 << 10 // of every request: its headers and the buffers of its connection
	eventMemory      = 1 << 10  // an event on its way from the store to a client
	annotationMemory = 512      // an event in a COCO data set
	spanMemory       = 256      // a span of recordings on its way to a client
)

// response is the response to a request whose memory is counted.
type response struct {
	http.ResponseWriter
	memory inflight.Lease
}

// Unwrap is for http.ResponseController.
func (r *response) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// Hijack is for WebSockets.
func (r *response) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return http.NewResponseController(r.ResponseWriter).Hijack()
}

// counted counts the memory of requests, and refuses them while too much is in use. It is for clients that have logged in: the others are
// bounded by their number, and must not keep these out.
func (s *Server) counted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		counted := &response{w, inflight.Lease{Budget: &s.memory}}
		defer counted.memory.End()
		body := r.ContentLength
		if body < 0 || body > bodyBytes {
			body = bodyBytes
		}
		if err := counted.memory.Grow(requestMemory + body); err != nil {
			writeOverLimit(w, err)
			return
		}
		next.ServeHTTP(counted, r)
	})
}

// reserve adds memory to what a request holds, or returns an *inflight.Error.
func reserve(w http.ResponseWriter, bytes int64) error {
	switch w := w.(type) {
	case *response:
		return w.memory.Add(bytes)
	case interface{ Unwrap() http.ResponseWriter }:
		return reserve(w.Unwrap(), bytes)
	}
	return nil // of a client that has not logged in
}

// overLimit reports whether an error means that too much memory is in use.
func overLimit(err error) bool {
	_, over := errors.AsType[*inflight.Error](err)
	return over
}

// writeOverLimit responds that too much memory is in use. The response itself is not counted.
func writeOverLimit(w http.ResponseWriter, err error) {
	w.Header().Set("Retry-After", "1")
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusServiceUnavailable)
	_, _ = fmt.Fprintf(w, "{\"error\":%q}\n", err.Error()) // the client may have disconnected
}
