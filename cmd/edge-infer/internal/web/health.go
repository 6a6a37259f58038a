package web

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/access"
)

// maxImageAge is the time without a frame after which a camera is down. A longer stall time of the camera takes precedence.
const maxImageAge = 10 * time.Second

// serveHealth responds 200 while the process is alive.
func (s *Server) serveHealth(w http.ResponseWriter, _ *http.Request) {
	fmt.Fprintln(w, "ok")
}

// serveReadiness responds 200 if every camera delivers frames, otherwise 503. Only clients with a role also get one line per camera that is
// down, with its name and the reason.
func (s *Server) serveReadiness(w http.ResponseWriter, r *http.Request) {
	status := s.status()
	if status.Opening != "" {
		http.Error(w, "not ready: "+status.Opening, http.StatusServiceUnavailable)
		return
	}
	now := time.Now()
	var down []string
	for i := range status.Cameras {
		if problem := status.Cameras[i].problem(now); problem != "" {
			down = append(down, "camera "+status.Cameras[i].Capture.Name+": "+problem)
		}
	}
	if len(down) > 0 {
		text := fmt.Sprintf("not ready: %d of %d cameras are down", len(down), len(status.Cameras))
		if s.access.Role(r) != access.NoRole {
			text += "\n" + strings.Join(down, "\n")
		}
		http.Error(w, text, http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ready")
}

// problem describes why a camera is down; empty for a running camera and for a video that has ended.
func (c *Camera) problem(now time.Time) string {
	stats, limit := &c.Capture, max(maxImageAge, c.Silence)
	seconds := func(d time.Duration) string { return fmt.Sprintf("%.0f s", d.Seconds()) }
	switch {
	case stats.State == capture.Ended:
		return ""
	case stats.State == capture.Running && now.Sub(stats.LastImage) >= limit:
		return "no image for " + seconds(now.Sub(stats.LastImage))
	case stats.State == capture.Running && c.Pipeline.Idle >= limit:
		return "frames arrive, but none has been inferred for " + seconds(c.Pipeline.Idle)
	case stats.State == capture.Running:
		return ""
	}
	text := fmt.Sprintf("%s since %s", stats.State, stats.Since.UTC().Format(time.RFC3339))
	if stats.Reason != "" {
		text += ": " + stats.Reason
	}
	if !stats.LastImage.IsZero() {
		text += "; last image " + stats.LastImage.UTC().Format(time.RFC3339)
	}
	if stats.Tries > 0 {
		text += fmt.Sprintf("; tried %d times", stats.Tries)
	}
	if !stats.NextTry.IsZero() {
		text += ", next at " + stats.NextTry.UTC().Format(time.RFC3339)
	}
	return text
}
