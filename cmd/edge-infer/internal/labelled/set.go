// Package labelled is a set of labelled images in one file, by which a device measures a new model of its bundle.
//
// The file begins with a line of JSON, the class names and for each image its size in bytes and pixels and its objects; the images follow
// in their order, as they are.
package labelled

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/evaluate"
)

// Limits of a set.
const (
	MaxBytes  = 64 << 20
	MaxImages = 500
)

// Set is a set of labelled images.
type Set struct {
	Labels []string `json:"labels"` // class names by number; empty if the model's own are meant
	Images []Image  `json:"images"`
}

// Image is one image with its objects.
type Image struct {
	Bytes   int      `json:"bytes"`
	Width   int      `json:"width"` // pixels
	Height  int      `json:"height"`
	Objects []Object `json:"objects"`

	Data []byte `json:"-"` // the image file
}

// Object is a labelled object.
type Object struct {
	Class int        `json:"class"`
	Box   [4]float32 `json:"box"` // left, top, right, bottom, pixels
	Crowd bool       `json:"crowd,omitempty"`
}

// Read reads a labelled dataset, see evaluate.ReadDataset.
func Read(path string) (*Set, error) {
	dataset, err := evaluate.ReadDataset(path, "")
	if err != nil {
		return nil, err
	}
	if len(dataset.Images) > MaxImages {
		return nil, fmt.Errorf("%s has %d labelled images, a bundle at most %d (name a part of them)", path, len(dataset.Images), MaxImages)
	}
	s := &Set{Labels: dataset.Labels}
	total := 0
	for i := range dataset.Images {
		from := &dataset.Images[i]
		data, err := os.ReadFile(from.Path)
		if err != nil {
			return nil, err
		}
		if total += len(data); total > MaxBytes {
			return nil, fmt.Errorf("%s has more than %d MB of labelled images (name a part of them)", path, MaxBytes>>20)
		}
		image := Image{Bytes: len(data), Width: from.Width, Height: from.Height, Data: data, Objects: []Object{}}
		for j := range from.Truths {
			t := &from.Truths[j]
			image.Objects = append(image.Objects, Object{Class: t.Class, Box: [4]float32{t.X1, t.Y1, t.X2, t.Y2}, Crowd: t.Crowd})
		}
		s.Images = append(s.Images, image)
	}
	return s, nil
}

// Marshal returns the file of the set.
func (s *Set) Marshal() ([]byte, error) {
	data, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	data = append(data, '\n')
	for i := range s.Images {
		data = append(data, s.Images[i].Data...)
	}
	return data, nil
}

// Parse reads the file of a set, whose images share its memory.
func Parse(data []byte) (*Set, error) {
	if len(data) > 2*MaxBytes {
		return nil, fmt.Errorf("it has %d bytes, at most %d are read", len(data), 2*MaxBytes)
	}
	head, rest, found := bytes.Cut(data, []byte("\n"))
	s := &Set{}
	if err := json.Unmarshal(head, s); err != nil || !found {
		return nil, errors.New("it is not a set of labelled images")
	}
	if len(s.Images) == 0 || len(s.Images) > MaxImages {
		return nil, fmt.Errorf("it has %d images, 1 to %d are measured", len(s.Images), MaxImages)
	}
	for i := range s.Images {
		image := &s.Images[i]
		if image.Bytes < 1 || image.Bytes > len(rest) {
			return nil, errors.New("it is cut off")
		}
		image.Data, rest = rest[:image.Bytes:image.Bytes], rest[image.Bytes:]
		for j := range image.Objects {
			class := image.Objects[j].Class
			if class < 0 || class >= maxClass || len(s.Labels) > 0 && class >= len(s.Labels) {
				return nil, fmt.Errorf("image %d has an object of class %d, which it has no name of", i+1, class)
			}
		}
	}
	if len(rest) > 0 {
		return nil, errors.New("it has more bytes than images")
	}
	return s, nil
}

// maxClass bounds class numbers, so that a bad one cannot cause huge tables.
const maxClass = 1 << 16

// Truths returns the objects of each image, with the class numbers of a model that has these labels.
func (s *Set) Truths(labels []string) ([][]evaluate.Truth, error) {
	dataset := evaluate.Dataset{Labels: s.Labels, Images: make([]evaluate.Image, len(s.Images))}
	for i := range s.Images {
		for _, o := range s.Images[i].Objects {
			dataset.Images[i].Truths = append(dataset.Images[i].Truths, evaluate.Truth{
				Box: postprocess.Box{X1: o.Box[0], Y1: o.Box[1], X2: o.Box[2], Y2: o.Box[3]}, Class: o.Class, Crowd: o.Crowd,
			})
		}
	}
	if err := dataset.Relabel(labels, nil); err != nil {
		return nil, err
	}
	truths := make([][]evaluate.Truth, len(s.Images))
	for i := range dataset.Images {
		truths[i] = dataset.Images[i].Truths
	}
	return truths, nil
}
