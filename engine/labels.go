package engine

import (
	_ "embed"
	"strings"
)

//go:embed coco.txt
var coco string

// COCOLabels returns the names of COCO's 80 classes one per line.
func COCOLabels() string { return coco }

// KnownLabels returns the labels of a well-known list, which needs no file: "coco" has the 80 classes of COCO. It returns nil for other
// names.
func KnownLabels(name string) []string {
	if name != "coco" {
		return nil
	}
	return strings.Split(strings.TrimSpace(coco), "\n")
}
