// Package annotate writes videos with detections, zones and lines drawn: copies of files for infer, and recordings of cameras for run.
package annotate

import (
	"fmt"
	"image/color"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/postprocess/draw"
	"github.com/edge-infer/edge-infer/postprocess/zone"
)

// Colours of zones and lines.
var zoneColour, lineColour = color.RGBA{R: 255, G: 214, A: 255}, color.RGBA{R: 255, G: 64, B: 64, A: 255}

// Shape is a zone or line with its counts.
type Shape struct {
	points []draw.Point
	line   bool
	text   string
}

// AppendShapes appends the zones and lines of a tracker with their counts of now, for images of that size.
func AppendShapes(shapes []Shape, t *pipeline.Tracker, width, height int) []Shape {
	add := func(line bool, text string, points ...zone.Point) {
		s := Shape{line: line, text: text}
		for _, p := range t.Config.Pixels(points, width, height) {
			s.points = append(s.points, draw.Point{X: float32(p.X), Y: float32(p.Y)})
		}
		shapes = append(shapes, s)
	}
	for i := range t.Config.Zones {
		z, count := &t.Config.Zones[i], t.ZoneCount(i)
		add(false, fmt.Sprintf("%s: %d, entered %d", z.Name, sum(count.Occupied), sum(count.Entered)), z.Points...)
	}
	for i := range t.Config.Lines {
		l, count := &t.Config.Lines[i], t.LineCount(i)
		add(true, fmt.Sprintf("%s: in %d, out %d", l.Name, sum(count.In), sum(count.Out)), l.From, l.To)
	}
	return shapes
}

// Draw draws shapes into an image.
func Draw(painter *draw.Painter, img draw.Image, shapes []Shape) error {
	for i := range shapes {
		s := &shapes[i]
		var err error
		if s.line {
			err = painter.Line(img, s.points[0], s.points[1], s.text, lineColour)
		} else {
			err = painter.Outline(img, s.points, true, s.text, zoneColour)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func sum(counts []int) (all int) {
	for _, n := range counts {
		all += n
	}
	return all
}
