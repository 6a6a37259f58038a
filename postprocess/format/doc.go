// Package format is how detections are written for other tools: COCO's list of results, label files as Ultralytics writes them, and rows of
// CSV. Numbers are in pixels of the image unless a format has shares of its sides.
package format

import (
	"path/filepath"
	"strings"

	"github.com/edge-infer/edge-infer/postprocess"
)

// Image is what is seen on one image of a file.
type Image struct {
	Path          string
	Video         bool // the file has more than one image
	Frame         int  // number in the video, from 0
	Width, Height int  // pixels
	Detections    []postprocess.Detection
}

// Stem is the name of a file without its directory and suffix.
func Stem(path string) string {
	base := filepath.Base(path)
	return strings.TrimSuffix(base, filepath.Ext(base))
}
