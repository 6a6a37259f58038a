package report

import (
	"fmt"
	"io"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
)

// Summary is what a run came to, for a person.
type Summary struct {
	Elapsed  time.Duration
	Cameras  []CameraSummary
	Messages *Messages // nil without MQTT
}

// CameraSummary is what one camera's frames came to over the whole run.
type CameraSummary struct {
	pipeline.CameraStats
	Displaced uint64 // by a newer frame before the network had time
	Damaged   uint64 // that could not be decoded
}

// Messages is what became of what was to be published, each a count.
type Messages struct {
	Events    uint64 // handed over, with what an earlier run had left
	Delivered uint64 // events and all others
	Dropped   uint64
	Waiting   uint64 // as far as they are kept, for the next run
}

// Print writes a line for each camera and one for the messages.
func (s *Summary) Print(out io.Writer) error {
	var text []byte
	text = fmt.Appendf(text, "ran %v\n", s.Elapsed.Round(100*time.Millisecond))
	for i := range s.Cameras {
		c := &s.Cameras[i]
		text = fmt.Appendf(text, "%s: %d frames, %.1f a second, %d displaced by newer ones, %d lost",
			c.Camera, c.Inferred, c.FPS, c.Displaced, c.DroppedError+c.Damaged)
		if c.DroppedMotion > 0 {
			text = fmt.Appendf(text, ", %d still", c.DroppedMotion)
		}
		if c.DroppedDeadline > 0 {
			text = fmt.Appendf(text, ", %d late", c.DroppedDeadline)
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
