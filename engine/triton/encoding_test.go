package triton_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"image/jpeg"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/enginetest"
	"github.com/edge-infer/edge-infer/engine/kserve"
	"github.com/edge-infer/edge-infer/engine/kserve/kservetest"
	"github.com/edge-infer/edge-infer/engine/triton"
)

// compressed is the test network behind a server's preprocessing: it takes JPEG of the network's size.
type compressed struct {
	*kservetest.Model
	largest int // bytes of a request's images
}

// besideIt adds the model that takes JPEG.
func besideIt(s *kservetest.Server) *compressed {
	c := &compressed{Model: s.Model}
	s.Models[kservetest.Name+"_jpeg"] = c
	return c
}

func (c *compressed) Metadata() kserve.ModelMetadata {
	d := c.Model.Metadata()
	d.Name += "_jpeg"
	d.Inputs = []kserve.TensorMetadata{{Name: "images", Datatype: "BYTES", Shape: []int64{-1, 1}}}
	return d
}

func (c *compressed) Infer(ctx context.Context, r *kserve.InferRequest, write func(*kserve.InferResponse) error) error {
	in := &r.Inputs[0]
	if in.Datatype != "BYTES" || len(in.Shape) != 2 || in.Shape[1] != 1 {
		return kserve.Statusf(kserve.InvalidArgument, "%s %v", in.Datatype, in.Shape)
	}
	c.largest = max(c.largest, len(in.Data))
	var numbers []byte
	for rest := in.Data; len(rest) > 0; {
		n := int(binary.LittleEndian.Uint32(rest))
		img, err := jpeg.Decode(bytes.NewReader(rest[4 : 4+n]))
		if err != nil {
			return kserve.Statusf(kserve.InvalidArgument, "%v", err)
		}
		rest = rest[4+n:]
		size := img.Bounds().Size()
		for channel := range 3 {
			for y := range size.Y {
				for x := range size.X {
					r, g, b, _ := img.At(x, y).RGBA()
					level := float32([]uint32{r, g, b}[channel]>>8) / 255
					numbers = binary.LittleEndian.AppendUint32(numbers, math.Float32bits(level))
				}
			}
		}
	}
	network := *r
	network.Inputs = []kserve.Tensor{{
		Name: "images", Datatype: "FP32", Shape: []int64{in.Shape[0], 3, 64, 96}, Data: numbers,
	}}
	return c.Model.Infer(ctx, &network, write)
}

// striped is an image of the network's size with something in it.
func striped() []engine.Image {
	im := engine.Image{Data: make([]byte, 3*96*64), Width: 96, Height: 64, Stride: 3 * 96, Format: engine.BGR}
	for i := range im.Data {
		im.Data[i] = byte(40*(i%3) + 150*(i/96%2))
	}
	return []engine.Image{im}
}

func TestImagesAsJPEG(t *testing.T) {
	for _, scheme := range []string{"grpc", "http"} {
		s := serve(t, network(t), nil)
		behind := besideIt(s)
		run := func(encoding string) []float32 {
			o := network(t)
			o.Remote.Encoding = encoding
			e, err := at(t.Context(), scheme, o, s)
			require.NoError(t, err)
			defer e.Close()
			require.NoError(t, e.Submit(0, striped()))
			result, err := e.Wait(0)
			require.NoError(t, err)
			require.Len(t, result.Transforms, 1)
			status := e.Status().Servers[0]
			if encoding == triton.JPEG {
				require.Equal(t, triton.JPEG, status.Wire)
				require.False(t, status.Shared)
				require.Less(t, status.SentFrame, 5000.0, "of 73728 bytes of numbers")
				require.Equal(t, []int64{-1, 64, 96, 3}, e.Model().Inputs[0].Shape)
			} else {
				require.Equal(t, "fp32", status.Wire)
			}
			return append([]float32(nil), result.Outputs[0].Float32s()...)
		}
		plain, jpeg := run(triton.Auto), run(triton.JPEG)
		require.Positive(t, behind.largest)
		require.InDeltaSlice(t, plain, jpeg, 0.05)
	}
}

// Tensors of a model that takes JPEG are the images before that.
func TestTensorsAsJPEG(t *testing.T) {
	o := network(t)
	o.MaxBatch = 2
	s := serve(t, o, nil)
	besideIt(s)
	o.Remote.Encoding = triton.JPEG
	e, err := at(t.Context(), "grpc", o, s)
	require.NoError(t, err)
	defer e.Close()
	require.NoError(t, e.SubmitTensors(0, []engine.Tensor{{
		Name: "images", Type: engine.Uint8, Shape: []int64{2, 64, 96, 3}, Data: make([]byte, 2*64*96*3),
	}}))
	result, err := e.Wait(0)
	require.NoError(t, err)
	require.EqualValues(t, 2, result.Outputs[0].Shape[0])
}

// The choice is made again for a server that comes later, and one that has no such model says what to do.
func TestWhatIsAskedForIsLookedForOnEveryServer(t *testing.T) {
	first, second := serve(t, network(t), nil), serve(t, network(t), nil)
	besideIt(first)
	later := besideIt(second)
	second.Stop()
	o := network(t)
	o.Remote.Encoding, o.Remote.Timeout = triton.JPEG, patience
	e, err := at(t.Context(), "grpc", o, first, second)
	require.NoError(t, err)
	defer e.Close()
	second.Start(t)
	requireHealthy(t, e, 2)
	first.Stop()
	_, err = infer(e)
	require.NoError(t, err)
	require.Positive(t, later.largest)

	other := serve(t, network(t), nil)
	o.Remote.Encoding = "uint8"
	_, err = at(t.Context(), "http", o, other)
	require.ErrorIs(t, err, engine.ErrUnsupported)
	require.EqualError(t, err, "triton open: model net takes fp32, and the server has no model net_uint8 that takes uint8 "+
		"(edge-infer export triton --wire uint8 writes one; or leave --remote-wire at auto)")
}

// A model that takes bytes of which nothing says how large the image is cannot be used.
func TestJPEGOfAnUnknownShape(t *testing.T) {
	s := serve(t, enginetest.Network(t, "image"), nil)
	besideIt(s)
	s.Model.Redescribe("1", func(d *kserve.ModelMetadata) {
		d.Inputs = []kserve.TensorMetadata{{Name: "images", Datatype: "BYTES", Shape: []int64{-1, 3}}}
	})
	_, err := at(t.Context(), "grpc", network(t), s)
	require.ErrorIs(t, err, engine.ErrUnsupported)
	require.ErrorContains(t, err, `input "images" is BYTES [-1 3], which is not a JPEG input of known size`)
}
