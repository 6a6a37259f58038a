package web

import (
	"net/http"
	"time"
)

// heartbeat is how often something is written to a stream that has nothing to say.
const heartbeat = 10 * time.Second

// streamWriter writes an answer without end. The client has writeTimeout for each piece; one that does not take it is dropped.
type streamWriter struct {
	http.ResponseWriter
	controller *http.ResponseController
}

func newStreamWriter(w http.ResponseWriter) *streamWriter {
	s := &streamWriter{w, http.NewResponseController(w)}
	_ = s.controller.SetReadDeadline(time.Time{}) // that of the request would end the stream
	return s
}

// Write implements io.Writer.
func (s *streamWriter) Write(data []byte) (int, error) {
	if err := s.controller.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return 0, err
	}
	return s.ResponseWriter.Write(data)
}

func (s *streamWriter) flush() error {
	if err := s.controller.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	return s.controller.Flush()
}
