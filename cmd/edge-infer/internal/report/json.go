package report

import (
	"io"

	"github.com/edge-infer/edge-infer/mqtt/payload"
)

// JSON writes each frame's detections as the line that MQTT subscribers get.
type JSON struct {
	lines  *Lines
	device string
}

// NewJSON writes to out.
func NewJSON(out io.Writer, device string) *JSON {
	return &JSON{lines: NewLines(out, 1024), device: device}
}

// Detections writes one line; with wait it blocks while the reader of the output is behind, without it the line is dropped and counted.
func (j *JSON) Detections(d *payload.Detections, wait bool) {
	j.lines.Add(wait, func(line []byte) []byte { return append(d.AppendJSON(line, j.device), '\n') })
}

// Dropped counts the lines that the output's reader was too slow for.
func (j *JSON) Dropped() uint64 { return j.lines.Dropped() }

// Close writes what waits.
func (j *JSON) Close() error { return j.lines.Close() }
