package engine

import (
	"fmt"
	"math"
	"slices"
)

// DefaultSide is the input width and height of a model that leaves both open and has no imgsz in its metadata.
const DefaultSide = 640

// Bounds of an image input, so that a file cannot request more memory than a machine has.
const (
	maxInputPixels = 1 << 26 // 8192 x 8192
	maxInputBatch  = 1024
	maxInputBytes  = 1 << 31
)

// ImageInput is a network input that takes one image per batch position.
type ImageInput struct {
	Index         int // index of the model's input
	Type          DataType
	Channels      int // 3 or 1
	Width, Height int
	Batch         int // fixed batch size; 0 if the model accepts any
	// Interleaved is set for (batch, height, width, channels); otherwise each channel is a plane.
	Interleaved bool
	// Preprocess is the complete preprocessing; FindImageInput fills in every field.
	Preprocess Preprocess
	// Assumed is set if neither the file nor a setting specifies the preprocessing; it is then Ultralytics' letterbox.
	Assumed bool
}

// FindImageInput recognises the image input of a model: its only input, with four dimensions, 1 or 3 channels first or last, and elements
// of float32, float16 or uint8. The preprocessing comes from the metadata, completed from the input's shape and type: uint8 inputs take
// unscaled pixel values. Open sides come from the metadata or are DefaultSide.
//
// The error explains why the model takes no images; it may still run through SubmitTensors.
func FindImageInput(inputs []TensorInfo, m Metadata) (*ImageInput, error) {
	if err := m.Preprocess.check(); err != nil {
		return nil, err
	}
	if len(inputs) != 1 {
		return nil, fmt.Errorf("it has %d inputs, images go to a single one", len(inputs))
	}
	in := inputs[0]
	if in.Type != Float32 && in.Type != Float16 && in.Type != Uint8 || len(in.Shape) != 4 {
		return nil, fmt.Errorf("input %q is %v %v, images go to float32, float16 or uint8 with four dimensions",
			in.Name, in.Type, in.Shape)
	}
	interleaved, channels, err := channelsOf(in, &m.Preprocess)
	if err != nil {
		return nil, err
	}
	p := &ImageInput{Type: in.Type, Channels: channels, Interleaved: interleaved, Batch: int(max(in.Shape[0], 0))}
	height, width := in.Shape[2], in.Shape[3]
	if interleaved {
		height, width = in.Shape[1], in.Shape[2]
	}
	side := func(fixed int64, imgsz int) int64 {
		switch {
		case fixed >= 0:
			return fixed
		case imgsz > 0:
			return int64(imgsz)
		}
		return DefaultSide
	}
	height, width = side(height, m.Height), side(width, m.Width)
	if err := checkSize(in, height, width); err != nil {
		return nil, err
	}
	p.Width, p.Height = int(width), int(height)
	if err := p.CheckBatch(p.Batch); err != nil {
		return nil, err
	}
	if err := p.complete(in, m); err != nil {
		return nil, err
	}
	return p, nil
}

// channelsOf returns the layout and the number of channels of an input with four dimensions. The default for an open shape is NCHW with 3
// channels.
func channelsOf(in TensorInfo, by *Preprocess) (interleaved bool, channels int, err error) {
	possible := func(n int64) bool { return n == 1 || n == 3 }
	planes, last := in.Shape[1], in.Shape[3]
	switch by.Layout {
	case NCHW:
		interleaved = false
	case NHWC:
		interleaved = true
	default:
		interleaved = !possible(planes) && possible(last)
	}
	n := planes
	if interleaved {
		n = last
	}
	switch {
	case n < 0 && by.Colour == GrayColour:
		return interleaved, 1, nil
	case n < 0:
		return interleaved, 3, nil
	case possible(n):
		return interleaved, int(n), nil
	}
	return interleaved, 0, fmt.Errorf("input %q is %v, images have 1 or 3 channels as the second dimension or the last",
		in.Name, in.Shape)
}

func checkSize(in TensorInfo, height, width int64) error {
	if height < 1 || width < 1 || height > MaxSide || width > MaxSide || height*width > maxInputPixels {
		return fmt.Errorf("input %q takes images of %dx%d, sides from 1 to %d and %d pixels are possible",
			in.Name, width, height, MaxSide, maxInputPixels)
	}
	return nil
}

// CheckBatch returns an error if the input of a batch would need too much memory.
func (p *ImageInput) CheckBatch(images int) error {
	switch {
	case images > maxInputBatch:
		return fmt.Errorf("a batch of %d images, at most %d are possible (export the model with a batch of 1, or an open one)",
			images, maxInputBatch)
	case images*p.ImageBytes() > maxInputBytes:
		return fmt.Errorf("a batch of %d images of %dx%d takes %.1f GiB, at most %d are possible", images, p.Width, p.Height,
			float64(images*p.ImageBytes())/(1<<30), maxInputBytes>>30)
	}
	return nil
}

// UnknownPreprocess returns the error for a network whose preprocessing is not specified anywhere.
func UnknownPreprocess(what string) error {
	return fmt.Errorf("nothing says %s (give --preprocess, such as torchvision)", what)
}

// complete fills in the open fields of the preprocessing.
func (p *ImageInput) complete(in TensorInfo, m Metadata) error {
	preprocess := m.Preprocess
	if preprocess.Preset != "" {
		base := preset(preprocess.Preset, max(p.Width, p.Height))
		if p.Type == Uint8 { // the network scales pixel values itself
			base.Range, base.Mean, base.Deviation = nil, nil, nil
		}
		preprocess.Preset = ""
		preprocess = base.Override(preprocess)
	}
	p.Assumed = m.Preprocess.IsZero()
	switch {
	case p.Assumed && m.Task == Classify:
		return UnknownPreprocess("how a classifier's images are cropped and scaled")
	case p.Interleaved && p.Type != Uint8 && preprocess.Range == nil:
		return UnknownPreprocess(fmt.Sprintf("what numbers input %q, %v %v, takes for the levels of an image", in.Name, in.Type, in.Shape))
	}
	preprocess.Layout = NCHW
	if p.Interleaved {
		preprocess.Layout = NHWC
	}
	if err := p.completeColour(&preprocess); err != nil {
		return err
	}
	if preprocess.Resize == "" {
		preprocess.Resize = Letterbox
	}
	if preprocess.ShorterSide > 0 && preprocess.Resize != Crop {
		return fmt.Errorf("preprocess shorter_side is for resize: crop, not %s", preprocess.Resize)
	}
	pad := preprocess.pad()
	preprocess.Pad, preprocess.Interpolation = &pad, preprocess.interpolation()
	if m.Preprocess.Preset == "ultralytics-classify" && m.Preprocess.Resize == "" && p.Width != p.Height {
		preprocess.Resize = Stretch // as Ultralytics does for inputs that are not square
	}
	p.Preprocess = preprocess
	return p.completeNumbers()
}

// completeColour checks the colour against the number of channels.
func (p *ImageInput) completeColour(preprocess *Preprocess) error {
	switch {
	case preprocess.Colour == "" && p.Channels == 1:
		preprocess.Colour = GrayColour
	case preprocess.Colour == "":
		preprocess.Colour = RGBColour
	case (preprocess.Colour == GrayColour) != (p.Channels == 1):
		return fmt.Errorf("preprocess colour: %s has not the %d channels of the input", preprocess.Colour, p.Channels)
	}
	return nil
}

// completeNumbers fills in range, mean and deviation and refuses values that the element type cannot hold.
func (p *ImageInput) completeNumbers() error {
	preprocess := &p.Preprocess
	levels := []float64{0, 255}
	for _, list := range [][]float64{preprocess.Mean, preprocess.Deviation} {
		if len(list) > 1 && len(list) != p.Channels {
			return fmt.Errorf("preprocess mean and deviation: %d numbers for %d channels", len(list), p.Channels)
		}
	}
	if p.Type == Uint8 {
		if preprocess.Range == nil {
			preprocess.Range = levels
		}
		if !slices.Equal(preprocess.Range, levels) || preprocess.Mean != nil || preprocess.Deviation != nil {
			return fmt.Errorf("preprocess: an input of uint8 takes levels as they are, not %v, mean %v, deviation %v",
				preprocess.Range, preprocess.Mean, preprocess.Deviation)
		}
		return nil
	}
	if preprocess.Range == nil {
		preprocess.Range = []float64{0, 1}
	}
	limit := float64(math.MaxFloat32)
	if p.Type == Float16 {
		limit = 65504
	}
	scale, bias := p.Affine()
	for c := range scale {
		for _, level := range levels {
			if v := math.Abs(level*float64(scale[c]) + float64(bias[c])); !(v <= limit) {
				return fmt.Errorf("preprocess: level %v becomes %.6g, more than %v holds", level, v, p.Type)
			}
		}
	}
	return nil
}

// Affine returns scale and bias per channel of the input: value = pixel value x scale + bias, for pixel values from 0 to 255.
func (p *ImageInput) Affine() (scale, bias [3]float32) {
	preprocess := &p.Preprocess
	at := func(list []float64, c int, otherwise float64) float64 {
		switch {
		case len(list) == 0:
			return otherwise
		case len(list) == 1:
			return list[0]
		}
		return list[c]
	}
	low, high := 0.0, 1.0
	switch {
	case p.Type == Uint8:
		high = 255
	case len(preprocess.Range) == 2:
		low, high = preprocess.Range[0], preprocess.Range[1]
	}
	for c := range scale {
		if c >= p.Channels {
			break
		}
		mean, deviation := at(preprocess.Mean, c, 0), at(preprocess.Deviation, c, 1)
		scale[c], bias[c] = float32((high-low)/255/deviation), float32((low-mean)/deviation)
	}
	return scale, bias
}

// Pad returns the grey level of padding.
func (p *ImageInput) Pad() int { return p.Preprocess.pad() }

// Interpolation returns the interpolation of the resize.
func (p *ImageInput) Interpolation() Interpolation { return p.Preprocess.interpolation() }

// Shape returns the input's shape for a number of images.
func (p *ImageInput) Shape(batch int) []int64 {
	if p.Interleaved {
		return []int64{int64(batch), int64(p.Height), int64(p.Width), int64(p.Channels)}
	}
	return []int64{int64(batch), int64(p.Channels), int64(p.Height), int64(p.Width)}
}

// ImageBytes returns the size of one batch position in bytes.
func (p *ImageInput) ImageBytes() int { return p.Channels * p.Height * p.Width * p.Type.Size() }
