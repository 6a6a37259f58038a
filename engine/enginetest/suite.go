package enginetest

import (
	"encoding/binary"
	"errors"
	"math"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/engine"
)

// Backend is the backend under test.
type Backend struct {
	// Open opens an engine with options from Network, adding the backend's own settings.
	Open func(engine.Options) (engine.Engine, error)
	// SmallTypes is set if the backend supports 8-bit tensors, FreeSides if it supports open dimensions.
	SmallTypes, FreeSides bool
	// BlocksThread is the expected value of engine.Model.BlocksThread.
	BlocksThread bool
	// AllocationsPerFrame limits the heap allocations of one Submit and Wait in steady state.
	AllocationsPerFrame float64
}

// Run runs the whole suite.
func Run(t *testing.T, b Backend) {
	t.Run("describes the model", b.describes)
	t.Run("letterboxes and infers", b.infers)
	t.Run("same image, same answer", b.repeats)
	RunImages(t, b)
	t.Run("no way of images", b.unknownPreprocess)
	t.Run("slots in any order", b.order)
	t.Run("slots at the same time", b.concurrent)
	t.Run("bad requests", b.refuses)
	t.Run("tensors", b.tensors)
	t.Run("eight dimensions", b.eight)
	t.Run("memory", b.memory)
	t.Run("close", b.closes)
	t.Run("close with work in flight", b.closesBusy)
	t.Run("allocations", b.allocations)
}

// RunImages runs only the tests of preprocessing, for real libraries.
func RunImages(t *testing.T, b Backend) {
	t.Run("fixed batch", b.fixedBatch)
	t.Run("half precision input", b.half)
	t.Run("gray input", b.gray)
	t.Run("every way of images", b.presets)
	t.Run("channels last", b.channelsLast)
	if b.FreeSides {
		t.Run("free sides", b.freeSides)
		t.Run("free sides, half precision", b.halfFreeSides)
	}
}

func (b Backend) open(t testing.TB, name string, change func(*engine.Options)) engine.Engine {
	options := Network(t, name)
	options.Slots = 2
	if change != nil {
		change(&options)
	}
	e, err := b.Open(options)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, e.Close()) })
	return e
}

func batch(n int) func(*engine.Options) { return func(o *engine.Options) { o.MaxBatch = n } }

// infer submits, waits and returns the result.
func infer(t testing.TB, e engine.Engine, slot int, images ...engine.Image) *engine.Result {
	require.NoError(t, e.Submit(slot, images))
	result, err := e.Wait(slot)
	require.NoError(t, err)
	require.Len(t, result.Transforms, len(images))
	return result
}

func (b Backend) describes(t *testing.T) {
	e := b.open(t, "image", batch(4))
	m := e.Model()
	assert.Equal(t, "image.onnx", m.Path)
	assert.Equal(t, []engine.TensorInfo{{Name: "images", Type: engine.Float32, Shape: []int64{-1, 3, 64, 96}}}, m.Inputs)
	assert.Equal(t, []engine.TensorInfo{{Name: "output0", Type: engine.Float32, Shape: []int64{-1, 3, 8, 12}}}, m.Outputs)
	want := engine.Metadata{
		Task: engine.Detect, Labels: []string{"bolt", "nut", "wood's screw"}, Stride: 8, Width: 96, Height: 64, Batch: 1,
		Preprocess: engine.Preprocess{Preset: "ultralytics"},
	}
	assert.Equal(t, want, m.Metadata)
	assert.Equal(t, []int{96, 64, 4}, []int{m.Width, m.Height, m.MaxBatch})
	assert.NotEmpty(t, m.Backend)
	assert.NotEmpty(t, m.BackendVersion)
	assert.Equal(t, b.BlocksThread, m.BlocksThread)
	assert.NotEmpty(t, m.Device)
	assert.Equal(t, 2, e.Slots())

	e = b.open(t, "image", func(o *engine.Options) {
		o.Slots, o.Metadata = 3, engine.Metadata{Labels: []string{"part"}, Task: engine.Raw}
	})
	assert.Equal(t, 3, e.Slots())
	assert.Equal(t, []string{"part"}, e.Model().Metadata.Labels)
	assert.Equal(t, engine.Raw, e.Model().Metadata.Task)
	assert.Equal(t, 1, e.Model().MaxBatch)
}

func (b Backend) infers(t *testing.T) {
	e := b.open(t, "image", batch(3))
	sizes := [][2]int{{96, 64}, {192, 128}, {33, 71}, {640, 360}, {1, 1}}
	for i, size := range sizes {
		im := scene(size[0], size[1], uint64(i))
		for _, source := range []engine.Image{im, copied(t, e, im)} {
			before := source
			before.Data = slices.Clone(source.Data)
			result := infer(t, e, i%2, source)
			require.Equal(t, before, source, "the image must not change")
			require.Equal(t, []int64{1, 3, 8, 12}, result.Outputs[0].Shape)
			requireSampled(t, e, im, result.Transforms[0], &result.Outputs[0], 0)
			assert.Positive(t, result.Timing.Submitted)
			assert.Greater(t, result.Timing.Done, result.Timing.Submitted)
			assert.Positive(t, result.Timing.Inference)
		}
	}
}

// requireSampled compares a batch position with the definition, within the rounding of one pixel value.
func requireSampled(t testing.TB, e engine.Engine, im engine.Image, tr engine.Transform, out *engine.Tensor, i int) {
	in := e.Model().Image
	want := sampled(im, in, tr)
	got := numbers(out.Type, position(t, out, i))
	require.Len(t, got, len(want))
	scale, _ := in.Affine()
	limit := 1.6 * float64(max(scale[0], scale[1], scale[2]))
	for k := range want {
		require.InDelta(t, want[k], got[k], limit, "%dx%d element %d: %v", im.Width, im.Height, k, in.Preprocess)
	}
}

func numbers(kind engine.DataType, data []byte) []float64 {
	var values []float64
	for i := 0; i < len(data); i += kind.Size() {
		switch kind {
		case engine.Float32:
			values = append(values, float64(math.Float32frombits(binary.LittleEndian.Uint32(data[i:]))))
		default:
			values = append(values, half(binary.LittleEndian.Uint16(data[i:])))
		}
	}
	return values
}

func half(bits uint16) float64 {
	sign, exponent, mantissa := 1-2*float64(bits>>15), int(bits>>10&31), float64(bits&1023)
	if exponent == 0 {
		return sign * math.Ldexp(mantissa, -24)
	}
	return sign * math.Ldexp(1024+mantissa, exponent-25)
}

func (b Backend) repeats(t *testing.T) {
	e := b.open(t, "image", batch(4))
	im, other := scene(320, 200, 5), scene(97, 211, 6)
	want := position(t, &infer(t, e, 0, im).Outputs[0], 0)
	wantOther := position(t, &infer(t, e, 1, other).Outputs[0], 0)
	mapped := copied(t, e, im)
	for slot := range e.Slots() {
		for n := 1; n <= 4; n++ {
			for at := range n {
				// Use each position once among other images, which also leaves padding of another geometry behind.
				images := slices.Repeat([]engine.Image{other}, n)
				images[at] = im
				if slot == 1 {
					images[at] = mapped
				}
				result := infer(t, e, slot, images...)
				require.Equal(t, []int64{int64(n), 3, 8, 12}, result.Outputs[0].Shape)
				for i := range n {
					expected := wantOther
					if i == at {
						expected = want
					}
					require.Equal(t, expected, position(t, &result.Outputs[0], i), "slot %d, position %d of %d", slot, i, n)
				}
			}
		}
	}
}

func (b Backend) fixedBatch(t *testing.T) {
	e := b.open(t, "image_fixed", batch(8))
	assert.Equal(t, 2, e.Model().MaxBatch)
	first, second := scene(100, 50, 1), scene(50, 100, 2)
	result := infer(t, e, 0, first)
	require.EqualValues(t, 2, result.Outputs[0].Shape[0])
	requireSampled(t, e, first, result.Transforms[0], &result.Outputs[0], 0)
	result = infer(t, e, 0, second, first)
	requireSampled(t, e, second, result.Transforms[0], &result.Outputs[0], 0)
	requireSampled(t, e, first, result.Transforms[1], &result.Outputs[0], 1)
}

func (b Backend) half(t *testing.T) {
	e := b.open(t, "image_half", batch(2))
	first, second := scene(100, 50, 1), scene(640, 480, 2)
	result := infer(t, e, 1, first, second)
	require.Equal(t, engine.Float16, result.Outputs[0].Type)
	require.Equal(t, []int64{2, 3, 8, 12}, result.Outputs[0].Shape)
	requireSampled(t, e, first, result.Transforms[0], &result.Outputs[0], 0)
	requireSampled(t, e, second, result.Transforms[1], &result.Outputs[0], 1)
}

func (b Backend) gray(t *testing.T) {
	e := b.open(t, "image_gray", nil)
	im := engine.Image{Data: slices.Repeat([]byte{51}, 96*64), Width: 96, Height: 64, Stride: 96, Format: engine.GRAY8}
	result := infer(t, e, 0, im)
	require.Equal(t, []int64{1, 1, 8, 12}, result.Outputs[0].Shape)
	for _, level := range result.Outputs[0].Float32s() {
		require.InDelta(t, 0.2, level, 1e-6)
	}
}

// presets tests the preprocessing of several projects.
func (b Backend) presets(t *testing.T) {
	for _, preset := range []string{
		"ultralytics-classify", "torchvision", "imagenet", "yolox", "nanodet", "rtdetr", "ssd-mobilenet",
		"keras",
	} {
		for _, name := range []string{"image", "image_half"} {
			e := b.open(t, name, func(o *engine.Options) {
				o.MaxBatch, o.Metadata.Preprocess = 2, engine.Preprocess{Preset: preset}
			})
			assert.Equal(t, engine.Preprocess{Preset: preset}, e.Model().Metadata.Preprocess)
			assert.False(t, e.Model().Image.Assumed)
			first, second := scene(300, 200, 1), scene(50, 100, 2)
			result := infer(t, e, 0, first, second)
			requireSampled(t, e, first, result.Transforms[0], &result.Outputs[0], 0)
			requireSampled(t, e, second, result.Transforms[1], &result.Outputs[0], 1)
			// Padding of another geometry must not remain.
			result = infer(t, e, 0, second, first)
			requireSampled(t, e, second, result.Transforms[0], &result.Outputs[0], 0)
			requireSampled(t, e, first, result.Transforms[1], &result.Outputs[0], 1)
		}
	}
}

// channelsLast tests networks as TensorFlow's converters write them: uint8 or float, interleaved channels.
func (b Backend) channelsLast(t *testing.T) {
	first, second := scene(300, 200, 1), scene(50, 100, 2)
	e := b.open(t, "image_last", batch(2))
	assert.Equal(t, []int{96, 64}, []int{e.Model().Width, e.Model().Height})
	assert.True(t, e.Model().Image.Assumed)
	result := infer(t, e, 0, first, second)
	require.Equal(t, engine.Uint8, e.Model().Inputs[0].Type)
	require.Equal(t, []int64{2, 8, 12, 3}, result.Outputs[0].Shape)
	requireSampled(t, e, first, result.Transforms[0], &result.Outputs[0], 0)
	requireSampled(t, e, second, result.Transforms[1], &result.Outputs[0], 1)
	if !b.FreeSides {
		return
	}
	e = b.open(t, "image_last_free", func(o *engine.Options) {
		o.Metadata.Preprocess = engine.Preprocess{Preset: "keras", Colour: engine.BGRColour}
		o.Width, o.Height = 64, 32
	})
	result = infer(t, e, 0, first)
	require.Equal(t, []int64{1, 4, 8, 3}, result.Outputs[0].Shape)
	requireSampled(t, e, first, result.Transforms[0], &result.Outputs[0], 0)
}

// unknownPreprocess tests networks without preprocessing metadata: they run on tensors and the error names what is missing.
func (b Backend) unknownPreprocess(t *testing.T) {
	im := scene(20, 10, 1)
	for _, change := range []struct {
		name, want string
		change     func(*engine.Options)
	}{
		{"image_last_free", "nothing says what numbers input \"images\", float32 ", func(*engine.Options) {}},
		{
			"busy", "nothing says how a classifier's images are cropped and scaled",
			func(o *engine.Options) { o.Metadata.Task = engine.Classify },
		},
		{
			"image", "preprocess colour: gray has not the 3 channels of the input",
			func(o *engine.Options) { o.Metadata.Preprocess.Colour = engine.GrayColour },
		},
	} {
		e := b.open(t, change.name, change.change)
		assert.Zero(t, e.Model().Width)
		assert.Nil(t, e.Model().Image)
		err := e.Submit(0, []engine.Image{im})
		requireKind(t, engine.ErrUnsupported, err, change.name)
		require.ErrorContains(t, err, "the model takes no images: "+change.want)
	}
}

func (b Backend) freeSides(t *testing.T) {
	e := b.open(t, "image_free", nil)
	assert.Equal(t, []int{96, 64}, []int{e.Model().Width, e.Model().Height}, "from imgsz")
	im := scene(300, 200, 3)
	requireSampled(t, e, im, infer(t, e, 0, im).Transforms[0], &infer(t, e, 0, im).Outputs[0], 0)
	e = b.open(t, "image_free", func(o *engine.Options) { o.Sources = []engine.Size{{Width: 1280, Height: 400}} })
	assert.Equal(t, []int{96, 32}, []int{e.Model().Width, e.Model().Height}, "30 of 64 rows show the image")
	requireSampled(t, e, im, infer(t, e, 0, im).Transforms[0], &infer(t, e, 0, im).Outputs[0], 0)
	e = b.open(t, "image_free", func(o *engine.Options) { o.Width, o.Height = 64, 128 })
	result := infer(t, e, 0, im)
	require.Equal(t, []int64{1, 3, 16, 8}, result.Outputs[0].Shape)
	requireSampled(t, e, im, result.Transforms[0], &result.Outputs[0], 0)
}

func (b Backend) halfFreeSides(t *testing.T) {
	im := scene(300, 200, 3)
	for _, sides := range [][2]int{{96, 64}, {64, 128}} {
		e := b.open(t, "image_half_free", func(o *engine.Options) { o.Width, o.Height, o.MaxBatch = sides[0], sides[1], 2 })
		for n := 1; n <= 2; n++ {
			result := infer(t, e, 0, []engine.Image{im, im}[:n]...)
			require.Equal(t, []int64{int64(n), 3, int64(sides[1] / 8), int64(sides[0] / 8)}, result.Outputs[0].Shape)
			require.Equal(t, engine.Float16, result.Outputs[0].Type)
			requireSampled(t, e, im, result.Transforms[n-1], &result.Outputs[0], n-1)
		}
	}
}

func (b Backend) order(t *testing.T) {
	e := b.open(t, "image", nil)
	images := [][]engine.Image{{scene(64, 64, 1)}, {scene(96, 64, 2)}}
	for _, order := range [][]int{{0, 1}, {1, 0}} {
		for slot := range images {
			require.NoError(t, e.Submit(slot, images[slot]))
		}
		for _, slot := range order {
			result, err := e.Wait(slot)
			require.NoError(t, err)
			requireSampled(t, e, images[slot][0], result.Transforms[0], &result.Outputs[0], 0)
		}
	}
	// A result is valid until its own slot is used again, independently of other slots.
	kept := infer(t, e, 0, images[0][0])
	for range 3 {
		infer(t, e, 1, images[1][0])
	}
	requireSampled(t, e, images[0][0], kept.Transforms[0], &kept.Outputs[0], 0)
}

func (b Backend) concurrent(t *testing.T) {
	e := b.open(t, "image", batch(2))
	var group sync.WaitGroup
	for slot := range e.Slots() {
		group.Go(func() {
			for i := range 40 {
				im := scene(50+i, 40+slot, uint64(100*slot+i))
				if !assert.NoError(t, e.Submit(slot, []engine.Image{im, im}[:1+i%2])) {
					return
				}
				result, err := e.Wait(slot)
				if !assert.NoError(t, err) {
					return
				}
				for k, want := range sampled(im, e.Model().Image, result.Transforms[0]) {
					if got := float64(result.Outputs[0].Float32s()[k]); math.Abs(got-want) > 1.6/255 {
						assert.InDelta(t, want, got, 1.6/255, "slot %d image %d element %d", slot, i, k)
						return
					}
				}
			}
		})
	}
	group.Wait()
}

func (b Backend) refuses(t *testing.T) {
	e := b.open(t, "image", batch(2))
	im := scene(20, 10, 1)
	short := im
	short.Data = short.Data[:100]
	for name, images := range map[string][]engine.Image{"none": nil, "too many": {im, im, im}, "too little memory": {im, short}} {
		requireKind(t, engine.ErrShape, e.Submit(0, images), name)
	}
	for _, slot := range []int{-1, 2} {
		requireKind(t, engine.ErrShape, e.Submit(slot, []engine.Image{im}), "slot")
		_, err := e.Wait(slot)
		requireKind(t, engine.ErrShape, err, "slot")
	}
	_, err := e.Wait(0)
	requireKind(t, nil, err, "nothing submitted")
	require.NoError(t, e.Submit(0, []engine.Image{im}))
	requireKind(t, nil, e.Submit(0, []engine.Image{im}), "in flight")
	result, err := e.Wait(0)
	require.NoError(t, err, "a refused request must not harm the one in flight")
	requireSampled(t, e, im, result.Transforms[0], &result.Outputs[0], 0)
	_, err = e.Wait(0)
	requireKind(t, nil, err, "waited already")
	requireKind(t, engine.ErrShape, e.SubmitTensors(0, nil), "no tensor")

	e = b.open(t, "tensors", nil)
	requireKind(t, engine.ErrUnsupported, e.Submit(0, []engine.Image{im}), "no image input")
}

func requireKind(t testing.TB, kind, err error, what string) {
	t.Helper()
	_, ok := errors.AsType[*engine.Error](err)
	require.True(t, ok, "%s: %T %v is not an *engine.Error", what, err, err)
	if kind != nil {
		require.ErrorIs(t, err, kind, what)
	}
	require.NotContains(t, err.Error(), "\n", what)
}

// bytesOf returns the memory of values, as a tensor's data.
func bytesOf[T any](values ...T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(&values[0])), len(values)*int(unsafe.Sizeof(values[0])))
}

func (b Backend) tensors(t *testing.T) {
	e := b.open(t, "tensors", nil)
	m := e.Model()
	assert.Zero(t, m.Width)
	require.Len(t, m.Inputs, 2)
	require.Len(t, m.Outputs, 3)
	for _, sides := range [][2]int{{1, 3}, {4, 2}, {1, 3}, {2, 1}} {
		n, k := sides[0], sides[1]
		values, ids := make([]float32, n*2*k), make([]int64, k)
		for i := range values {
			values[i] = float32(i) - 2.5
		}
		for i := range ids {
			ids[i] = int64(10 * i)
		}
		shape := []int64{int64(n), 2, int64(k)}
		inputs := []engine.Tensor{
			{Name: "ids", Type: engine.Int64, Shape: []int64{int64(k)}, Data: bytesOf(ids...)},
			{Name: "values", Type: engine.Float32, Shape: shape, Data: bytesOf(values...)},
		}
		require.NoError(t, e.SubmitTensors(1, inputs))
		result, err := e.Wait(1)
		require.NoError(t, err)
		require.Empty(t, result.Transforms)
		require.Len(t, result.Outputs, 3)
		product, size, positive := result.Outputs[0], result.Outputs[1], result.Outputs[2]
		require.Equal(t, shape, product.Shape)
		for i, got := range product.Float32s() {
			require.Equal(t, values[i]*float32(ids[i%k]), got)
			require.Equal(t, values[i] > 0, positive.Data[i] == 1)
		}
		require.Equal(t, engine.Tensor{Name: "size", Type: engine.Int64, Shape: []int64{3}, Data: bytesOf(shape...)}, size)
		require.Equal(t, engine.Bool, positive.Type)
	}

	good := []engine.Tensor{
		{Name: "ids", Type: engine.Int64, Shape: []int64{1}, Data: bytesOf(int64(1))},
		{Name: "values", Type: engine.Float32, Shape: []int64{1, 2, 1}, Data: bytesOf[float32](1, 2)},
	}
	change := func(by func(*engine.Tensor)) []engine.Tensor {
		bad := slices.Clone(good)
		by(&bad[1])
		return bad
	}
	for name, inputs := range map[string][]engine.Tensor{
		"missing":    good[:1],
		"twice":      {good[0], good[0], good[1]},
		"unknown":    {good[0], good[1], {Name: "more", Type: engine.Float32, Shape: []int64{1}, Data: bytesOf[float32](1)}},
		"type":       change(func(x *engine.Tensor) { x.Type = engine.Int32 }),
		"rank":       change(func(x *engine.Tensor) { x.Shape = []int64{1, 2} }),
		"fixed side": change(func(x *engine.Tensor) { x.Shape = []int64{2, 1, 1} }),
		"zero side":  change(func(x *engine.Tensor) { x.Shape = []int64{0, 2, 1} }),
		"negative":   change(func(x *engine.Tensor) { x.Shape = []int64{-1, 2, -1} }),
		"overflow":   change(func(x *engine.Tensor) { x.Shape = []int64{1 << 62, 2, 1 << 62} }),
		"too short":  change(func(x *engine.Tensor) { x.Data = x.Data[:7] }),
		"too long":   change(func(x *engine.Tensor) { x.Data = append(slices.Clone(x.Data), 0) }),
	} {
		requireKind(t, engine.ErrShape, e.SubmitTensors(0, inputs), name)
	}
	require.NoError(t, e.SubmitTensors(0, good), "the slot is still free")
	_, err := e.Wait(0)
	require.NoError(t, err)
}

func (b Backend) eight(t *testing.T) {
	if !b.SmallTypes {
		t.Skip("the backend takes no tensors of 8 bits")
	}
	e := b.open(t, "eight", nil)
	shape := []int64{1, 2, 1, 2, 1, 2, 1, 2}
	inputs := []engine.Tensor{
		{Name: "a", Type: engine.Int8, Shape: shape, Data: slices.Repeat([]byte{0xfe, 1}, 8)},
		{Name: "b", Type: engine.Uint8, Shape: shape, Data: slices.Repeat([]byte{0xfe, 2}, 8)},
		{Name: "c", Type: engine.Int32, Shape: shape, Data: slices.Repeat(bytesOf[int32](-7, 9), 8)},
		{Name: "d", Type: engine.Bool, Shape: shape, Data: slices.Repeat([]byte{1, 0}, 8)},
		{Name: "e", Type: engine.Float16, Shape: shape, Data: slices.Repeat(bytesOf[uint16](0x3c00, 0xc000), 8)},
	}
	require.NoError(t, e.SubmitTensors(0, inputs))
	result, err := e.Wait(0)
	require.NoError(t, err)
	for i, out := range result.Outputs {
		require.Equal(t, inputs[i].Name+"_out", out.Name)
		out.Name = inputs[i].Name
		require.Equal(t, inputs[i], out)
	}
}

func (b Backend) memory(t *testing.T) {
	e := b.open(t, "image", nil)
	for _, size := range []int{1, 4096, 1920 * 1080 * 3} {
		buffer, err := e.Alloc(size)
		require.NoError(t, err)
		require.Len(t, buffer.Data, size)
		require.Zero(t, uintptr(unsafe.Pointer(&buffer.Data[0]))%4096)
		buffer.Data[0], buffer.Data[size-1] = 1, 2
		buffer.Free()
		buffer.Free()
		require.Nil(t, buffer.Data)
	}
	for _, size := range []int{0, -1} {
		_, err := e.Alloc(size)
		requireKind(t, engine.ErrShape, err, "size")
	}
	left, err := e.Alloc(100)
	require.NoError(t, err)
	require.NoError(t, e.Close())
	left.Free()
	_, err = e.Alloc(100)
	requireKind(t, engine.ErrClosed, err, "closed")
}

func (b Backend) closes(t *testing.T) {
	e := b.open(t, "image", nil)
	im := scene(30, 30, 1)
	infer(t, e, 0, im)
	require.NoError(t, e.Close())
	require.NoError(t, e.Close())
	requireKind(t, engine.ErrClosed, e.Submit(0, []engine.Image{im}), "submit")
	data := make([]byte, 4*3*64*96)
	requireKind(t, engine.ErrClosed, e.SubmitTensors(0, []engine.Tensor{
		{Name: "images", Type: engine.Float32, Shape: []int64{1, 3, 64, 96}, Data: data},
	}), "submit tensors")
	_, err := e.Wait(0)
	requireKind(t, engine.ErrClosed, err, "wait")
	assert.Equal(t, "image.onnx", e.Model().Path)

	// Several engines work at the same time and one after the other.
	first, second := b.open(t, "image", nil), b.open(t, "tensors", nil)
	require.NoError(t, second.Close())
	infer(t, first, 0, im)
	require.NoError(t, first.Close())
	infer(t, b.open(t, "image", nil), 0, im)
}

func (b Backend) closesBusy(t *testing.T) {
	for range 5 {
		e := b.open(t, "busy", batch(2))
		im := scene(200, 100, 1)
		for slot := range e.Slots() {
			require.NoError(t, e.Submit(slot, []engine.Image{im, im}))
		}
		answers := make(chan error, 1)
		go func() {
			_, err := e.Wait(0)
			answers <- err
		}()
		var group sync.WaitGroup
		for range 2 {
			group.Go(func() { assert.NoError(t, e.Close()) })
		}
		group.Wait()
		select {
		case err := <-answers:
			if err != nil {
				requireKind(t, engine.ErrClosed, err, "wait")
			}
		case <-time.After(time.Minute):
			t.Fatal("Wait did not return after Close")
		}
	}
}

func (b Backend) allocations(t *testing.T) {
	e := b.open(t, "image", batch(2))
	images := []engine.Image{copied(t, e, scene(320, 240, 1)), copied(t, e, scene(64, 64, 2))}
	frame := 0
	step := func() {
		slot, n := frame%2, 1+frame/2%2
		frame++
		if err := e.Submit(slot, images[:n]); err != nil {
			t.Error(err)
		}
		if _, err := e.Wait(slot); err != nil {
			t.Error(err)
		}
	}
	for range 8 {
		step()
	}
	const frames = 500
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range frames {
		step()
	}
	runtime.ReadMemStats(&after)
	// Other goroutines of the test binary allocate now and then.
	assert.LessOrEqual(t, float64(after.Mallocs-before.Mallocs)/frames, b.AllocationsPerFrame+0.05)
}
