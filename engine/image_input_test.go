package engine

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func info(kind DataType, shape ...int64) []TensorInfo {
	return []TensorInfo{{Name: "x", Type: kind, Shape: shape}}
}

func TestFindImageInput(t *testing.T) {
	sized := Metadata{Width: 320, Height: 192}
	tf := Metadata{Preprocess: Preprocess{Preset: "keras"}}
	for _, test := range []struct {
		name     string
		inputs   []TensorInfo
		metadata Metadata
		want     ImageInput // without Preprocess
	}{
		{"fixed", info(Float32, 1, 3, 480, 640), sized, ImageInput{Channels: 3, Width: 640, Height: 480, Batch: 1}},
		{"free batch", info(Float32, -1, 3, 480, 640), Metadata{}, ImageInput{Channels: 3, Width: 640, Height: 480}},
		{"free sides", info(Float16, -1, 3, -1, -1), sized, ImageInput{Type: Float16, Channels: 3, Width: 320, Height: 192}},
		{"all free", info(Float32, -1, -1, -1, -1), Metadata{}, ImageInput{Channels: 3, Width: DefaultSide, Height: DefaultSide}},
		{
			"all free, gray", info(Float32, -1, -1, -1, -1),
			Metadata{Preprocess: Preprocess{Colour: GrayColour}},
			ImageInput{Channels: 1, Width: DefaultSide, Height: DefaultSide},
		},
		{"gray", info(Float32, 4, 1, 28, 28), Metadata{}, ImageInput{Channels: 1, Width: 28, Height: 28, Batch: 4}},
		{"bytes in planes", info(Uint8, 1, 3, 480, 640), Metadata{}, ImageInput{Type: Uint8, Channels: 3, Width: 640, Height: 480, Batch: 1}},
		{
			"bytes, channels last", info(Uint8, 1, -1, -1, 3), sized,
			ImageInput{Type: Uint8, Channels: 3, Width: 320, Height: 192, Batch: 1, Interleaved: true},
		},
		{"channels last", info(Float32, 1, 480, 640, 3), tf, ImageInput{Channels: 3, Width: 640, Height: 480, Batch: 1, Interleaved: true}},
		{
			"channels last by setting", info(Float32, 1, 3, 3, 3),
			Metadata{Preprocess: Preprocess{Preset: "keras", Layout: NHWC}},
			ImageInput{Channels: 3, Width: 3, Height: 3, Batch: 1, Interleaved: true},
		},
	} {
		got, err := FindImageInput(test.inputs, test.metadata)
		require.NoError(t, err, test.name)
		test.want.Assumed = test.metadata.Preprocess.IsZero()
		test.want.Preprocess = got.Preprocess
		assert.Equal(t, test.want, *got, test.name)
	}
	p := ImageInput{Type: Float16, Channels: 3, Width: 320, Height: 192}
	assert.Equal(t, []int64{5, 3, 192, 320}, p.Shape(5))
	assert.Equal(t, 3*192*320*2, p.ImageBytes())
	p.Interleaved = true
	assert.Equal(t, []int64{5, 192, 320, 3}, p.Shape(5))
}

// TestNoImageInput is as long as its table of inputs that take no image.
func TestNoImageInput(t *testing.T) {
	rgb := info(Float32, 1, 3, 8, 8)
	preprocess := func(p Preprocess) Metadata { return Metadata{Preprocess: p} }
	level := 300
	for _, test := range []struct {
		name     string
		inputs   []TensorInfo
		metadata Metadata
		err      string
	}{
		{"two inputs", append(info(Float32, 1, 3, 8, 8), rgb...), Metadata{}, "it has 2 inputs, images go to a single one"},
		{"none", nil, Metadata{}, "it has 0 inputs, images go to a single one"},
		{"flat", info(Float32, 1, 3), Metadata{}, `input "x" is float32 [1 3], images go to float32, float16 or uint8 with four dimensions`},
		{
			"tokens", info(Int64, 1, 3, 8, 8),
			Metadata{},
			`input "x" is int64 [1 3 8 8], images go to float32, float16 or uint8 with four dimensions`,
		},
		{
			"channels", info(Float32, 1, 4, 8, 8),
			Metadata{},
			`input "x" is [1 4 8 8], images have 1 or 3 channels as the second dimension or the last`,
		},
		{
			"channels by setting", info(Float32, 1, 3, 8, 8), preprocess(Preprocess{Preset: "keras", Layout: NHWC}),
			`input "x" is [1 3 8 8], images have 1 or 3 channels as the second dimension or the last`,
		},
		{
			"too wide", info(Float32, 1, 3, 8, MaxSide+1),
			Metadata{},
			`input "x" takes images of 32769x8, sides from 1 to 32768 and 67108864 pixels are possible`,
		},
		{
			"too large", info(Float32, 1, 3, 16384, 16384),
			Metadata{},
			`input "x" takes images of 16384x16384, sides from 1 to 32768 and 67108864 pixels are possible`,
		},
		{
			"no width", info(Float32, 1, 3, 8, 0),
			Metadata{},
			`input "x" takes images of 0x8, sides from 1 to 32768 and 67108864 pixels are possible`,
		},
		{
			"batch", info(Float32, 1<<31, 3, 8, 8),
			Metadata{},
			"a batch of 2147483648 images, at most 1024 are possible (export the model with a batch of 1, or an open one)",
		},
		{
			"large batch", info(Float32, 64, 3, 4096, 4096),
			Metadata{},
			"a batch of 64 images of 4096x4096 takes 12.0 GiB, at most 2 are possible",
		},
		{
			"classifier that says nothing", rgb,
			Metadata{Task: Classify},
			"nothing says how a classifier's images are cropped and scaled (give --preprocess, such as torchvision)",
		},
		{
			"channels last that say nothing", info(Float32, 1, 8, 8, 3),
			Metadata{},
			`nothing says what numbers input "x", float32 [1 8 8 3], takes for the levels of an image (give --preprocess, such as torchvision)`,
		},
		{
			"preset", rgb, preprocess(Preprocess{Preset: "yolo"}),
			`preprocess preset: "yolo" is not known, did you mean yolox or yolo-nas?`,
		},
		{
			"resize", rgb, preprocess(Preprocess{Resize: "squeeze"}),
			`preprocess resize: "squeeze" is not one of letterbox, letterbox-top-left, stretch, crop`,
		},
		{
			"interpolation", rgb, preprocess(Preprocess{Interpolation: "nearest"}),
			`preprocess interpolation: "nearest" is not one of bilinear, bilinear-antialias, bicubic-antialias`,
		},
		{"colour", rgb, preprocess(Preprocess{Colour: "RGB"}), `preprocess colour: "RGB" is not one of rgb, bgr, gray`},
		{"layout", rgb, preprocess(Preprocess{Layout: "chw"}), `preprocess layout: "chw" is not one of nchw, nhwc`},
		{
			"colour of one channel", info(Float32, 1, 1, 8, 8), preprocess(Preprocess{Colour: RGBColour}),
			"preprocess colour: rgb has not the 1 channels of the input",
		},
		{
			"gray of three channels", rgb, preprocess(Preprocess{Colour: GrayColour}),
			"preprocess colour: gray has not the 3 channels of the input",
		},
		{"shorter side", rgb, preprocess(Preprocess{ShorterSide: -1}), "preprocess shorter_side: -1 is not 1 to 32768 pixels"},
		{
			"shorter side of a letterbox", rgb, preprocess(Preprocess{ShorterSide: 256}),
			"preprocess shorter_side is for resize: crop, not letterbox",
		},
		{"pad", rgb, preprocess(Preprocess{Pad: &level}), "preprocess pad: 300 is not a level of gray from 0 to 255"},
		{
			"range", rgb, preprocess(Preprocess{Range: []float64{1, 0}}),
			"preprocess range: [1 0] is not the two numbers that the levels 0 and 255 become, as in [0, 1]",
		},
		{"mean", rgb, preprocess(Preprocess{Mean: []float64{1, 2}}), "preprocess mean: [1 2] is not one number or three"},
		{"deviation", rgb, preprocess(Preprocess{Deviation: []float64{0}}), "preprocess deviation: [0] is not one positive number or three"},
		{
			"means of one channel", info(Float32, 1, 1, 8, 8), preprocess(Preprocess{Preset: "torchvision"}),
			"preprocess mean and deviation: 3 numbers for 1 channels",
		},
		{
			"bytes that are scaled", info(Uint8, 1, 3, 8, 8), preprocess(Preprocess{Range: []float64{0, 1}}),
			"preprocess: an input of uint8 takes levels as they are, not [0 1], mean [], deviation []",
		},
		{
			"half", info(Float16, 1, 3, 8, 8), preprocess(Preprocess{Range: []float64{0, 255}, Deviation: []float64{.001}}),
			"preprocess: level 255 becomes 255000, more than float16 holds",
		},
	} {
		_, err := FindImageInput(test.inputs, test.metadata)
		require.EqualError(t, err, test.err, test.name)
	}
}

// What the projects' own programs make of black and white, channel by channel, and how they resize.
func TestPresets(t *testing.T) {
	type ends [2]float32
	imagenet := []ends{{-2.117904, 2.248908}, {-2.0357141, 2.4285715}, {-1.8044444, 2.64}}
	same := func(low, high float32) []ends { return []ends{{low, high}, {low, high}, {low, high}} }
	for _, test := range []struct {
		preset string
		want   string
		ends   []ends
	}{
		{"ultralytics", "letterbox, bilinear, pad 114, rgb, 0..1, nchw", same(0, 1)},
		{"ultralytics-classify", "crop, bilinear-antialias, pad 0, rgb, 0..1, nchw", same(0, 1)},
		{"ultralytics-depth", "stretch, bilinear, pad 114, rgb, 0..1, nchw", same(0, 1)},
		{"ultralytics-rtdetr", "stretch, bilinear, pad 114, rgb, 0..1, nchw", same(0, 1)},
		{
			"torchvision", "crop, shorter side 256, bilinear-antialias, pad 0, rgb, 0..1, mean 0.485 0.456 0.406, deviation 0.229 0.224 0.225, nchw", imagenet,
		},
		{
			"timm", "crop, shorter side 256, bicubic-antialias, pad 0, rgb, 0..1, mean 0.485 0.456 0.406, deviation 0.229 0.224 0.225, nchw",
			imagenet,
		},
		{"imagenet", "stretch, bilinear, pad 114, rgb, 0..1, mean 0.485 0.456 0.406, deviation 0.229 0.224 0.225, nchw", imagenet},
		{"yolox", "letterbox-top-left, bilinear, pad 114, bgr, 0..255, nchw", same(0, 255)},
		{"yolo-nas", "letterbox, bilinear, pad 114, rgb, 0..1, nchw", same(0, 1)},
		{
			"nanodet", "stretch, bilinear, pad 114, bgr, 0..255, mean 103.53 116.28 123.675, deviation 57.375 57.12 58.395, nchw",
			[]ends{{-1.8044444, 2.64}, {-2.0357144, 2.4285715}, {-2.117904, 2.2489083}},
		},
		{"rtdetr", "stretch, bilinear-antialias, pad 114, rgb, 0..1, nchw", same(0, 1)},
		{"detr", "stretch, bilinear-antialias, pad 114, rgb, 0..1, mean 0.485 0.456 0.406, deviation 0.229 0.224 0.225, nchw", imagenet},
		{"rfdetr", "stretch, bilinear, pad 114, rgb, 0..1, mean 0.485 0.456 0.406, deviation 0.229 0.224 0.225, nchw", imagenet},
		{"ssd-mobilenet", "stretch, bilinear, pad 114, rgb, 0..255, mean 127, deviation 128, nchw", same(-.9921875, 1)},
		{"keras", "stretch, bilinear, pad 114, rgb, -1..1, nchw", same(-1, 1)},
		{"tf-detection", "stretch, bilinear, pad 114, rgb, 0..255, nchw", same(0, 255)},
		{"scrfd", "letterbox-top-left, bilinear, pad 0, rgb, 0..255, mean 127.5, deviation 128, nchw", same(-.99609375, .99609375)},
		{"yunet", "letterbox-top-left, bilinear, pad 0, bgr, 0..255, nchw", same(0, 255)},
		{"movenet", "letterbox, bilinear, pad 0, rgb, 0..255, nchw", same(0, 255)},
		{
			"centernet", "letterbox, bilinear, pad 0, bgr, 0..1, mean 0.408 0.447 0.47, deviation 0.289 0.274 0.278, nchw",
			[]ends{{-1.4117647, 2.0484429}, {-1.6313868, 2.0182482}, {-1.6906475, 1.9064748}},
		},
	} {
		p, err := FindImageInput(info(Float32, 1, 3, 224, 224), Metadata{Preprocess: Preprocess{Preset: test.preset}})
		require.NoError(t, err, test.preset)
		assert.Equal(t, test.want, p.Preprocess.String(), test.preset)
		scale, bias := p.Affine()
		for c, want := range test.ends {
			assert.InDelta(t, want[0], bias[c], 1e-5, test.preset)
			assert.InDelta(t, want[1], 255*scale[c]+bias[c], 1e-4, test.preset)
		}
	}
	assert.Len(t, Presets(), 20)
	// Sides of their own, and a change.
	p, err := FindImageInput(info(Float32, 1, 3, 299, 299), Metadata{Preprocess: Preprocess{Preset: "torchvision"}})
	require.NoError(t, err)
	assert.Equal(t, 342, p.Preprocess.ShorterSide)
	p, err = FindImageInput(info(Float32, 1, 3, 224, 224), Metadata{Preprocess: Preprocess{Preset: "torchvision", ShorterSide: 232}})
	require.NoError(t, err)
	assert.Equal(t, 232, p.Preprocess.ShorterSide)
	p, err = FindImageInput(info(Float32, 1, 3, 192, 224), Metadata{Preprocess: Preprocess{Preset: "ultralytics-classify"}})
	require.NoError(t, err)
	assert.Equal(t, Stretch, p.Preprocess.Resize, "Ultralytics crops squares only")
}

// The default is what it was before there was a choice, to the bit.
func TestAssumedPreprocess(t *testing.T) {
	p, err := FindImageInput(info(Float32, 1, 3, 8, 8), Metadata{})
	require.NoError(t, err)
	assert.True(t, p.Assumed)
	assert.Equal(t, "letterbox, bilinear, pad 114, rgb, 0..1, nchw", p.Preprocess.String())
	scale, bias := p.Affine()
	assert.Equal(t, [3]float32{1.0 / 255, 1.0 / 255, 1.0 / 255}, scale)
	assert.Zero(t, bias)
	bytes, err := FindImageInput(info(Uint8, 1, 8, 8, 3), Metadata{})
	require.NoError(t, err)
	assert.Equal(t, "letterbox, bilinear, pad 114, rgb, 0..255, nhwc", bytes.Preprocess.String())
	scale, bias = bytes.Affine()
	assert.Equal(t, [3]float32{1, 1, 1}, scale)
	assert.Zero(t, bias)
	// A description that is left empty means the same.
	literal := ImageInput{Channels: 3, Width: 8, Height: 8}
	scale, _ = literal.Affine()
	assert.Equal(t, float32(1.0/255), scale[1])
	assert.Equal(t, []any{DefaultPad, Bilinear}, []any{literal.Pad(), literal.Interpolation()})
}

func TestCheckBatch(t *testing.T) {
	p := ImageInput{Channels: 3, Width: 1280, Height: 1280}
	require.NoError(t, p.CheckBatch(64))
	require.EqualError(t, p.CheckBatch(128), "a batch of 128 images of 1280x1280 takes 2.3 GiB, at most 2 are possible")
	require.EqualError(t, p.CheckBatch(1025),
		"a batch of 1025 images, at most 1024 are possible (export the model with a batch of 1, or an open one)")
}
