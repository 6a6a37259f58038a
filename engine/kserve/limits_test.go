package kserve

import (
	"bytes"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/edge-infer/edge-infer/engine/kserve/kservepb"
)

// TestLongListsTakeLittleMemory: a body of many tiny elements is refused before it takes many times its size. The decoder buffers one
// element.
func TestLongListsTakeLittleMemory(t *testing.T) {
	const size = 20 << 20
	list := func(before, element, after string) []byte {
		body := append([]byte(before), bytes.Repeat([]byte(element+","), size/(len(element)+1))...)
		return append(append(body, element...), after...)
	}
	for _, c := range []struct {
		name, want string
		body       []byte
	}{
		{"inputs", "more than 256 tensors", list(`{"inputs":[`, `{}`, `]}`)},
		{"outputs", "more than 256 tensors", list(`{"inputs":[],"outputs":[`, `{}`, `]}`)},
		{"dimensions", "more than 8 dimensions", list(`{"inputs":[{"name":"a","datatype":"FP32","shape":[`, `1`, `]}]}`)},
	} {
		t.Run(c.name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			var r InferRequest
			err := r.UnmarshalHTTP(c.body, -1)
			runtime.ReadMemStats(&after)
			require.ErrorIs(t, err, errMalformed)
			require.ErrorContains(t, err, c.want)
			assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(4*size), "bytes allocated for a body of 20 MiB")
		})
	}
}

// TestLongListsOfDescriptions: lists and maps of nested messages are refused before the decoder allocates an element for every 2 bytes.
func TestLongListsOfDescriptions(t *testing.T) {
	const size = 4 << 20
	list := func(number protowire.Number) []byte {
		return bytes.Repeat(protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), nil), size/2)
	}
	part := appendMessage(nil, 1, func([]byte) []byte { return list(14)[:2000] })
	for _, c := range []struct {
		name string
		body []byte
		into proto.Message
	}{
		{"inputs", list(4), &kservepb.ModelMetadataResponse{}},
		{"extensions", list(3), &kservepb.ServerMetadataResponse{}},
		{"parameters", appendMessage(nil, 1, func([]byte) []byte { return list(14) }), &kservepb.ModelConfigResponse{}},
		// A message that occurs again is merged with the first one.
		{"parts", bytes.Repeat(part, size/len(part)), &kservepb.ModelConfigResponse{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := Unmarshal(c.body, c.into)
			runtime.ReadMemStats(&after)
			require.EqualError(t, err, "no message of this protocol: more than 1024 entries of a list")
			assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(size), "bytes allocated for a message of 4 MiB")
		})
	}
}

func TestLimitsOfDescriptions(t *testing.T) {
	var m ModelMetadata
	tensors := make([]*kservepb.TensorMetadata, maxTensors+1)
	for i := range tensors {
		tensors[i] = &kservepb.TensorMetadata{}
	}
	require.EqualError(t, m.SetMessage(&kservepb.ModelMetadataResponse{Outputs: tensors}),
		"no message of this protocol: more than 256 tensors")
	tensors = []*kservepb.TensorMetadata{{Shape: make([]int64, maxRank+1)}}
	require.EqualError(t, m.SetMessage(&kservepb.ModelMetadataResponse{Inputs: tensors}),
		"description of a tensor: no message of this protocol: more than 8 sizes")
}

// TestTextsAreUTF8: the specification permits no other texts, and clients of other projects reject the whole message.
func TestTextsAreUTF8(t *testing.T) {
	_, err := Marshal(nil, &kservepb.ModelRequest{Name: "\xff"})
	require.EqualError(t, err, "ModelRequest has a text that is not UTF-8")
	require.ErrorIs(t, Unmarshal([]byte{10, 1, 0xff}, &kservepb.ModelRequest{}), errMalformed)
}
