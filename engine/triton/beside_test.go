package triton_test

import (
	"context"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/kserve"
	"github.com/edge-infer/edge-infer/engine/kserve/kservetest"
	"github.com/edge-infer/edge-infer/engine/triton"
)

// sized is the test network with inputs beside the image, the first of which comes before it.
type sized struct {
	*kservetest.Model
	sizes [][]int64 // of the last request, by image
	ones  int       // of its mask
}

func (s *sized) Metadata() kserve.ModelMetadata {
	d := s.Model.Metadata()
	sizes := kserve.TensorMetadata{Name: "orig_target_sizes", Datatype: "INT64", Shape: []int64{-1, 2}}
	mask := kserve.TensorMetadata{Name: "pixel_mask", Datatype: "INT64", Shape: []int64{-1, 8, 8}}
	d.Inputs = append([]kserve.TensorMetadata{sizes}, append(d.Inputs, mask)...)
	return d
}

func (s *sized) Infer(ctx context.Context, r *kserve.InferRequest, write func(*kserve.InferResponse) error) error {
	network := *r
	network.Inputs = nil
	s.sizes, s.ones = nil, 0
	batch := r.Inputs[0].Shape[0]
	for _, in := range r.Inputs {
		if err := in.Check(); err != nil || in.Shape[0] != batch {
			return kserve.Statusf(kserve.InvalidArgument, "%v %v: %v", in.Name, in.Shape, err)
		}
		switch in.Name {
		case "orig_target_sizes":
			for at := in.Data; len(at) > 0; at = at[16:] {
				s.sizes = append(s.sizes, []int64{int64(binary.LittleEndian.Uint64(at)), int64(binary.LittleEndian.Uint64(at[8:]))})
			}
		case "pixel_mask":
			for at := in.Data; len(at) > 0; at = at[8:] {
				s.ones += int(binary.LittleEndian.Uint64(at))
			}
		default:
			network.Inputs = append(network.Inputs, in)
		}
	}
	return s.Model.Infer(ctx, &network, write)
}

// Inputs beside the image whose values are known are filled as they are for an engine here, whatever their order.
func TestInputsBesideTheImage(t *testing.T) {
	for _, scheme := range []string{"grpc", "http"} {
		o := network(t)
		o.MaxBatch = 2
		var model *sized
		s := serve(t, o, func(s *kservetest.Server) {
			model = &sized{Model: s.Model}
			s.Models["sized"] = model
		})
		plain, err := at(t.Context(), scheme, o, s)
		require.NoError(t, err)
		defer plain.Close()
		e, err := triton.Open(t.Context(), scheme+"://"+s.Address+"/sized", o, quiet)
		require.NoError(t, err)
		defer e.Close()
		require.Equal(t, "images", e.Model().Inputs[0].Name)
		require.Len(t, e.Model().Inputs, 3)
		require.NotNil(t, e.Model().Image)
		require.Equal(t, "fp32", e.Status().Servers[0].Wire)
		for _, images := range [][]engine.Image{striped(), append(striped(), img()...), striped()} {
			require.NoError(t, plain.Submit(0, images))
			want, err := plain.Wait(0)
			require.NoError(t, err)
			require.NoError(t, e.Submit(0, images))
			got, err := e.Wait(0)
			require.NoError(t, err)
			require.Equal(t, want.Outputs, got.Outputs)
			require.Len(t, model.sizes, len(images))
			for _, size := range model.sizes {
				require.Equal(t, []int64{96, 64}, size)
			}
			require.Equal(t, 64*len(images), model.ones)
		}
	}
}
