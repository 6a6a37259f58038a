package format

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strconv"

	"github.com/edge-infer/edge-infer/postprocess"
)

// COCO writes the list of results that COCO's tools read, as pycocotools' loadRes does. The fields are set before the first Write.
type COCO struct {
	Writer io.Writer
	// ID is the id of an image, a number or a name; nil for ImageID, which knows no annotation file.
	ID func(p *Image) any
	// Category is the id of a class; nil for the class itself.
	Category func(class int) int64

	out     *bufio.Writer
	results int
}

// cocoResult is one detection as COCO's tools read it. An image id is a number, or the name of an image that has none.
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

// details fills in what a detection has beside its box, on an image of that size.
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

// Write adds the detections of an image.
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
	c.out.WriteString(before) //nolint:errcheck // the next Write gives the first error
	if _, err := c.out.Write(line); err != nil {
		return fmt.Errorf("write results: %w", err)
	}
	return nil
}

// Close ends the list. What was written before is no list without it.
func (c *COCO) Close() error {
	if c.out == nil {
		c.out = bufio.NewWriter(c.Writer)
	}
	if c.results == 0 {
		c.out.WriteString("[") //nolint:errcheck // Flush gives the first error
	}
	c.out.WriteString("]\n") //nolint:errcheck
	if err := c.out.Flush(); err != nil {
		return fmt.Errorf("write results: %w", err)
	}
	return nil
}

// ImageID is the number that an image's file is named after, as COCO's are, or that name; of a video with the number of the image.
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

// COCO numbers its 80 classes from 1 to 90: these ids stand for none.
var unusedIDs = [...]int64{12, 26, 29, 30, 45, 66, 68, 69, 71, 83}

// The ends of COCO's labels, by which a network that was trained on them is told.
const (
	cocoClasses = 80
	firstLabel  = "person"
	lastLabel   = "toothbrush"
)

// CategoryIDs gives the ids of a network's classes: those of COCO for its 80 labels, the numbers of the classes for any others.
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
