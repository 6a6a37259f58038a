package evaluate

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// findCOCO returns the annotation file of a dataset's directory, "" if there is none.
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

// Prefixes of COCO's files of all objects, and of people with keypoints.
const allFile, keypointFile = "instances_", "person_keypoints_"

// escapePattern escapes a path for filepath.Glob.
func escapePattern(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}

// partOf returns the split of an annotation file: val2017 for instances_val2017.json and person_keypoints_val2017.json.
func partOf(file string) string {
	name := strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
	_, part, _ := strings.Cut(strings.TrimPrefix(name, "person_"), "_")
	return part
}

// readCOCO reads an annotation file and locates its images.
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
	var missing ignored
	last := ""
	images := dataset.Images[:0]
	for _, p := range dataset.Images {
		at := slices.IndexFunc(dirs, func(dir string) bool { return exists(filepath.Join(dir, p.Path)) })
		if at < 0 {
			last = p.Path
			missing.add(fmt.Errorf("%s names %s, which is missing", path, p.Path))
			continue
		}
		p.Path = filepath.Join(dirs[at], p.Path)
		images = append(images, p)
		dirs[0], dirs[at] = dirs[at], dirs[0] // usually the next image is there too
	}
	total := len(dataset.Images)
	dataset.Images = images
	if dataset.ignore(missing, "images", total) != nil {
		return nil, fmt.Errorf("%d of the %d images of %s are missing, such as %s; searched %s (are these the labels of other images?)",
			missing.count, total, path, last, strings.Join(dirs, ", "))
	}
	return dataset, nil
}

// imageDirs returns the possible image directories of an annotation file: next to it or to its directory, images/, or a directory named
// after the split.
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
