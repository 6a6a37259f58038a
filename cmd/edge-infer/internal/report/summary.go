package report

import (
	"fmt"
	"io"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
)

// Summary is the result of a run.
type Summary struct {
	Elapsed  time.Duration
	Cameras  []CameraSummary
	Messages *Messages // nil without MQTT
}

// CameraSummary counts the frames of one camera over the whole run.
type CameraSummary struct {
	pipeline.CameraStats
	DroppedNewer uint64 // replaced by a newer frame before the network was free
	Damaged      uint64 // could not be decoded, or not to their end
}

// Messages counts messages by their outcome.
type Messages struct {
	Events    uint64 // published, including those queued by an earlier run
	Delivered uint64 // events and all other messages
	Dropped   uint64
	Waiting   uint64 // queued on disk for the next run
}

// Print writes one line per camera and one for the messages.
func (s *Summary) Print(out io.Writer) error {
	var text []byte
	text = fmt.Appendf(text, "ran %v\n", s.Elapsed.Round(100*time.Millisecond))
	for i := range s.Cameras {
		c := &s.Cameras[i]
		text = fmt.Appendf(text, "%s: %d frames, %.1f fps, dropped %d (newer) %d (error)",
			c.Camera, c.Inferred, c.FPS, c.DroppedNewer, c.DroppedError+c.Damaged)
		if c.DroppedMotion > 0 {
			text = fmt.Appendf(text, " %d (motion)", c.DroppedMotion)
		}
		if deadline := c.DeadlineMissed + c.DroppedDeadline; deadline > 0 {
			text = fmt.Appendf(text, " %d (deadline)", deadline)
		}
		text = append(text, "; "...)
		if c.Inferred > 0 {
			text = fmt.Appendf(text, "latency p50 %.1f ms p99 %.1f ms; ", float64(c.P50.Microseconds())/1000, float64(c.P99.Microseconds())/1000)
		}
		text = fmt.Appendf(text, "%d detections\n", c.Detections)
	}
	if m := s.Messages; m != nil {
		text = fmt.Appendf(text, "mqtt: %d events, %d messages delivered, %d dropped, %d waiting\n", m.Events, m.Delivered, m.Dropped, m.Waiting)
	}
	_, err := out.Write(text)
	return err
}
