package evaluate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"sort"
	"strings"

	"github.com/edge-infer/edge-infer/postprocess"
)

type cocoImage struct {
	ID       int64  `json:"id"`
	FileName string `json:"file_name"`
	Width    int    `json:"width"`
	Height   int    `json:"height"`
}

type cocoCategory struct {
	ID   int64  `json:"id"`
	Name string `json:"name"`
	// keypoint names
	Keypoints []string `json:"keypoints"`
}

type cocoAnnotation struct {
	ImageID    int64     `json:"image_id"`
	CategoryID int64     `json:"category_id"`
	Box        []float64 `json:"bbox"`
	Crowd      int       `json:"iscrowd"`
	Area       float64   `json:"area"`
	// Labels of other tasks: x, y and visibility (0 if unlabelled) of each keypoint; polygons or run lengths.
	Keypoints    []float64       `json:"keypoints"`
	Segmentation json.RawMessage `json:"segmentation"`

	line int
}

// cocoReader parses an annotation file member by member, so that every error has a line.
type cocoReader struct {
	name        string
	text        []byte
	decoder     *json.Decoder
	images      []cocoImage
	imageLines  []int
	categories  []cocoCategory
	annotations []cocoAnnotation
	// unusable entries
	badImages, badAnnotations ignored
	missing                   map[int64]bool // unusable images, whose annotations do not count
}

// parseCOCO reads an annotation file. Classes are numbered by ascending category id, the order that models use for the COCO categories and
// the demo scenes.
func parseCOCO(name string, text []byte) (*Dataset, error) {
	text = bytes.TrimPrefix(text, []byte("\uFEFF"))
	r := &cocoReader{name: name, text: text, decoder: json.NewDecoder(bytes.NewReader(text)), missing: map[int64]bool{}}
	if err := r.read(); err != nil {
		return nil, err
	}
	return r.dataset()
}

// line returns the line number at an offset, after skipping blank space before the next value.
func (r *cocoReader) line(offset int64) int {
	offset = min(offset, int64(len(r.text)))
	rest := r.text[offset:]
	offset += int64(len(rest) - len(bytes.TrimLeft(rest, " \t\r\n,:")))
	return 1 + bytes.Count(r.text[:offset], []byte{'\n'})
}

func (r *cocoReader) refuse(err error) error {
	offset := r.decoder.InputOffset()
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		offset = syntax.Offset
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err, offset = errors.New("the file ends too early"), int64(len(r.text))
	}
	return fmt.Errorf("%s:%d: %s", r.name, r.line(offset), strings.TrimPrefix(err.Error(), "json: "))
}

func (r *cocoReader) read() error {
	if err := r.open('{', "the file"); err != nil {
		return err
	}
	for r.decoder.More() {
		key, err := r.decoder.Token()
		if err != nil {
			return r.refuse(err)
		}
		switch key {
		case "images":
			err = list(r, "images", func(v cocoImage, line int) {
				r.images = append(r.images, v)
				r.imageLines = append(r.imageLines, line)
			}, func(v cocoImage, err error) {
				r.badImages.add(err)
				r.missing[v.ID] = true
			})
		case "categories":
			err = list(r, "categories", func(v cocoCategory, _ int) { r.categories = append(r.categories, v) }, nil)
		case "annotations":
			err = list(r, "annotations", func(v cocoAnnotation, line int) {
				v.line = line
				r.annotations = append(r.annotations, v)
			}, func(_ cocoAnnotation, err error) { r.badAnnotations.add(err) })
		default:
			var skipped json.RawMessage
			err = r.decoder.Decode(&skipped)
			if err != nil {
				err = r.refuse(err)
			}
		}
		if err != nil {
			return err
		}
	}
	if _, err := r.decoder.Token(); err != nil {
		return r.refuse(err)
	}
	return nil
}

func (r *cocoReader) open(want json.Delim, what string) error {
	token, err := r.decoder.Token()
	if err != nil {
		return r.refuse(err)
	}
	if token != want {
		return r.refuse(fmt.Errorf("%s must start with %q", what, rune(want)))
	}
	return nil
}

// list reads a list. bad gets entries of the wrong form, as far as they could be decoded; if it is nil, they are an error.
func list[T any](r *cocoReader, what string, add func(T, int), bad func(T, error)) error {
	if err := r.open('[', what); err != nil {
		return err
	}
	for r.decoder.More() {
		line := r.line(r.decoder.InputOffset())
		var value T
		err := r.decoder.Decode(&value)
		var form *json.UnmarshalTypeError
		switch {
		case err == nil:
			add(value, line)
		case bad != nil && errors.As(err, &form): // the decoder is after the entry
			bad(value, fmt.Errorf("%s:%d: %s", r.name, line, strings.TrimPrefix(err.Error(), "json: ")))
		default:
			return r.refuse(err)
		}
	}
	if _, err := r.decoder.Token(); err != nil {
		return r.refuse(err)
	}
	return nil
}

func (r *cocoReader) dataset() (*Dataset, error) {
	sort.SliceStable(r.categories, func(i, j int) bool { return r.categories[i].ID < r.categories[j].ID })
	d := &Dataset{}
	classes := make(map[int64]int, len(r.categories))
	for _, category := range r.categories {
		classes[category.ID] = len(d.Labels)
		d.Labels = append(d.Labels, category.Name)
		d.Categories = append(d.Categories, category.ID)
		if len(category.Keypoints) > 0 {
			d.Keypoints = append(d.Keypoints, category.Keypoints)
		}
	}
	images := make(map[int64]int, len(r.images))
	for i, im := range r.images {
		if im.FileName == "" || im.Width < 1 || im.Height < 1 {
			r.badImages.add(fmt.Errorf("%s:%d: image %d needs file_name, width and height", r.name, r.imageLines[i], im.ID))
			r.missing[im.ID] = true
			continue
		}
		if !filepath.IsLocal(im.FileName) {
			return nil, fmt.Errorf("%s:%d: file name %q leaves the dataset's directory", r.name, r.imageLines[i], im.FileName)
		}
		if _, twice := images[im.ID]; twice {
			return nil, fmt.Errorf("%s:%d: image id %d is used twice", r.name, r.imageLines[i], im.ID)
		}
		images[im.ID] = len(d.Images)
		d.Images = append(d.Images, Image{Path: im.FileName, ID: im.ID, Width: im.Width, Height: im.Height})
	}
	all := len(r.annotations) + r.badAnnotations.count
	for i := range r.annotations {
		a := &r.annotations[i]
		img, ok := images[a.ImageID]
		if !ok {
			r.miss(a)
			continue
		}
		truth, err := r.truth(a, classes, &d.Images[img])
		if err != nil {
			r.badAnnotations.add(fmt.Errorf("%s:%d: %w", r.name, a.line, err))
			continue
		}
		d.Images[img].Truths = append(d.Images[img].Truths, truth)
	}
	if err := d.ignore(r.badImages, "images", len(d.Images)+r.badImages.count); err != nil {
		return nil, err
	}
	return d, d.ignore(r.badAnnotations, "annotations", all)
}

// miss counts the image of an annotation that is not in the list, once.
func (r *cocoReader) miss(a *cocoAnnotation) {
	if !r.missing[a.ImageID] {
		r.missing[a.ImageID] = true
		r.badImages.add(fmt.Errorf("%s:%d: annotation of image %d, which is not in the list of images", r.name, a.line, a.ImageID))
	}
}

// truth returns the object of an annotation.
func (r *cocoReader) truth(a *cocoAnnotation, classes map[int64]int, of *Image) (Truth, error) {
	class, ok := classes[a.CategoryID]
	if !ok {
		return Truth{}, fmt.Errorf("category %d is not in the list of categories", a.CategoryID)
	}
	const far = 1e6
	if len(a.Box) != 4 || !(math.Abs(a.Box[0]) < far && math.Abs(a.Box[1]) < far && a.Box[2] >= 0 && a.Box[2] < far && a.Box[3] >= 0 &&
		a.Box[3] < far) {
		return Truth{}, fmt.Errorf("bbox %v is not x, y, width, height in pixels", a.Box)
	}
	mask, err := parseSegmentation(a.Segmentation, of.Width, of.Height)
	if err != nil {
		return Truth{}, fmt.Errorf("segmentation: %w", err)
	}
	keypoints, err := parseKeypoints(a.Keypoints)
	if err != nil {
		return Truth{}, fmt.Errorf("keypoints: %w", err)
	}
	return Truth{
		Box: postprocess.Box{
			X1: float32(a.Box[0]), Y1: float32(a.Box[1]), X2: float32(a.Box[0] + a.Box[2]), Y2: float32(a.Box[1] + a.Box[3]),
		},
		Class: class,
		Crowd: a.Crowd != 0,
		Mask:  mask, Keypoints: keypoints, Area: a.Area,
	}, nil
}
