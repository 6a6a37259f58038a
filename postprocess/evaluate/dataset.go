package evaluate

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// Dataset is a set of pictures with labels.
type Dataset struct {
	// Labels are the class names by class number; nil when the files only give numbers.
	Labels   []string
	Pictures []Picture
}

// Picture is one picture of a dataset with its objects.
type Picture struct {
	Path          string
	Width, Height int // pixels
	Truths        []Truth
}

// ErrNoLabels is what errors.Is finds when a directory holds no labels that ReadDataset knows.
var ErrNoLabels = errors.New("no labels found")

// maxClass bounds class numbers, so that one bad line cannot make tables of its size.
const maxClass = 1 << 16

// ReadDataset reads a directory of labelled pictures: COCO as annotations.json beside images/ (or beside the pictures), or YOLO as
// labels/NAME.txt for images/NAME.jpg or .png. Every error names the file, and the line where there is one.
func ReadDataset(dir string) (*Dataset, error) {
	path := filepath.Join(dir, "annotations.json")
	text, err := os.ReadFile(path)
	switch {
	case err == nil:
		dataset, err := parseCOCO(path, text)
		if err != nil {
			return nil, err
		}
		missing := 0
		var last string
		for i := range dataset.Pictures {
			picture := &dataset.Pictures[i]
			name := picture.Path
			if picture.Path = locate(dir, name); !fileExists(picture.Path) {
				missing, last = missing+1, name
			}
		}
		if missing > 0 {
			return nil, fmt.Errorf("read dataset %s: %d of the %d pictures in annotations.json are not there, such as %s (are these the labels of other pictures?)",
				dir, missing, len(dataset.Pictures), last)
		}
		return dataset, nil
	case !errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("read dataset: %w", err)
	}
	return readYOLODirectory(dir)
}

// locate finds a picture that an annotation file names relative to the dataset or to its images folder.
func locate(dir, name string) string {
	path := filepath.Join(dir, name)
	if _, err := os.Stat(path); err != nil {
		if inImages := filepath.Join(dir, "images", name); fileExists(inImages) {
			return inImages
		}
	}
	return path
}

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Relabel changes the class numbers from the dataset's labels to those of a model. A dataset without names keeps its numbers.
func (d *Dataset) Relabel(labels []string) error {
	if d.Labels == nil {
		return nil
	}
	to := make([]int, len(d.Labels))
	for i, label := range d.Labels {
		to[i] = slices.Index(labels, label)
	}
	for i := range d.Pictures {
		truths := d.Pictures[i].Truths
		for j := range truths {
			class := to[truths[j].Class]
			if class < 0 {
				return fmt.Errorf("dataset has objects labelled %q, which the model does not know", d.Labels[truths[j].Class])
			}
			truths[j].Class = class
		}
	}
	d.Labels = slices.Clone(labels)
	return nil
}
