package evaluate

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Dataset is a set of labelled images.
type Dataset struct {
	// Labels are the class names by class number; nil if the files only contain numbers.
	Labels []string
	Images []Image
	// Keypoints holds the keypoint names of each class that has some.
	Keypoints [][]string
	// Categories are the COCO category ids by class; nil for other formats.
	Categories []int64
	// ClassDirectories reports a classification dataset: the directory of each image is named after its class.
	ClassDirectories bool

	// Ignored are what was left out because it cannot be used: how many entries of how many, and the first one's file and line.
	Ignored []string

	annotations string // COCO annotation file
}

// maxIgnored is the share of images or annotations that may be unusable.
const maxIgnored = 0.01

// ignored counts unusable entries of a dataset.
type ignored struct {
	count int
	first error
}

func (i *ignored) add(err error) {
	i.count++
	if i.first == nil {
		i.first = err
	}
}

// ignore records unusable entries, or returns an error with the first one if they are too many of all.
func (d *Dataset) ignore(bad ignored, what string, all int) error {
	switch {
	case bad.count == 0:
		return nil
	case float64(bad.count) <= maxIgnored*float64(all):
		d.Ignored = append(d.Ignored, fmt.Sprintf("%d of %d %s, the first: %v", bad.count, all, what, bad.first))
		return nil
	case bad.count == 1:
		return bad.first
	}
	return fmt.Errorf("%w, and %d more of %d %s", bad.first, bad.count-1, all, what)
}

// Image is one image of a dataset with its objects.
type Image struct {
	Path          string
	ID            int64 // COCO image id
	Width, Height int   // pixels
	Truths        []Truth

	shares bool // the labels are shares of the sides
}

// Category returns the COCO category id of a class, or the class number for other formats.
func (d *Dataset) Category(class int) int64 {
	if class < len(d.Categories) {
		return d.Categories[class]
	}
	return int64(class)
}

// ErrNoLabels reports a directory without labels in a known format.
var ErrNoLabels = errors.New("no labels found")

// maxClass bounds class numbers, so that a bad line cannot cause huge tables.
const maxClass = 1 << 16

// known lists the formats of ReadDataset for messages.
const known = "it needs annotations/instances_*.json or annotations.json (COCO), data.yaml (Ultralytics), or images/ and labels/ (YOLO)"

// ReadDataset reads a labelled dataset: a COCO directory or JSON file, an Ultralytics data.yaml or its directory, or a directory with
// labels/NAME.txt for each images/NAME.jpg. split selects a part such as val; if it is empty, the validation part or else the only part is
// read. Errors contain the file and, if applicable, the line.
func ReadDataset(path, split string) (*Dataset, error) {
	dataset, err := read(path, split)
	if err != nil {
		return nil, fmt.Errorf("read dataset: %w", err)
	}
	if len(dataset.Images) == 0 {
		return nil, fmt.Errorf("read dataset: %w: %s names no image", ErrNoLabels, path)
	}
	return dataset, nil
}

func read(path, split string) (*Dataset, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		switch strings.ToLower(filepath.Ext(path)) {
		case ".json":
			return readCOCO(path)
		case ".yaml", ".yml":
			return readUltralytics(path, split)
		}
		return nil, fmt.Errorf("%w: %s is neither a directory nor a .json or .yaml file", ErrNoLabels, path)
	}
	annotations, err := findCOCO(path, split)
	switch {
	case err != nil:
		return nil, err
	case annotations != "":
		return readCOCO(annotations)
	}
	for _, name := range []string{"data.yaml", "data.yml", "dataset.yaml"} {
		if file := filepath.Join(path, name); exists(file) {
			return readUltralytics(file, split)
		}
	}
	if dataset, err := readDirs(path, split); dataset != nil || err != nil {
		return dataset, err
	}
	return readYOLO(path, split)
}

// preferred lists the splits for measuring a model, best first.
func preferred() []string { return []string{"val", "valid", "validation", "test", "train"} }

// choose returns the index of the name that begins with the split, such as val2017, or without a split the best one. It returns -1 if there
// is none; several matches are an error.
func choose(names []string, split string) (int, error) {
	wanted := preferred()
	if split != "" {
		wanted = []string{split}
	} else if len(names) == 1 {
		return 0, nil
	}
	for _, want := range wanted {
		if i := slices.Index(names, want); i >= 0 {
			return i, nil
		}
		found := -1
		for i, name := range names {
			if !strings.HasPrefix(name, want) {
				continue
			}
			if found >= 0 {
				return -1, fmt.Errorf("there are %s and %s (choose one with --split)", names[found], name)
			}
			found = i
		}
		if found >= 0 {
			return found, nil
		}
	}
	if len(names) == 0 {
		return -1, nil
	}
	if split != "" {
		return -1, fmt.Errorf("there is no %s, only %s (choose one with --split)", split, strings.Join(names, ", "))
	}
	return -1, fmt.Errorf("there are %s (choose one with --split)", strings.Join(names, ", "))
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Fit adapts the labels to the size of the decoded image. Decoding applies the EXIF orientation, which may swap the sides: relative labels
// are converted, labels in pixels are an error.
func (p *Image) Fit(width, height int) error {
	switch {
	case p.Width == width && p.Height == height:
		return nil
	case !p.shares:
		return fmt.Errorf("%s is %dx%d, its labels are for %dx%d (are these the labels of other images?)", p.Path, width, height, p.Width,
			p.Height)
	}
	x, y := float32(width)/float32(p.Width), float32(height)/float32(p.Height)
	for i := range p.Truths {
		box := &p.Truths[i].Box
		box.X1 *= x
		box.Y1 *= y
		box.X2 *= x
		box.Y2 *= y
		p.Truths[i].place(width, height)
	}
	p.Width, p.Height = width, height
	return nil
}

// Relabel converts class numbers from the dataset's labels to those of a model, by name. A dataset without names keeps its numbers. If only
// is not empty, objects with other labels are removed.
func (d *Dataset) Relabel(labels, only []string) error {
	if len(d.Labels) == 0 {
		if err := d.checkClasses(len(labels)); err != nil {
			return err
		}
		d.keep(labels, only)
		return nil
	}
	if len(labels) == 0 {
		return errors.New("the model has no labels to match with those of the dataset (--labels FILE provides them)")
	}
	to := make([]int, len(d.Labels))
	categories := make([]int64, len(labels))
	for i, label := range d.Labels {
		to[i] = indexLabel(labels, label)
		if to[i] >= 0 && d.Categories != nil {
			categories[to[i]] = d.Categories[i]
		}
	}
	if d.ClassDirectories && len(labels) == len(d.Labels) && slices.Max(to) < 0 { // other names in the same order, such as WordNet's
		for i := range to {
			to[i] = i
		}
	}
	for i := range d.Images {
		truths := d.Images[i].Truths
		for j := range truths {
			class := to[truths[j].Class]
			if class < 0 && len(only) == 0 {
				return fmt.Errorf("dataset has objects labelled %q, which the model does not have "+
					"(its labels: %s; --classes selects others)", d.Labels[truths[j].Class], abridged(labels))
			}
			truths[j].Class = class
		}
	}
	d.Labels = slices.Clone(labels)
	if d.Categories != nil {
		d.Categories = categories
	}
	d.keep(labels, only)
	return nil
}

// checkClasses returns an error for an object of a class beyond those of a model, of which 0 is any number.
func (d *Dataset) checkClasses(count int) error {
	if count == 0 {
		return nil
	}
	for i := range d.Images {
		for j := range d.Images[i].Truths {
			if class := d.Images[i].Truths[j].Class; class >= count {
				return fmt.Errorf("%s: class %d, the model has %d, from 0 on", classLine(labelFile(d.Images[i].Path), class), class, count)
			}
		}
	}
	return nil
}

// keep removes the objects of other labels, none if only is empty.
func (d *Dataset) keep(labels, only []string) {
	if len(only) == 0 {
		return
	}
	for i := range d.Images {
		p := &d.Images[i]
		p.Truths = slices.DeleteFunc(p.Truths, func(t Truth) bool {
			return t.Class < 0 || t.Class >= len(labels) || !slices.Contains(only, labels[t.Class])
		})
	}
}

// abridged lists the first of many labels.
func abridged(labels []string) string {
	const most = 8
	if len(labels) <= most {
		return strings.Join(labels, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(labels[:most], ", "), len(labels)-most)
}

// indexLabel returns the index of a label, compared literally and then by spelling; -1 if it is missing.
func indexLabel(labels []string, label string) int {
	if i := slices.Index(labels, label); i >= 0 {
		return i
	}
	return slices.IndexFunc(labels, func(other string) bool { return spelling(other) == spelling(label) })
}

// spelling normalizes a label: letter case, underscores, hyphens and spaces, and the names of COCO classes in Pascal VOC and Darknet's COCO
// list.
func spelling(label string) string {
	plain := strings.NewReplacer("_", "", "-", "", " ", "").Replace(strings.ToLower(label))
	switch plain {
	case "aeroplane":
		return "airplane"
	case "motorbike":
		return "motorcycle"
	case "sofa":
		return "couch"
	case "tvmonitor":
		return "tv"
	}
	return plain
}

// formatKeypoints lists the keypoint names of all classes.
func formatKeypoints(network [][]string) string {
	var all []string
	for _, names := range network {
		if text := abridged(names); text != "" && !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	return strings.Join(all, " and ")
}

// CheckKeypoints refuses a network with other keypoints than the labelled ones. Either may have no names. COCO labels keypoints in a
// separate file.
func (d *Dataset) CheckKeypoints(network [][]string) error {
	people := filepath.Join(filepath.Dir(d.annotations), keypointFile+partOf(d.annotations)+".json")
	if strings.HasPrefix(filepath.Base(d.annotations), allFile) && exists(people) {
		return fmt.Errorf("%s labels no keypoints (name the file that does: %s)", d.annotations, people)
	}
	for _, labelled := range d.Keypoints {
		same := func(names []string) bool { return names == nil || slices.Equal(names, labelled) }
		if len(network) > 0 && !slices.ContainsFunc(network, same) {
			return fmt.Errorf("the dataset labels keypoints %s, the network gives %s (they must be the same, in the same order)",
				abridged(labelled), formatKeypoints(network))
		}
	}
	return nil
}
