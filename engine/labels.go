package engine

import (
	"bufio"
	_ "embed"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

//go:embed coco.txt
var coco string

// COCOLabels returns the names of COCO's 80 classes in the format of ReadLabels.
func COCOLabels() string { return coco }

// KnownLabels returns the labels of a well-known list, which needs no file: "coco" has the 80 classes of COCO. It returns nil for other
// names.
func KnownLabels(name string) []string {
	if name != "coco" {
		return nil
	}
	return strings.Split(strings.TrimSpace(coco), "\n")
}

// ReadLabels reads a labels file: one class name per line, in the order of the class numbers. Blanks around a name, a byte-order mark and
// empty lines at the end are dropped; an empty line before the last name is an error, because it would shift or lose a class.
func ReadLabels(r io.Reader) ([]string, error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 64<<10)
	var labels []string
	empty := 0
	for number := 1; lines.Scan(); number++ {
		line := lines.Text()
		if number == 1 {
			line = strings.TrimPrefix(line, "\uFEFF")
		}
		line = strings.TrimSpace(line)
		switch {
		case line == "" && empty == 0:
			empty = number
		case line == "":
		case empty != 0:
			return nil, fmt.Errorf("labels line %d: empty, every class needs a name", empty)
		case !utf8.ValidString(line):
			return nil, fmt.Errorf("labels line %d: not UTF-8", number)
		case len(labels) == MaxLabels:
			return nil, fmt.Errorf("labels: more than %d names", MaxLabels)
		default:
			labels = append(labels, line)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("labels: %w", err)
	}
	if len(labels) == 0 {
		return nil, fmt.Errorf("labels: the file names no class")
	}
	return labels, nil
}
