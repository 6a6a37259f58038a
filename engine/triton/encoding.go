package triton

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"image"
	"image/jpeg"
	"slices"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/kserve"
)

// Wire encodings of images. The data type of the model's input selects one.
const (
	Auto = "auto" // the encoding of the model in the address
	JPEG = "jpeg"
)

// Encodings returns the values of engine.Remote.Encoding.
func Encodings() []string { return []string{Auto, "fp32", "fp16", "uint8", JPEG} }

// bytesType is the protocol's type of variable-length elements: a length of 4 bytes, little endian, then the data.
const bytesType = "BYTES"

// encodings maps the data type of an image input to its encoding.
var encodings = map[string]string{"FP32": "fp32", "FP16": "fp16", "UINT8": "uint8", bytesType: JPEG}

// encoding returns the encoding of a model's image input, or "" if it has none.
func (d *description) encoding() string {
	inputs := d.model.Inputs // images first
	if len(inputs) == 0 || len(inputs) > 1 && !isAuxiliary(inputs[1]) {
		return ""
	}
	return encodings[inputs[0].Datatype]
}

// findModel returns the description of the model with the configured encoding, and the connection to it. That is the model of the
// address, or the one whose name has the encoding as suffix, as written by export.
func (p *endpoint) findModel(ctx context.Context) (wire, *description, error) {
	d, err := p.named.describe(ctx)
	wanted := p.engine.remote.Encoding
	if err != nil || p.variant == nil || d.encoding() == wanted {
		return p.named, d, err
	}
	other, err := p.variant.describe(ctx)
	switch {
	case err == nil && other.encoding() == wanted:
		return p.variant, other, nil
	case err == nil || missing(err):
		return nil, nil, &engine.Error{
			Op: "open", Backend: Name, Kind: engine.ErrUnsupported,
			Message: fmt.Sprintf("model %s takes %s, and the server has no model %s that takes %s", p.address.model, d.takes(),
				p.address.variant(wanted).model, wanted),
			Hint: "edge-infer export triton --wire " + wanted + " writes one; or leave --remote-wire at auto",
		}
	}
	return nil, nil, err
}

// isAuxiliary returns the address of the model's variant with another encoding.
func (a address) variant(encoding string) address {
	a.model, a.version = a.model+"_"+encoding, ""
	return a
}

func (d *description) takes() string {
	if e := d.encoding(); e != "" {
		return e
	}
	return "no single image"
}

// jpegInput returns the image before compression (uint8, NHWC) as the input of a model that takes JPEG. Its size comes from m, whose
// preprocessing is adjusted. It returns false for a model that does not take JPEG.
func jpegInput(in *kserve.TensorMetadata, m *engine.Metadata) (engine.TensorInfo, bool) {
	batch := int64(-1)
	switch {
	case in.Datatype != bytesType || m.Width < 1 || m.Height < 1:
		return engine.TensorInfo{}, false
	case len(in.Shape) == 2 && in.Shape[0] == -1 && in.Shape[1] == 1:
	case len(in.Shape) == 1 && in.Shape[0] > 0:
		batch = in.Shape[0]
	default:
		return engine.TensorInfo{}, false
	}
	channels := int64(3)
	if m.Preprocess.Colour == engine.GrayColour {
		channels = 1
	}
	// The server normalizes the decoded image and orders its channels.
	m.Preprocess.Range = nil
	m.Preprocess.Mean = nil
	m.Preprocess.Deviation = nil
	m.Preprocess.Layout = engine.NHWC
	if channels == 3 {
		m.Preprocess.Colour = engine.RGBColour
	}
	return engine.TensorInfo{
		Name: in.Name, Type: engine.Uint8, Shape: []int64{batch, int64(m.Height), int64(m.Width), channels},
	}, true
}

// jpegQuality is common among cameras. docs/BENCHMARKS.md has its cost in detections.
const jpegQuality = 90

// compressor encodes images as JPEG. It must not be used by two goroutines at once.
type compressor struct {
	buffer bytes.Buffer
	colour *image.RGBA
}

// compress encodes the images of a batch, each height x width x channels bytes, as elements of a tensor. The result is valid until the next
// call.
func (c *compressor) compress(images []byte, in *engine.ImageInput) ([]byte, error) {
	c.buffer.Reset()
	size := in.ImageBytes()
	for img := range slices.Chunk(images, size) {
		at := c.buffer.Len()
		c.buffer.Write([]byte{0, 0, 0, 0})
		if err := jpeg.Encode(&c.buffer, c.view(img, in), &jpeg.Options{Quality: jpegQuality}); err != nil {
			return nil, fmt.Errorf("jpeg: %w", err)
		}
		binary.LittleEndian.PutUint32(c.buffer.Bytes()[at:], uint32(c.buffer.Len()-at-4))
	}
	return c.buffer.Bytes(), nil
}

// view returns the pixels as an image.Image. Colour images are copied.
func (c *compressor) view(img []byte, in *engine.ImageInput) image.Image {
	all := image.Rect(0, 0, in.Width, in.Height)
	if in.Channels == 1 {
		return &image.Gray{Pix: img, Stride: in.Width, Rect: all}
	}
	if c.colour == nil || c.colour.Rect != all {
		c.colour = image.NewRGBA(all)
	}
	to := c.colour.Pix
	for from := 0; from+2 < len(img); from += 3 {
		to[0], to[1], to[2] = img[from], img[from+1], img[from+2]
		to = to[4:]
	}
	return c.colour
}

// jpegTensor returns the input of a request with these images, compressed by c.
func (e *Engine) jpegTensor(c *compressor, images []byte) (kserve.Tensor, error) {
	data, err := c.compress(images, e.img)
	shape := []int64{int64(len(images) / e.img.ImageBytes()), 1}
	if e.img.Batch > 0 {
		shape = shape[:1]
	}
	return kserve.Tensor{Name: e.model.Inputs[0].Name, Datatype: bytesType, Shape: shape, Data: data}, err
}
