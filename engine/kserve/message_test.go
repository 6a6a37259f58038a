package kserve

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/edge-infer/edge-infer/engine/kserve/kservepb"
)

func answer() InferResponse {
	return InferResponse{
		Model: "net", Version: "3", ID: "a",
		Outputs: []Tensor{
			{Name: "boxes", Datatype: "FP32", Shape: []int64{1, 2}, Data: []byte{0, 0, 128, 63, 0, 0, 0, 192}},
			{Name: "none", Datatype: "INT64", Shape: []int64{0}, Data: []byte{}},
			{Name: "half", Datatype: "FP16", Shape: []int64{2}, Data: []byte{0, 60, 0, 192}},
			{Name: "truth", Datatype: "BOOL", Shape: []int64{2}, Data: []byte{1, 0}},
			{Name: "small", Datatype: "INT8", Shape: []int64{2}, Data: []byte{255, 1}},
			{Name: "levels", Datatype: "UINT8", Shape: []int64{2}, Data: []byte{255, 1}},
			{Name: "ids", Datatype: "INT32", Shape: []int64{1}, Data: []byte{254, 255, 255, 255}},
			{Name: "far", Datatype: "INT64", Shape: []int64{1}, Data: []byte{255, 255, 255, 255, 255, 255, 255, 255}},
		},
	}
}

func requireAnswer(t *testing.T, got *InferResponse) {
	want := answer()
	got.raws = nil
	for i := range got.Outputs {
		if got.Outputs[i].Data == nil {
			got.Outputs[i].Data = []byte{}
		}
		require.NoError(t, got.Outputs[i].Check())
	}
	require.Equal(t, &want, got)
}

func TestAnswersCross(t *testing.T) {
	want := answer()
	var got InferResponse
	for range 2 { // the second time into the memory of the first
		require.NoError(t, got.Unmarshal(want.Marshal(nil)))
		requireAnswer(t, &got)
	}
	for _, binary := range []bool{true, false} {
		body, head, err := want.MarshalHTTP(binary)
		require.NoError(t, err)
		require.Equal(t, binary, head >= 0)
		for range 2 {
			require.NoError(t, got.UnmarshalHTTP(body, head))
			requireAnswer(t, &got)
		}
	}
}

func TestRequestsCross(t *testing.T) {
	want := InferRequest{
		Model: "net", Version: "2", ID: "7", BinaryOutput: true,
		Inputs: []Tensor{
			{Name: "a", Datatype: "UINT8", Shape: []int64{3}, Data: []byte{1, 2, 3}},
			{Name: "b", Datatype: "FP32", Shape: []int64{300}, Region: Region{Name: "r", Offset: 64, Size: 1200}},
			{Name: "c", Datatype: "UINT8", Shape: []int64{1}, Data: []byte{9}},
		},
		Outputs: []Tensor{{Name: "o", Region: Region{Name: "r", Size: 5}}, {Name: "p"}},
	}
	b := AppendRaw(want.AppendHead(nil), 3)
	b = append(AppendRaw(append(b, 1, 2, 3), 1), 9)
	var got InferRequest
	require.NoError(t, got.Unmarshal(b))
	require.Equal(t, want, clean(got))

	head, err := want.MarshalHead([]int64{3, 0, 1})
	require.NoError(t, err)
	require.NoError(t, got.UnmarshalHTTP(append(head, 1, 2, 3, 9), len(head)))
	got.Model, got.Version = want.Model, want.Version // those are in the path
	require.Equal(t, want, clean(got))

	want.Inputs, want.Outputs, want.BinaryOutput = want.Inputs[:1], nil, false
	text, err := want.MarshalJSONOnly()
	require.NoError(t, err)
	require.NoError(t, got.UnmarshalHTTP(text, -1))
	got.Model, got.Version = want.Model, want.Version
	require.Equal(t, want, clean(got))
}

// clean leaves no empty lists where there were none.
func clean(r InferRequest) InferRequest {
	for i := range r.Outputs {
		r.Outputs[i].Shape = nil
	}
	return r
}

// Clients of other projects put numbers into lists of their kinds instead of raw bytes.
func TestContentsOfNumbers(t *testing.T) {
	list := func(number protowire.Number, packed ...byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), packed)
	}
	for _, test := range []struct {
		datatype string
		contents []byte
		want     []byte
	}{
		{"BOOL", list(1, 1, 0), []byte{1, 0}},
		{"INT8", list(2, 5, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1), []byte{5, 255}},
		{"INT64", list(3, 1), []byte{1, 0, 0, 0, 0, 0, 0, 0}},
		{"UINT8", list(4, 0x80, 1), []byte{128}},
		{"FP32", list(6, 0, 0, 128, 63), []byte{0, 0, 128, 63}},
	} {
		got, err := unpack(test.datatype, test.contents)
		require.NoError(t, err, test.datatype)
		require.Equal(t, test.want, got, test.datatype)
	}
	_, err := unpack("FP16", list(7, 0, 0))
	require.EqualError(t, err, "FP16 tensors are not read from list 7 of the contents")
	_, err = unpack("BYTES", nil)
	require.EqualError(t, err, `tensors of "BYTES" are not read`)
}

// cross returns the message after encoding and decoding.
func cross[M proto.Message](t *testing.T, m M) M {
	b, err := Marshal(nil, m)
	require.NoError(t, err)
	got := m.ProtoReflect().New().Interface()
	require.NoError(t, Unmarshal(b, got))
	return got.(M)
}

func TestDescriptionsCross(t *testing.T) {
	server := ServerMetadata{Name: "triton", Version: "2.51.0", Extensions: []string{"a", "b"}}
	var gotServer ServerMetadata
	gotServer.SetMessage(cross(t, server.Message()))
	require.Equal(t, server, gotServer)

	model := ModelMetadata{
		Name: "net", Versions: []string{"1", "2"}, Platform: "p",
		Inputs:  []TensorMetadata{{Name: "i", Datatype: "FP32", Shape: []int64{-1, 3}}},
		Outputs: []TensorMetadata{{Name: "o", Datatype: "INT64", Shape: []int64{}}},
	}
	var gotModel ModelMetadata
	require.NoError(t, gotModel.SetMessage(cross(t, model.Message())))
	require.Equal(t, model, gotModel)

	config := ModelConfig{Name: "net", Backend: "b", MaxBatch: 8, Parameters: map[string]Parameter{"names": {"['a']"}}}
	var gotConfig ModelConfig
	gotConfig.SetMessage(cross(t, config.Message()))
	require.Equal(t, config, gotConfig)
	text, err := json.Marshal(&config)
	require.NoError(t, err)
	gotConfig = ModelConfig{}
	require.NoError(t, json.Unmarshal(text, &gotConfig))
	require.Equal(t, config, gotConfig)
}

func TestDamagedMessages(t *testing.T) {
	good := answer()
	var r InferResponse
	message := good.Marshal(nil)
	for n := range message {
		_ = r.Unmarshal(message[:n]) // no panic; a message that ends between fields is a shorter one
	}
	body, head, err := good.MarshalHTTP(true)
	require.NoError(t, err)
	for want, b := range map[string][]byte{
		"answer: no JSON at byte":                      body[:head-1],
		`tensor "far": 8 bytes announced, 7 are there`: body[:len(body)-1],
	} {
		require.ErrorContains(t, r.UnmarshalHTTP(b, min(head, len(b))), want)
	}
	require.ErrorContains(t, r.UnmarshalHTTP(body, len(body)+1), "bytes of JSON announced")
	for _, text := range []string{
		`{"outputs":[{"name":"a","datatype":"FP32","shape":[1],"data":["x"]}]}`,
		`{"outputs":[{"name":"a","datatype":"UINT8","shape":[1],"data":[256]}]}`,
		`{"outputs":[{"name":"a","datatype":"FP99","shape":[1],"data":[1]}]}`,
		`{"outputs":[{"name":"a","datatype":"FP32","shape":[1],"parameters":{"binary_data_size":-1}}]}`,
		`{"outputs":[{"name":"a","datatype":"FP32","shape":[1,1,1,1,1,1,1,1,1],"data":[1]}]}`,
		`{"outputs":3}`,
	} {
		require.Error(t, r.UnmarshalHTTP([]byte(text), -1), text)
	}
}

// Sizes that no memory holds are none.
func TestBytes(t *testing.T) {
	for _, shape := range [][]int64{{1 << 62, 1 << 62}, {-1}, {1 << 40, 2}} {
		_, ok := Bytes("FP32", shape)
		require.False(t, ok, "%v", shape)
	}
	n, ok := Bytes("FP16", []int64{0, 1 << 62})
	require.True(t, ok)
	require.Zero(t, n)
	_, ok = Bytes("BYTES", []int64{1})
	require.False(t, ok)
}

func FuzzInferResponse(f *testing.F) {
	good := answer()
	f.Add(good.Marshal(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		var r InferResponse
		if r.Unmarshal(b) != nil {
			return
		}
		for i := range r.Outputs {
			if r.Outputs[i].Check() == nil {
				n, _ := Bytes(r.Outputs[i].Datatype, r.Outputs[i].Shape)
				require.Len(t, r.Outputs[i].Data, n)
			}
		}
	})
}

func FuzzInferResponseHTTP(f *testing.F) {
	good := answer()
	for _, binary := range []bool{true, false} {
		body, head, err := good.MarshalHTTP(binary)
		require.NoError(f, err)
		f.Add(body, head)
	}
	f.Fuzz(func(_ *testing.T, b []byte, head int) {
		var r InferResponse
		_ = r.UnmarshalHTTP(b, head)
	})
}

func FuzzInferRequest(f *testing.F) {
	r := InferRequest{Model: "net", Inputs: []Tensor{{Name: "a", Datatype: "UINT8", Shape: []int64{1}, Data: []byte{1}}}}
	f.Add(append(AppendRaw(r.AppendHead(nil), 1), 1), -1)
	text, err := r.MarshalJSONOnly()
	require.NoError(f, err)
	f.Add(text, -1)
	f.Fuzz(func(_ *testing.T, b []byte, head int) {
		var r InferRequest
		_ = r.Unmarshal(b)
		_ = r.UnmarshalHTTP(b, head)
	})
}

func FuzzDescriptions(f *testing.F) {
	model := ModelMetadata{Name: "net", Versions: []string{"1"}, Inputs: []TensorMetadata{{Name: "i", Datatype: "FP32", Shape: []int64{-1}}}}
	config := ModelConfig{Name: "net", MaxBatch: 8, Parameters: map[string]Parameter{"a": {"b"}}}
	for _, m := range []proto.Message{model.Message(), config.Message()} {
		b, err := Marshal(nil, m)
		require.NoError(f, err)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var server kservepb.ServerMetadataResponse
		if Unmarshal(b, &server) == nil {
			new(ServerMetadata).SetMessage(&server)
			require.LessOrEqual(t, len(server.Extensions), maxEntries)
		}
		var model kservepb.ModelMetadataResponse
		var m ModelMetadata
		if Unmarshal(b, &model) == nil && m.SetMessage(&model) == nil {
			require.LessOrEqual(t, len(m.Inputs), maxTensors)
		}
		var config kservepb.ModelConfigResponse
		if Unmarshal(b, &config) == nil {
			new(ModelConfig).SetMessage(&config)
		}
		_ = Unmarshal(b, &kservepb.ModelRequest{})
	})
}

// TestClassificationIsRead in both encodings: a server must not ignore it.
func TestClassificationIsRead(t *testing.T) {
	parameter := func(b []byte) []byte {
		return appendMessage(appendText(b, 1, "classification"), 2, func(b []byte) []byte { return appendNumber(b, 2, 5) })
	}
	message := appendMessage(nil, fieldWanted, func(b []byte) []byte { return appendMessage(appendText(b, 1, "o"), 2, parameter) })
	var packed, text InferRequest
	require.NoError(t, packed.Unmarshal(message))
	require.NoError(t, text.UnmarshalHTTP([]byte(`{"inputs":[],"outputs":[{"name":"o","parameters":{"classification":5}}]}`), -1))
	for _, r := range []*InferRequest{&packed, &text} {
		require.Len(t, r.Outputs, 1)
		require.EqualValues(t, 5, r.Outputs[0].Classes)
	}
}
