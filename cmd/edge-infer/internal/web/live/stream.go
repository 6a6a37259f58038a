package live

import (
	"net/http"
	"time"
)

// streamWriter writes an endless response with a deadline for each part.
type streamWriter struct {
	http.ResponseWriter
	controller *http.ResponseController
	timeout    time.Duration
}

func newStreamWriter(w http.ResponseWriter, timeout time.Duration) *streamWriter {
	s := &streamWriter{w, http.NewResponseController(w), timeout}
	_ = s.controller.SetReadDeadline(time.Time{}) // the request's deadline would end the stream
	return s
}

// Write implements io.Writer.
func (s *streamWriter) Write(data []byte) (int, error) {
	if err := s.controller.SetWriteDeadline(time.Now().Add(s.timeout)); err != nil {
		return 0, err
	}
	return s.ResponseWriter.Write(data)
}

func (s *streamWriter) flush() error {
	if err := s.controller.SetWriteDeadline(time.Now().Add(s.timeout)); err != nil {
		return err
	}
	return s.controller.Flush()
}
