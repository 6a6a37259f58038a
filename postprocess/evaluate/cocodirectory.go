package evaluate

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// findCOCO finds the annotation file of a dataset's directory; empty when there is none.
func findCOCO(dir, split string) (string, error) {
	for _, name := range []string{"annotations.json", "_annotations.coco.json"} {
		if path := filepath.Join(dir, name); exists(path) {
			return path, nil
		}
	}
	annotations := filepath.Join(dir, "annotations")
	if filepath.Base(dir) == "annotations" {
		annotations = dir
	}
	files, err := filepath.Glob(filepath.Join(escapePattern(annotations), allFile+"*.json"))
	if err == nil && len(files) == 0 {
		files, err = filepath.Glob(filepath.Join(escapePattern(annotations), keypointFile+"*.json"))
	}
	if err != nil {
		return "", err
	}
	var names []string
	for _, file := range files {
		names = append(names, partOf(file))
	}
	chosen, err := choose(names, split)
	if err != nil {
		return "", fmt.Errorf("%s: %w", annotations, err)
	}
	if chosen < 0 {
		return "", nil
	}
	return files[chosen], nil
}

// How COCO names its files, before the part of the dataset: of all objects, and of people with keypoints.
const allFile, keypointFile = "instances_", "person_keypoints_"

// escapePattern makes a path mean itself to filepath.Glob.
func escapePattern(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}

// partOf is the part of a dataset that an annotation file is for: val2017 of instances_val2017.json and person_keypoints_val2017.json.
func partOf(file string) string {
	name := strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
	_, part, _ := strings.Cut(strings.TrimPrefix(name, "person_"), "_")
	return part
}

// readCOCO reads an annotation file and finds its images.
func readCOCO(path string) (*Dataset, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	dataset, err := parseCOCO(path, text)
	if err != nil {
		return nil, err
	}
	dataset.annotations = path
	dirs := imageDirs(path)
	missing, last := 0, ""
	for i := range dataset.Images {
		p := &dataset.Images[i]
		at := slices.IndexFunc(dirs, func(dir string) bool { return exists(filepath.Join(dir, p.Path)) })
		if at < 0 {
			missing, last = missing+1, p.Path
			continue
		}
		p.Path = filepath.Join(dirs[at], p.Path)
		dirs[0], dirs[at] = dirs[at], dirs[0] // the next one is there too, as a rule
	}
	if missing > 0 {
		return nil, fmt.Errorf("%d of the %d images of %s are not there, such as %s, in none of %s (are these the labels of other images?)",
			missing, len(dataset.Images), path, last, strings.Join(dirs, ", "))
	}
	return dataset, nil
}

// imageDirs are where the images of an annotation file may be: beside it or beside its directory, by themselves, in images/, or in a
// directory named after the part of the dataset.
func imageDirs(file string) (dirs []string) {
	dir := filepath.Dir(file)
	roots := []string{dir}
	if filepath.Base(dir) == "annotations" {
		roots = []string{filepath.Dir(dir), dir}
	}
	part := partOf(file)
	for _, root := range roots {
		if part != "" {
			dirs = append(dirs, filepath.Join(root, part), filepath.Join(root, "images", part))
		}
		dirs = append(dirs, filepath.Join(root, "images"), root)
	}
	return dirs
}
