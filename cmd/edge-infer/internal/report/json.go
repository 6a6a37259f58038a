package report

import (
	"io"

	"github.com/edge-infer/edge-infer/mqtt/payload"
)

// JSON writes each frame's detections as one line, in the format of the MQTT message.
type JSON struct {
	lines  *Lines
	device string
}

// NewJSON returns a JSON that writes to out.
func NewJSON(out io.Writer, device string) *JSON {
	return &JSON{lines: NewLines(out, 1024), device: device}
}

// Detections writes one line. While the reader of the output is behind it blocks if wait is set; otherwise the line is dropped and counted.
func (j *JSON) Detections(d *payload.Detections, wait bool) {
	j.lines.Add(wait, func(line []byte) []byte { return append(d.AppendJSON(line, j.device), '\n') })
}

// Dropped returns the number of lines dropped because the reader was too slow.
func (j *JSON) Dropped() uint64 { return j.lines.Dropped() }

// Close writes the queued lines.
func (j *JSON) Close() error { return j.lines.Close() }
