package main

import (
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/report"
	"github.com/edge-infer/edge-infer/mqtt"
)

// publisher gives each frame's detections to the broker and to whoever reads JSON lines. Frame goroutine only.
type publisher struct {
	client *mqtt.Client // nil when MQTT is off
	json   *report.JSON // nil without --json

	message mqtt.Detections
}

// Frame implements pipeline.Sink.
func (p *publisher) Frame(in *pipeline.Inferred) {
	m := &p.message
	m.Camera, m.Sequence, m.Time, m.Width, m.Height, m.Latency = in.Camera, in.Seq, in.Time, in.Width, in.Height, in.Latency
	m.Objects = m.Objects[:0]
	for i := range in.Detections {
		d := &in.Detections[i]
		m.Objects = append(m.Objects, mqtt.Detection{
			Label: report.Label(in.Labels, d.Class), Class: d.Class, Score: float64(d.Score),
			Box: [4]float64{float64(d.X1), float64(d.Y1), float64(d.X2), float64(d.Y2)},
		})
	}
	if p.client != nil {
		p.client.Detections(m)
	}
	if p.json != nil {
		p.json.Detections(m, in.Lossless)
	}
}

// limit stops the run after a number of frames, and holds back what comes after them.
type limit struct {
	left int
	stop func()
	next []pipeline.Sink
}

// Frame implements pipeline.Sink.
func (l *limit) Frame(in *pipeline.Inferred) {
	if l.left == 0 {
		return
	}
	for _, sink := range l.next {
		sink.Frame(in)
	}
	if l.left--; l.left == 0 {
		l.stop()
	}
}
