package web

import (
	"fmt"
	"net/http"
	"sync"
	"time"
)

// standstill is how long no frame may come through before the daemon is not ready.
const standstill = 10 * time.Second

// health remembers whether frames advance.
type health struct {
	mutex    sync.Mutex
	inferred uint64
	advanced time.Time
}

// serveHealth answers that the process lives. It looks at nothing else.
func (s *Server) serveHealth(w http.ResponseWriter, _ *http.Request) {
	fmt.Fprintln(w, "ok")
}

// serveReadiness answers whether frames come through.
func (s *Server) serveReadiness(w http.ResponseWriter, _ *http.Request) {
	var inferred uint64
	status := s.status()
	for i := range status.Cameras {
		inferred += status.Cameras[i].Pipeline.Inferred
	}
	if problem := s.health.check(inferred, time.Now()); problem != "" {
		http.Error(w, "not ready: "+problem, http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ready")
}

// check says what is wrong, nothing when frames have come since the check before or in the last seconds.
func (h *health) check(inferred uint64, now time.Time) string {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if inferred != h.inferred {
		h.inferred, h.advanced = inferred, now
	}
	switch still := now.Sub(h.advanced); {
	case h.advanced.IsZero():
		return "no frame has been inferred yet"
	case still >= standstill:
		return fmt.Sprintf("no frame for %.0f seconds", still.Seconds())
	}
	return ""
}
