package evaluate

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/edge-infer/edge-infer/postprocess"
)

// TopK counts how often a classifier's best class, and any of its best five, is correct. The zero value is ready.
type TopK struct{ images, first, five int }

// Add adds the classification of an image of that class, best first.
func (r *TopK) Add(class int, detections []postprocess.Detection) {
	r.images++
	at := slices.IndexFunc(detections, func(f postprocess.Detection) bool { return f.Class == class })
	if at == 0 {
		r.first++
	}
	if at >= 0 && at < 5 {
		r.five++
	}
}

// Accuracy returns the top-1 and top-5 accuracies, 0 to 1.
func (r *TopK) Accuracy() (first, five float64) {
	if r.images == 0 {
		return 0, 0
	}
	return float64(r.first) / float64(r.images), float64(r.five) / float64(r.images)
}

// readDirs reads a classification dataset: a directory per class, below that of the split if there are splits. It returns nil for other
// directories.
func readDirs(dir, split string) (*Dataset, error) {
	classes := classDirs(dir)
	if len(classes) < 2 {
		var splits []string
		for _, name := range subdirs(dir) {
			if len(classDirs(filepath.Join(dir, name))) >= 2 {
				splits = append(splits, name)
			}
		}
		at, err := choose(splits, split)
		if len(splits) == 0 || err != nil || at < 0 {
			return nil, err
		}
		dir = filepath.Join(dir, splits[at])
		classes = classDirs(dir)
	}
	d := &Dataset{Labels: classes, ClassDirectories: true}
	for class, name := range classes {
		for _, file := range imageFiles(filepath.Join(dir, name)) {
			width, height, err := measure(file)
			if err != nil {
				return nil, err
			}
			whole := Truth{Box: postprocess.Box{X2: float32(width), Y2: float32(height)}, Class: class}
			d.Images = append(d.Images, Image{Path: file, Width: width, Height: height, shares: true, Truths: []Truth{whole}})
		}
	}
	return d, nil
}

// subdirs returns the names of subdirectories in order.
func subdirs(dir string) (names []string) {
	entries, _ := os.ReadDir(dir) // unreadable directories count as empty
	for _, entry := range entries {
		if isDir(filepath.Join(dir, entry.Name())) && !strings.HasPrefix(entry.Name(), ".") {
			names = append(names, entry.Name())
		}
	}
	return names
}

// classDirs returns the subdirectories that contain images but no labels; images/ and labels/ belong to detection datasets.
func classDirs(dir string) (names []string) {
	for _, name := range subdirs(dir) {
		if name == "images" || name == "labels" {
			return nil
		}
		if len(imageFiles(filepath.Join(dir, name))) > 0 {
			names = append(names, name)
		}
	}
	return names
}

func imageFiles(dir string) (files []string) {
	entries, _ := os.ReadDir(dir)
	for _, entry := range entries {
		if slices.Contains(imageSuffixes(), strings.ToLower(filepath.Ext(entry.Name()))) {
			files = append(files, filepath.Join(dir, entry.Name()))
		}
	}
	return files
}
