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
}

// WriteResults writes the findings of each of the dataset's pictures as COCO's list of results, with the ids of its annotation file. Where the
// labels came otherwise, an id is the number that the picture's file is named after, or that name, and a category the class.
func (d *Dataset) WriteResults(to io.Writer, findings [][]postprocess.Finding) error {
	out := bufio.NewWriter(to)
	before := "[\n"
	for i := range d.Pictures {
		for j := range findings[i] {
			f := &findings[i][j]
			line, err := json.Marshal(cocoResult{d.imageID(i), d.category(f.Class), [4]float32{f.X1, f.Y1, f.X2 - f.X1, f.Y2 - f.Y1}, f.Score})
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
