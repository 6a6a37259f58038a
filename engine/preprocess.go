package engine

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/edge-infer/edge-infer/internal/spelling"
)

// Preprocess describes the conversion of a camera's image into the network's input. It belongs to the model: it comes from the file's
// metadata, a preset, or a file beside the model (see ReadPreprocess). A zero field is open; its default is documented at the field.
type Preprocess struct {
	// Preset is the preprocessing of a project, one of Presets; the other fields override it.
	Preset string `yaml:"preset,omitempty" json:"preset,omitempty"`
	// Resize is how the image gets the input's size; Letterbox when open.
	Resize Resize `yaml:"resize,omitempty" json:"resize,omitempty"`
	// ShorterSide applies to Crop: the length in pixels to which the image's shorter side is resized before the centre is cropped. By
	// default the image just covers the input.
	ShorterSide int `yaml:"shorter_side,omitempty" json:"shorter_side,omitempty"`
	// Interpolation is the interpolation of the resize; by default antialiased for Crop and Bilinear otherwise.
	Interpolation Interpolation `yaml:"interpolation,omitempty" json:"interpolation,omitempty"`
	// Pad is the grey level of padding, 0 to 255; by default 0 for Crop and 114 otherwise.
	Pad *int `yaml:"pad,omitempty" json:"pad,omitempty"`
	// Colour is the colour of the channels; by default RGB for three channels and Gray for one.
	Colour Colour `yaml:"colour,omitempty" json:"colour,omitempty"`
	// Range holds the values that pixel values 0 and 255 map to; by default 0 and 1, except that uint8 inputs take pixel values unscaled.
	Range []float64 `yaml:"range,omitempty,flow" json:"range,omitempty"`
	// Mean is subtracted after that and the result divided by Deviation: one number per channel in the network's order, or one for all. The
	// defaults are 0 and 1.
	Mean      []float64 `yaml:"mean,omitempty,flow" json:"mean,omitempty"`
	Deviation []float64 `yaml:"deviation,omitempty,flow" json:"deviation,omitempty"`
	// Layout is the order of the input's dimensions; by default it follows from the shape.
	Layout InputLayout `yaml:"layout,omitempty" json:"layout,omitempty"`
}

// Resize is the method of fitting an image to the network's input size.
type Resize string

// The resize methods. Rounding matches the project in parentheses.
const (
	// Letterbox keeps the aspect ratio and pads evenly on both sides (Ultralytics).
	Letterbox Resize = "letterbox"
	// LetterboxTopLeft keeps the aspect ratio and pads on the right and at the bottom (YOLOX).
	LetterboxTopLeft Resize = "letterbox-top-left"
	// Stretch ignores the aspect ratio.
	Stretch Resize = "stretch"
	// Crop keeps the aspect ratio and crops the centre (torchvision, Ultralytics' classifiers).
	Crop Resize = "crop"
)

// Interpolation is the interpolation of a resize.
type Interpolation string

const (
	// Bilinear interpolates between two by two pixels, like OpenCV's INTER_LINEAR.
	Bilinear Interpolation = "bilinear"
	// BilinearAntialias and BicubicAntialias widen the filter when downscaling, like BILINEAR and BICUBIC of Pillow and torchvision.
	BilinearAntialias Interpolation = "bilinear-antialias"
	BicubicAntialias  Interpolation = "bicubic-antialias"
)

// Colour is the meaning and order of an input's channels.
type Colour string

// The supported colours.
const (
	RGBColour  Colour = "rgb"
	BGRColour  Colour = "bgr"
	GrayColour Colour = "gray"
)

// InputLayout is the order of an image input's dimensions.
type InputLayout string

// The supported layouts.
const (
	NCHW InputLayout = "nchw" // one plane per channel
	NHWC InputLayout = "nhwc" // interleaved channels
)

// DefaultPad is the grey level around a letterboxed image.
const DefaultPad = 114

// IsZero reports whether no field is set.
func (p Preprocess) IsZero() bool {
	return p.Preset == "" && p.Resize == "" && p.ShorterSide == 0 && p.Interpolation == "" && p.Pad == nil && p.Colour == "" &&
		p.Range == nil && p.Mean == nil && p.Deviation == nil && p.Layout == ""
}

// Override returns p with every field of by that is set. A preset of by replaces all of p.
func (p Preprocess) Override(by Preprocess) Preprocess {
	if by.Preset != "" {
		return by
	}
	set(&p.Resize, by.Resize)
	set(&p.ShorterSide, by.ShorterSide)
	set(&p.Interpolation, by.Interpolation)
	set(&p.Colour, by.Colour)
	set(&p.Layout, by.Layout)
	set(&p.Pad, by.Pad)
	for _, list := range []struct{ to, from *[]float64 }{{&p.Range, &by.Range}, {&p.Mean, &by.Mean}, {&p.Deviation, &by.Deviation}} {
		if *list.from != nil {
			*list.to = *list.from
		}
	}
	return p
}

func set[T comparable](to *T, from T) {
	var zero T
	if from != zero {
		*to = from
	}
}

// String returns one line, such as "letterbox, bilinear, pad 114, rgb 0..1, nchw", without unset fields.
func (p Preprocess) String() string {
	var parts []string
	add := func(text string) {
		if text != "" {
			parts = append(parts, text)
		}
	}
	add(p.Preset)
	add(string(p.Resize))
	if p.ShorterSide > 0 {
		add(fmt.Sprintf("shorter side %d", p.ShorterSide))
	}
	add(string(p.Interpolation))
	if p.Pad != nil {
		add(fmt.Sprintf("pad %d", *p.Pad))
	}
	add(string(p.Colour))
	if len(p.Range) == 2 {
		add(number(p.Range[0]) + ".." + number(p.Range[1]))
	}
	for _, list := range []struct {
		name   string
		values []float64
	}{{"mean", p.Mean}, {"deviation", p.Deviation}} {
		if list.values != nil {
			text := list.name
			for _, v := range list.values {
				text += " " + number(v)
			}
			add(text)
		}
	}
	add(string(p.Layout))
	return strings.Join(parts, ", ")
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }

// check returns an error for values that are invalid for any network.
func (p *Preprocess) check() error {
	oneOf := func(key, value string, choices ...string) error {
		if value == "" || slices.Contains(choices, value) {
			return nil
		}
		list := strings.Join(choices, ", ")
		if near := spelling.Near(strings.ToLower(value), choices, 3); len(list) > 100 && near != nil {
			return fmt.Errorf("preprocess %s: %.40q is not known, did you mean %s?", key, value, strings.Join(near, " or "))
		}
		return fmt.Errorf("preprocess %s: %.40q is not one of %.120s", key, value, list)
	}
	for _, err := range []error{
		oneOf("preset", p.Preset, Presets()...),
		oneOf("resize", string(p.Resize), string(Letterbox), string(LetterboxTopLeft), string(Stretch), string(Crop)),
		oneOf("interpolation", string(p.Interpolation), string(Bilinear), string(BilinearAntialias), string(BicubicAntialias)),
		oneOf("colour", string(p.Colour), string(RGBColour), string(BGRColour), string(GrayColour)),
		oneOf("layout", string(p.Layout), string(NCHW), string(NHWC)),
		p.checkNumbers(),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *Preprocess) checkNumbers() error {
	switch {
	case p.ShorterSide < 0 || p.ShorterSide > MaxSide:
		return fmt.Errorf("preprocess shorter_side: %d is not 1 to %d pixels", p.ShorterSide, MaxSide)
	case p.Pad != nil && (*p.Pad < 0 || *p.Pad > 255):
		return fmt.Errorf("preprocess pad: %d is not a level of gray from 0 to 255", *p.Pad)
	case p.Range != nil && (len(p.Range) != 2 || !finite(p.Range) || !(p.Range[0] < p.Range[1])):
		return fmt.Errorf("preprocess range: %v is not the two numbers that the levels 0 and 255 become, as in [0, 1]", p.Range)
	case !channelwise(p.Mean) || !finite(p.Mean):
		return fmt.Errorf("preprocess mean: %v is not one number or three", p.Mean)
	case !channelwise(p.Deviation) || !finite(p.Deviation) || p.Deviation != nil && slices.Min(p.Deviation) < minDeviation:
		return fmt.Errorf("preprocess deviation: %v is not one positive number or three", p.Deviation)
	}
	return nil
}

// minDeviation keeps the quotient finite.
const minDeviation = 1e-6

// channelwise reports whether values are unset, one for all channels or one per channel.
func channelwise(values []float64) bool { return values == nil || len(values) == 1 || len(values) == 3 }

func finite(values []float64) bool {
	return !slices.ContainsFunc(values, func(v float64) bool { return !(math.Abs(v) <= math.MaxFloat32) })
}

// interpolation returns Interpolation or its default.
func (p *Preprocess) interpolation() Interpolation {
	switch {
	case p.Interpolation != "":
		return p.Interpolation
	case p.Resize == Crop:
		return BilinearAntialias
	}
	return Bilinear
}

// pad returns Pad or its default.
func (p *Preprocess) pad() int {
	switch {
	case p.Pad != nil:
		return *p.Pad
	case p.Resize == Crop:
		return 0
	}
	return DefaultPad
}
