// Package format is how findings are written for other tools: COCO's list of results, label files as Ultralytics writes them, and rows of
// CSV. Numbers are in pixels of the picture unless a format has shares of its sides.
package format

import (
	"path/filepath"
	"strings"

	"github.com/edge-infer/edge-infer/postprocess"
)

// Picture is what is seen on one picture of a file.
type Picture struct {
	Path          string
	Film          bool // the file has more than one picture
	Frame         int  // number in the film, from 0
	Width, Height int  // pixels
	Findings      []postprocess.Finding
}

// Stem is the name of a file without its folder and suffix.
func Stem(path string) string {
	base := filepath.Base(path)
	return strings.TrimSuffix(base, filepath.Ext(base))
}
