package evaluate

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/edge-infer/edge-infer/internal/yamldepth"
)

// maxDescription bounds a data.yaml, which may name thousands of classes.
const maxDescription = 256 << 10

// description holds the fields of a data.yaml that are used here.
type description struct {
	Path  string  `yaml:"path"`
	Train entries `yaml:"train"`
	Val   entries `yaml:"val"`
	Test  entries `yaml:"test"`
	Names names   `yaml:"names"`
	// Keypoints is the number of keypoints and of numbers per keypoint, which follow a box on its line.
	Keypoints []int `yaml:"kpt_shape"`
	// Points are the keypoint names by class, Deviations their OKS sigmas.
	Points     map[int][]string `yaml:"kpt_names"`
	Deviations []float64        `yaml:"kpt_oks_sigmas"`
}

// lines returns the format of the label files.
func (d *description) lines() (lineFormat, error) {
	f := newLineFormat(d.Keypoints)
	f.classes = len(d.Names)
	if len(d.Deviations) == 0 {
		return f, nil
	}
	bad := func(s float64) bool { return !(s > 0 && s < 1e3) }
	if f.points == 0 || len(d.Deviations) != f.points || slices.ContainsFunc(d.Deviations, bad) {
		return f, fmt.Errorf("kpt_oks_sigmas %v are not a positive number for each of %d keypoints", d.Deviations, f.points)
	}
	f.deviations = d.Deviations
	return f, nil
}

// pointNames returns the keypoint names of each class that has some.
func (d *description) pointNames() (names [][]string) {
	for class := range d.Names {
		if own := d.Points[class]; len(own) > 0 {
			names = append(names, own)
		}
	}
	return names
}

// entries are the directories or list files of a split: one, or a list.
type entries []string

// UnmarshalYAML implements yaml.InterfaceUnmarshaler.
func (e *entries) UnmarshalYAML(unmarshal func(any) error) error {
	var one string
	if err := unmarshal(&one); err == nil {
		*e = nil
		if one != "" {
			*e = entries{one}
		}
		return nil
	}
	var many []string
	if err := unmarshal(&many); err != nil {
		return errors.New("a part of the dataset is a directory, a list file, or a list of them")
	}
	*e = many
	return nil
}

// names are the labels: a list, or a map from class numbers.
type names []string

// UnmarshalYAML implements yaml.InterfaceUnmarshaler.
func (n *names) UnmarshalYAML(unmarshal func(any) error) error {
	if unmarshal((*[]string)(n)) == nil {
		return nil
	}
	var numbered map[int]string
	if err := unmarshal(&numbered); err != nil {
		return errors.New("names are a list of labels, or a map from class numbers to labels")
	}
	*n = make(names, len(numbered))
	for class, name := range numbered {
		if class < 0 || class >= len(numbered) {
			return fmt.Errorf("names have class %d, but there are %d of them from 0 on", class, len(numbered))
		}
		(*n)[class] = name
	}
	return nil
}

// parseDescription parses a data.yaml; unknown fields are ignored.
func parseDescription(path string, text []byte) (d *description, err error) {
	if len(text) > maxDescription || yamldepth.Check(text) != nil {
		return nil, fmt.Errorf("%s is not a dataset description: over %d bytes, or nested too deeply", path, maxDescription)
	}
	defer func() {
		if recover() != nil { // the YAML parser panics on misplaced tags
			d, err = nil, fmt.Errorf("%s: not YAML that can be read", path)
		}
	}()
	d = new(description)
	err = yaml.NewDecoder(bytes.NewReader(text)).Decode(d)
	if err == nil || errors.Is(err, io.EOF) {
		return d, nil
	}
	message := err.Error()
	if positioned, ok := errors.AsType[yaml.Error](err); ok {
		message = positioned.GetMessage()
		if token := positioned.GetToken(); token != nil && token.Position != nil {
			path = fmt.Sprintf("%s:%d", path, token.Position.Line)
		}
	}
	message, _, _ = strings.Cut(message, "\n")
	return nil, fmt.Errorf("%s: %s", path, message)
}

// readUltralytics reads the dataset that a data.yaml describes.
func readUltralytics(path, split string) (*Dataset, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	d, err := parseDescription(path, text)
	if err != nil {
		return nil, err
	}
	parts := map[string]entries{"train": d.Train, "val": d.Val, "test": d.Test}
	var present []string
	for _, name := range preferred() {
		if len(parts[name]) > 0 {
			present = append(present, name)
		}
	}
	chosen, err := choose(present, split)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if chosen < 0 {
		return nil, fmt.Errorf("%s: %w: it names neither val nor train", path, ErrNoLabels)
	}
	format, err := d.lines()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	dataset := &Dataset{Labels: d.Names, Keypoints: d.pointNames()}
	for _, entry := range parts[present[chosen]] {
		images, err := d.images(filepath.Dir(path), entry)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", path, present[chosen], err)
		}
		dataset.Images = append(dataset.Images, images...)
	}
	return dataset, dataset.readLabels(format)
}

// images lists the images of a directory or list file of a description in dir.
func (d *description) images(dir, entry string) ([]Image, error) {
	place, tried := "", d.places(dir, entry)
	for _, path := range tried {
		if exists(path) {
			place = path
			break
		}
	}
	if place == "" {
		return nil, fmt.Errorf("no such directory or list: %s", strings.Join(tried, ", nor "))
	}
	if isDir(place) {
		return listImages(place)
	}
	return readList(place)
}

// places returns possible paths of an entry, best first. The path in a description is often from another machine, and entries often go one
// directory too high.
func (d *description) places(dir, entry string) (all []string) {
	if filepath.IsAbs(entry) {
		return []string{entry}
	}
	root := d.Path
	if !filepath.IsAbs(root) {
		root = filepath.Join(dir, root)
	}
	add := func(path string) {
		if !slices.Contains(all, path) {
			all = append(all, path)
		}
	}
	for _, base := range []string{root, dir} {
		add(filepath.Join(base, entry))
		if below, above := strings.CutPrefix(filepath.ToSlash(entry), "../"); above {
			add(filepath.Join(base, below))
		}
	}
	return all
}

// readList reads a file with one image per line; relative paths are relative to the file.
func readList(path string) (images []Image, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		name := strings.TrimSpace(line)
		if name == "" {
			continue
		}
		if !filepath.IsAbs(name) {
			name = filepath.Join(filepath.Dir(path), name)
		}
		if !exists(name) {
			return nil, fmt.Errorf("%s:%d: no such image: %s", path, number, name)
		}
		images = append(images, Image{Path: name})
	}
	return images, nil
}
