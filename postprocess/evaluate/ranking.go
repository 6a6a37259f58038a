package evaluate

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/edge-infer/edge-infer/postprocess"
)

// Ranking counts how often a classifier's best class, and any of its best five, is the picture's. The zero value is ready.
type Ranking struct{ pictures, first, five int }

// Add takes what was found in a picture of that class, best first.
func (r *Ranking) Add(class int, findings []postprocess.Finding) {
	r.pictures++
	at := slices.IndexFunc(findings, func(f postprocess.Finding) bool { return f.Class == class })
	if at == 0 {
		r.first++
	}
	if at >= 0 && at < 5 {
		r.five++
	}
}

// Shares are the top-1 and top-5 accuracies, 0 to 1.
func (r *Ranking) Shares() (first, five float64) {
	if r.pictures == 0 {
		return 0, 0
	}
	return float64(r.first) / float64(r.pictures), float64(r.five) / float64(r.pictures)
}

// readFolders reads pictures for classifiers: a folder for each class, below that of the split where there are splits. It is nil for
// folders that hold something else.
func readFolders(dir, split string) (*Dataset, error) {
	classes := classFolders(dir)
	if len(classes) < 2 {
		var splits []string
		for _, name := range subfolders(dir) {
			if len(classFolders(filepath.Join(dir, name))) >= 2 {
				splits = append(splits, name)
			}
		}
		at, err := choose(splits, split)
		if len(splits) == 0 || err != nil || at < 0 {
			return nil, err
		}
		dir = filepath.Join(dir, splits[at])
		classes = classFolders(dir)
	}
	d := &Dataset{Labels: classes, Folders: true}
	for class, name := range classes {
		for _, file := range pictureFiles(filepath.Join(dir, name)) {
			width, height, err := measure(file)
			if err != nil {
				return nil, err
			}
			whole := Truth{Box: postprocess.Box{X2: float32(width), Y2: float32(height)}, Class: class}
			d.Pictures = append(d.Pictures, Picture{Path: file, Width: width, Height: height, shares: true, Truths: []Truth{whole}})
		}
	}
	return d, nil
}

// subfolders are the names of the folders in one, sorted.
func subfolders(dir string) (names []string) {
	entries, _ := os.ReadDir(dir) // what cannot be read has none
	for _, entry := range entries {
		if isFolder(filepath.Join(dir, entry.Name())) && !strings.HasPrefix(entry.Name(), ".") {
			names = append(names, entry.Name())
		}
	}
	return names
}

// classFolders are those of them that hold pictures and nothing that labels them. Folders called images belong to detectors.
func classFolders(dir string) (names []string) {
	for _, name := range subfolders(dir) {
		if name == "images" || name == "labels" {
			return nil
		}
		if len(pictureFiles(filepath.Join(dir, name))) > 0 {
			names = append(names, name)
		}
	}
	return names
}

func pictureFiles(dir string) (files []string) {
	entries, _ := os.ReadDir(dir)
	for _, entry := range entries {
		if slices.Contains(pictureSuffixes(), strings.ToLower(filepath.Ext(entry.Name()))) {
			files = append(files, filepath.Join(dir, entry.Name()))
		}
	}
	return files
}
