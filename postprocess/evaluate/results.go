package evaluate

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/edge-infer/edge-infer/postprocess"
)

// cocoResult is one finding as COCO's tools read it. An image id is a number, or the name of a picture that has none.
type cocoResult struct {
	ImageID    any        `json:"image_id"`
	CategoryID int64      `json:"category_id"`
	Box        [4]float32 `json:"bbox"` // x, y, width, height
	Score      float32    `json:"score"`
	// Keypoints are x, y and how likely each is visible.
	Keypoints    []float32   `json:"keypoints,omitempty"`
	Segmentation *cocoCounts `json:"segmentation,omitempty"`
	// Oriented is the turned box: the centre's x and y, width, height and angle in radians. COCO has no such thing.
	Oriented []float32 `json:"oriented,omitempty"`
}

// cocoCounts are a mask's compressed run lengths.
type cocoCounts struct {
	Size   [2]int `json:"size"` // height, width
	Counts string `json:"counts"`
}

// details fills in what a finding has beside its box, on a picture of that size.
func (r *cocoResult) details(d *postprocess.Detail, width, height int) {
	if d == nil {
		return
	}
	for _, k := range d.Keypoints {
		r.Keypoints = append(r.Keypoints, k.X, k.Y, k.Score)
	}
	if o := d.Oriented; o != nil {
		r.Oriented = []float32{o.X, o.Y, o.Width, o.Height, o.Angle}
	}
	if d.Mask != nil && width > 0 && height > 0 {
		counts := d.Mask.AppendRuns(nil, width, height).AppendCounts(nil)
		r.Segmentation = &cocoCounts{[2]int{height, width}, string(counts)}
	}
}

// WriteResults writes the findings of each of the dataset's pictures as COCO's list of results, with the ids of its annotation file. Where
// the labels came otherwise, an id is the number that the picture's file is named after, or that name, and a category the class.
func (d *Dataset) WriteResults(to io.Writer, findings [][]postprocess.Finding) error {
	out := bufio.NewWriter(to)
	before := "[\n"
	for i := range d.Pictures {
		for j := range findings[i] {
			f := &findings[i][j]
			result := cocoResult{
				ImageID: d.imageID(i), CategoryID: d.category(f.Class), Box: [4]float32{f.X1, f.Y1, f.X2 - f.X1, f.Y2 - f.Y1}, Score: f.Score,
			}
			result.details(f.Detail, d.Pictures[i].Width, d.Pictures[i].Height)
			line, err := json.Marshal(result)
			if err != nil {
				return fmt.Errorf("write results: %w", err)
			}
			out.WriteString(before) //nolint:errcheck // Flush gives the first error
			out.Write(line)         //nolint:errcheck
			before = ",\n"
		}
	}
	if before == "[\n" {
		out.WriteString("[") //nolint:errcheck
	}
	out.WriteString("]\n") //nolint:errcheck
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write results: %w", err)
	}
	return nil
}

func (d *Dataset) imageID(picture int) any {
	p := &d.Pictures[picture]
	if d.Categories != nil {
		return p.ID
	}
	name := strings.TrimSuffix(filepath.Base(p.Path), filepath.Ext(p.Path))
	if number, err := strconv.ParseInt(name, 10, 64); err == nil {
		return number
	}
	return name
}

func (d *Dataset) category(class int) int64 {
	if class < len(d.Categories) {
		return d.Categories[class]
	}
	return int64(class)
}
