package format

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"

	"github.com/edge-infer/edge-infer/postprocess"
)

// CSV writes a header and one row per detection, without details such as masks and keypoints.
type CSV struct {
	Writer io.Writer
	Labels []string

	out *csv.Writer
}

// columns returns the column names.
func columns() []string {
	return []string{"file", "frame", "width", "height", "class", "label", "score", "x1", "y1", "x2", "y2"}
}

// Write appends the detections of an image.
func (c *CSV) Write(p *Image) error {
	if err := c.begin(); err != nil {
		return err
	}
	for i := range p.Detections {
		f := &p.Detections[i]
		row := []string{
			p.Path, strconv.Itoa(p.Frame), strconv.Itoa(p.Width), strconv.Itoa(p.Height), strconv.Itoa(f.Class),
			postprocess.Label(c.Labels, f.Class),
		}
		for _, v := range []float32{f.Score, f.X1, f.Y1, f.X2, f.Y2} {
			row = append(row, strconv.FormatFloat(float64(v), 'f', -1, 32))
		}
		if err := c.out.Write(row); err != nil {
			return fmt.Errorf("write rows: %w", err)
		}
	}
	return nil
}

func (c *CSV) begin() error {
	if c.out != nil {
		return nil
	}
	c.out = csv.NewWriter(c.Writer)
	if err := c.out.Write(columns()); err != nil {
		return fmt.Errorf("write rows: %w", err)
	}
	return nil
}

// Close flushes the output.
func (c *CSV) Close() error {
	if err := c.begin(); err != nil {
		return err
	}
	c.out.Flush()
	if err := c.out.Error(); err != nil {
		return fmt.Errorf("write rows: %w", err)
	}
	return nil
}
