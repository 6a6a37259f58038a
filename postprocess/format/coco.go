package format

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strconv"

	"github.com/edge-infer/edge-infer/postprocess"
)

// COCO writes a COCO result list, as read by pycocotools' loadRes. Set the fields before the first Write.
type COCO struct {
	Writer io.Writer
	// ID returns the id of an image, a number or a name; ImageID when nil.
	ID func(p *Image) any
	// Category returns the category id of a class; the class number when nil.
	Category func(class int) int64

	out     *bufio.Writer
	results int
}

// cocoResult is one entry of a COCO result list. The image id is a number, or the name of an image without one.
type cocoResult struct {
	ImageID    any        `json:"image_id"`
	CategoryID int64      `json:"category_id"`
	Box        [4]float32 `json:"bbox"` // x, y, width, height
	Score      float32    `json:"score"`
	// Keypoints are x, y and the probability of visibility.
	Keypoints    []float32   `json:"keypoints,omitempty"`
	Segmentation *cocoCounts `json:"segmentation,omitempty"`
	// Oriented is the oriented box: centre x and y, width, height and angle in radians. COCO has no such field.
	Oriented []float32 `json:"oriented,omitempty"`
}

// cocoCounts are the compressed run lengths of a mask.
type cocoCounts struct {
	Size   [2]int `json:"size"` // height, width
	Counts string `json:"counts"`
}

// details fills in the details of a detection on an image of the given size.
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

// Write appends the detections of an image.
func (c *COCO) Write(p *Image) error {
	for i := range p.Detections {
		f := &p.Detections[i]
		result := cocoResult{
			ImageID: ImageID(p), CategoryID: int64(f.Class), Box: [4]float32{f.X1, f.Y1, f.X2 - f.X1, f.Y2 - f.Y1}, Score: f.Score,
		}
		if c.ID != nil {
			result.ImageID = c.ID(p)
		}
		if c.Category != nil {
			result.CategoryID = c.Category(f.Class)
		}
		result.details(f.Detail, p.Width, p.Height)
		line, err := json.Marshal(result)
		if err != nil {
			return fmt.Errorf("write results: %w", err)
		}
		if err := c.append(line); err != nil {
			return err
		}
	}
	return nil
}

func (c *COCO) append(line []byte) error {
	if c.out == nil {
		c.out = bufio.NewWriter(c.Writer)
	}
	before := ",\n"
	if c.results == 0 {
		before = "[\n"
	}
	c.results++
	c.out.WriteString(before) //nolint:errcheck // the next Write returns the first error
	if _, err := c.out.Write(line); err != nil {
		return fmt.Errorf("write results: %w", err)
	}
	return nil
}

// Close ends the list, which is incomplete without it.
func (c *COCO) Close() error {
	if c.out == nil {
		c.out = bufio.NewWriter(c.Writer)
	}
	if c.results == 0 {
		c.out.WriteString("[") //nolint:errcheck // Flush returns the first error
	}
	c.out.WriteString("]\n") //nolint:errcheck
	if err := c.out.Flush(); err != nil {
		return fmt.Errorf("write results: %w", err)
	}
	return nil
}

// ImageID returns the number in an image's file name, as in COCO, or else the name; for videos the name with the frame number.
func ImageID(p *Image) any {
	name := Stem(p.Path)
	if p.Video {
		return name + "_" + strconv.Itoa(p.Frame)
	}
	if number, err := strconv.ParseInt(name, 10, 64); err == nil {
		return number
	}
	return name
}

// unusedIDs are the ids that COCO skips when it numbers its 80 classes from 1 to 90.
var unusedIDs = [...]int64{12, 26, 29, 30, 45, 66, 68, 69, 71, 83}

// Number, first and last of COCO's labels, which identify networks trained on COCO.
const (
	cocoClasses = 80
	firstLabel  = "person"
	lastLabel   = "toothbrush"
)

// CategoryIDs returns the category ids of a network's classes: COCO's for its 80 labels, otherwise the class numbers.
func CategoryIDs(labels []string) func(class int) int64 {
	if len(labels) != cocoClasses || labels[0] != firstLabel || labels[cocoClasses-1] != lastLabel {
		return func(class int) int64 { return int64(class) }
	}
	return func(class int) int64 {
		id := int64(class) + 1
		for _, unused := range unusedIDs {
			if id >= unused {
				id++
			}
		}
		return id
	}
}
