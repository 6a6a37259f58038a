package evaluate

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"image"
	_ "image/jpeg" // for image sizes only
	_ "image/png"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	_ "golang.org/x/image/bmp"
	_ "golang.org/x/image/webp"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
)

// imageSuffixes lists the image formats whose size is read without decoding.
func imageSuffixes() []string { return []string{".jpg", ".jpeg", ".png", ".bmp", ".webp"} }

// readYOLO reads a directory with images/ and labels/, or with a subdirectory per split in both.
func readYOLO(dir, split string) (*Dataset, error) {
	images := filepath.Join(dir, "images")
	entries, err := os.ReadDir(images)
	if err != nil || !exists(filepath.Join(dir, "labels")) {
		return nil, fmt.Errorf("%s: %w: %s", dir, ErrNoLabels, known) //nolint:nilerr // the error lists what is missing
	}
	var parts []string
	for _, entry := range entries {
		if isDir(filepath.Join(images, entry.Name())) && exists(filepath.Join(dir, "labels", entry.Name())) {
			parts = append(parts, entry.Name())
		}
	}
	if len(parts) > 0 {
		chosen, err := choose(parts, split)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", images, err)
		}
		images = filepath.Join(images, parts[chosen])
	}
	listed, err := listImages(images)
	if err != nil {
		return nil, err
	}
	dataset := &Dataset{Images: listed}
	return dataset, dataset.readLabels(lineFormat{})
}

// isDir reports whether path is a directory or a link to one.
func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// listImages lists the images under a directory.
func listImages(dir string) (images []Image, err error) {
	// The separator makes WalkDir follow a linked directory.
	err = filepath.WalkDir(dir+string(filepath.Separator), func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !entry.IsDir() && slices.Contains(imageSuffixes(), strings.ToLower(filepath.Ext(path))) {
			images = append(images, Image{Path: path})
		}
		return nil
	})
	if err == nil && len(images) == 0 {
		err = fmt.Errorf("%w: %s holds no image (%s)", ErrNoLabels, dir, strings.Join(imageSuffixes(), ", "))
	}
	return images, err
}

// labelFile returns the label file of an image: in labels/ if the image is in images/, else next to it.
func labelFile(img string) string {
	const separator = string(filepath.Separator)
	base := strings.TrimSuffix(img, filepath.Ext(img)) + ".txt"
	if at := strings.LastIndex(base, separator+"images"+separator); at >= 0 {
		return base[:at] + separator + "labels" + base[at+len(separator+"images"):]
	}
	return base
}

// readLabels reads the size and the label file of each image. An image without label file has no objects. As in Ultralytics, images that
// cannot be read and those with an invalid line are left out.
func (d *Dataset) readLabels(format lineFormat) error {
	labelled := 0
	var bad ignored
	images := d.Images[:0]
	for _, p := range d.Images {
		exists, err := p.readLabels(format)
		if exists {
			labelled++
		}
		if err != nil {
			bad.add(err)
			continue
		}
		images = append(images, p)
	}
	total := len(d.Images)
	d.Images = images
	if err := d.ignore(bad, "images", total); err != nil {
		return err
	}
	if labelled == 0 {
		return fmt.Errorf("none of the %d images has a label file, such as %s (are these the labels of other images?)", len(d.Images),
			labelFile(d.Images[0].Path))
	}
	return nil
}

// readLabels reads the image's size and its label file, and reports whether there is one.
func (p *Image) readLabels(format lineFormat) (exists bool, err error) {
	p.shares = true
	p.Width, p.Height, err = measure(p.Path)
	if err != nil {
		return false, err
	}
	path := labelFile(p.Path)
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return true, err
	}
	p.Truths, err = format.parse(path, text, p.Width, p.Height)
	return true, err
}

func measure(path string) (width, height int, err error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, 0, err
	}
	defer file.Close()
	size, _, err := image.DecodeConfig(file)
	if err != nil {
		return 0, 0, fmt.Errorf("image %s: %w", path, err)
	}
	return size.Width, size.Height, nil
}

// lineFormat describes a line of a label file after the class: centre x, centre y, width and height, or the corners of an outline, all as
// shares of the image's sides.
type lineFormat struct {
	keypoints bool // after the box
	// points is the number of keypoints, each the numbers per keypoint: x, y and possibly visibility. Both are 0 if unknown.
	points, each int
	deviations   []float64 // OKS sigmas, nil if unknown
	classes      int       // of the description, 0 if unknown
}

// newLineFormat returns the format of a kpt_shape, which may be empty.
func newLineFormat(shape []int) lineFormat {
	f := lineFormat{keypoints: len(shape) > 0}
	if len(shape) == 2 && shape[0] > 0 && shape[0] <= engine.MaxKeypoints && (shape[1] == 2 || shape[1] == 3) {
		f.points, f.each = shape[0], shape[1]
	}
	return f
}

// fields returns how many numbers of a line are used, 0 for an invalid line.
func (f lineFormat) fields(count int) int {
	switch {
	case f.each > 0 && count == 5+f.points*f.each:
		return count
	case count == 5, f.keypoints && count > 5:
		return 5
	case count >= 7 && count%2 == 1:
		return count
	}
	return 0
}

// parse parses a label file. Duplicate lines count once. As in Ultralytics, classes may be written as 58.0 and coordinates may leave the
// image by 1 %, as rounding makes them.
func (f lineFormat) parse(name string, text []byte, width, height int) ([]Truth, error) {
	var truths []Truth
	lines := bufio.NewScanner(bytes.NewReader(bytes.TrimPrefix(text, []byte("\uFEFF"))))
	lines.Buffer(nil, 1<<20) // outlines may be long
	for number := 1; lines.Scan(); number++ {
		fields := strings.Fields(lines.Text())
		if len(fields) == 0 {
			continue
		}
		refuse := func(format string, arguments ...any) error {
			return fmt.Errorf("%s:%d: %s", name, number, fmt.Sprintf(format, arguments...))
		}
		count := f.fields(len(fields))
		if count == 0 {
			return nil, refuse("%d fields, a line is: class centre-x centre-y width height, or class and the corners of an outline", len(fields))
		}
		class, ok := parseClass(fields[0])
		if !ok {
			return nil, refuse("class %q is not a number from 0 to %d", fields[0], maxClass-1)
		}
		if f.classes > 0 && class >= f.classes {
			return nil, refuse("class %d, the data set names %d, from 0 on (add its name, or correct the line)", class, f.classes)
		}
		shares := make([]float64, count-1)
		for i, field := range fields[1:count] {
			var err error
			shares[i], err = strconv.ParseFloat(field, 64)
			flag := f.each == 3 && i >= 4 && (i-4)%3 == 2 // 0, 1 or 2
			if err != nil || !(shares[i] >= -tolerance && (shares[i] <= 1+tolerance || flag && shares[i] <= 2)) {
				return nil, refuse("%q is not a share of the image from 0 to 1", field)
			}
		}
		truth := f.truth(shares, width, height)
		truth.Class = class
		if !slices.ContainsFunc(truths, func(t Truth) bool { return t.Box == truth.Box && t.Class == truth.Class }) {
			truths = append(truths, truth)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return truths, nil
}

// tolerance is how far coordinates may leave the image, as a share of its side.
const tolerance = 0.01

// parseClass parses a class number, which may be written as 58.0.
func parseClass(field string) (class int, ok bool) {
	value, err := strconv.ParseFloat(field, 64)
	if err != nil || !(value >= 0 && value < maxClass) || value != math.Trunc(value) {
		return 0, false
	}
	return int(value), true
}

// classLine returns the file and line of the first object of a class, or only the file.
func classLine(path string, class int) string {
	text, _ := os.ReadFile(path)
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		fields := strings.Fields(strings.TrimPrefix(line, "\uFEFF"))
		if len(fields) == 0 {
			continue
		}
		if found, ok := parseClass(fields[0]); ok && found == class {
			return fmt.Sprintf("%s:%d", path, number)
		}
	}
	return path
}

// truth is the object of the numbers of a line.
func (f lineFormat) truth(shares []float64, width, height int) Truth {
	var t Truth
	if f.keypoints {
		if len(shares) > 4 {
			t.relative.points, t.relative.each, t.Deviations = shares[4:], f.each, f.deviations
		}
		shares = shares[:4]
	} else if len(shares) > 4 {
		for i := range shares {
			shares[i] = min(max(shares[i], 0), 1)
		}
		t.relative.outline = shares
	}
	t.Box = bounds(shares, float64(width), float64(height))
	t.place(width, height)
	return t
}

// bounds is the box of four shares, or around an outline of more.
func bounds(shares []float64, width, height float64) postprocess.Box {
	if len(shares) == 4 {
		x, y := shares[0]*width, shares[1]*height
		w, h := max(shares[2], 0)*width, max(shares[3], 0)*height
		return postprocess.Box{X1: float32(x - w/2), Y1: float32(y - h/2), X2: float32(x + w/2), Y2: float32(y + h/2)}
	}
	left, top := shares[0], shares[1]
	right, bottom := shares[0], shares[1]
	for i := 0; i < len(shares); i += 2 {
		left, right = min(left, shares[i]), max(right, shares[i])
		top, bottom = min(top, shares[i+1]), max(bottom, shares[i+1])
	}
	return postprocess.Box{
		X1: float32(left * width), Y1: float32(top * height), X2: float32(right * width), Y2: float32(bottom * height),
	}
}
