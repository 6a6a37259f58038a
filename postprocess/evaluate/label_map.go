package evaluate

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/png"
	"math"
	"os"
	"slices"

	"github.com/edge-infer/edge-infer/engine"
)

// LabelMap holds the labels of a segmentation or depth dataset: a number per pixel, row by row. In depth maps 0 means unknown.
type LabelMap struct {
	Width, Height int
	Numbers       []float32
}

// maxPixels bounds the size that a file may declare.
const maxPixels = 1 << 26

// ReadLabelMap reads a grey PNG of 8 or 16 bits, a PNG with a palette, whose indices are used, or a two-dimensional NPY file.
func ReadLabelMap(path string) (*LabelMap, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("labels: %w", err)
	}
	m, err := parseLabelMap(data)
	if err != nil {
		return nil, fmt.Errorf("labels %s: %w", path, err)
	}
	return m, nil
}

func parseLabelMap(data []byte) (*LabelMap, error) {
	if bytes.HasPrefix(data, []byte("\x93NUMPY")) {
		return parseArray(data)
	}
	size, err := png.DecodeConfig(bytes.NewReader(data))
	switch {
	case err != nil:
		return nil, fmt.Errorf("is neither PNG nor NPY: %w", err)
	case size.Width < 1 || size.Height < 1 || size.Width > maxPixels/size.Height:
		return nil, fmt.Errorf("is %dx%d, which is too large", size.Width, size.Height)
	}
	decoded, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	m := &LabelMap{Width: size.Width, Height: size.Height, Numbers: make([]float32, size.Width*size.Height)}
	var at func(x, y int) float32
	switch p := decoded.(type) {
	case *image.Paletted:
		at = func(x, y int) float32 { return float32(p.ColorIndexAt(x, y)) }
	case *image.Gray:
		at = func(x, y int) float32 { return float32(p.GrayAt(x, y).Y) }
	case *image.Gray16:
		at = func(x, y int) float32 { return float32(p.Gray16At(x, y).Y) }
	default:
		return nil, errors.New("is a colour image; a label map has one number per pixel, grey or with a palette")
	}
	for y := range m.Height {
		for x := range m.Width {
			m.Numbers[y*m.Width+x] = at(x, y)
		}
	}
	return m, nil
}

func parseArray(data []byte) (*LabelMap, error) {
	t, err := engine.ReadNPY(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	shape := t.Shape
	for len(shape) > 2 && slices.Contains(shape, 1) { // batch or channel
		at := slices.Index(shape, 1)
		shape = slices.Concat(shape[:at], shape[at+1:])
	}
	if len(shape) != 2 || shape[0] < 1 || shape[1] < 1 || shape[0] > maxPixels/shape[1] {
		return nil, fmt.Errorf("has the shape %v: a label map has rows and columns", t.Shape)
	}
	if t.Type != engine.Float32 && t.Type != engine.Uint8 {
		return nil, fmt.Errorf("holds %v: save it as float32, or as uint8 for classes", t.Type)
	}
	m := &LabelMap{Width: int(shape[1]), Height: int(shape[0]), Numbers: make([]float32, shape[0]*shape[1])}
	for i := range m.Numbers {
		if t.Type == engine.Uint8 {
			m.Numbers[i] = float32(t.Data[i])
		} else {
			m.Numbers[i] = math.Float32frombits(binary.LittleEndian.Uint32(t.Data[4*i:]))
		}
	}
	return m, nil
}
