package live

import (
	"io"
	"net/http"
	"time"
)

// ServeDetections streams server-sent events: "frame" with the detections of each frame, and "event".
func (f *Feed) ServeDetections(w http.ResponseWriter, r *http.Request) {
	_, leave, err := f.subscribe(true, nil)
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	defer leave()
	c := f.recorder.join()
	defer f.recorder.leave(c)
	w.Header().Set("Content-Type", "text/event-stream")
	out := newStreamWriter(w, f.Write)
	if _, err := io.WriteString(out, "retry: 1000\n\n"); err != nil || out.flush() != nil {
		return
	}
	for {
		var message []byte
		counted := int64(0)
		select {
		case <-r.Context().Done():
			return
		case message = <-c.messages:
			counted = int64(len(message))
		case <-time.After(f.Heartbeat): // detects a disconnected client
			message = []byte(":\n\n")
		}
		_, err := out.Write(message)
		f.Memory.Release(counted)
		if err != nil {
			return
		}
		if len(c.messages) == 0 && out.flush() != nil {
			return
		}
	}
}
