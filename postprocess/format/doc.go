// Package format writes detections for other tools: COCO result lists, label files as Ultralytics writes them, and CSV. Numbers are in
// pixels of the image unless a format uses shares of its sides.
package format

import (
	"path/filepath"
	"strings"

	"github.com/edge-infer/edge-infer/postprocess"
)

// Image holds the detections of one image of a file.
type Image struct {
	Path          string
	Video         bool // the file is a video
	Frame         int  // number in the video, from 0
	Width, Height int  // pixels
	Detections    []postprocess.Detection
}

// Stem returns the name of a file without directory and extension.
func Stem(path string) string {
	base := filepath.Base(path)
	return strings.TrimSuffix(base, filepath.Ext(base))
}
