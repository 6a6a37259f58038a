package demo

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture/scene"
	"google.golang.org/protobuf/encoding/protowire"
)

// fields collects the length-delimited and varint fields of one protobuf message by number.
func fields(t *testing.T, message []byte) (bytes map[protowire.Number][][]byte, numbers map[protowire.Number][]uint64) {
	t.Helper()
	bytes, numbers = map[protowire.Number][][]byte{}, map[protowire.Number][]uint64{}
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		require.Positive(t, n)
		message = message[n:]
		switch kind {
		case protowire.BytesType:
			value, n := protowire.ConsumeBytes(message)
			require.Positive(t, n)
			bytes[number] = append(bytes[number], value)
			message = message[n:]
		case protowire.VarintType:
			value, n := protowire.ConsumeVarint(message)
			require.Positive(t, n)
			numbers[number] = append(numbers[number], value)
			message = message[n:]
		default:
			n := protowire.ConsumeFieldValue(number, kind, message)
			require.Positive(t, n)
			message = message[n:]
		}
	}
	return bytes, numbers
}

// Field numbers of onnx.proto.
const (
	modelGraph, modelOpset, modelMetadata                   = 7, 8, 14
	graphNode, graphInput, graphOutput                      = 1, 11, 12
	nodeOp                                                  = 4
	opsetVersion                                            = 2
	valueName, valueType, typeTensor, tensorShape, shapeDim = 1, 2, 1, 2, 1
	dimValue, dimParam                                      = 1, 2
)

// value describes a graph input or output as name[dims].
func value(t *testing.T, message []byte) string {
	t.Helper()
	info, _ := fields(t, message)
	kind, _ := fields(t, info[valueType][0])
	tensor, _ := fields(t, kind[typeTensor][0])
	shape, _ := fields(t, tensor[tensorShape][0])
	var dims []string
	for _, d := range shape[shapeDim] {
		name, size := fields(t, d)
		if len(size[dimValue]) == 1 {
			dims = append(dims, fmt.Sprint(size[dimValue][0]))
		} else {
			dims = append(dims, string(name[dimParam][0]))
		}
	}
	return fmt.Sprintf("%s[%s]", info[valueName][0], strings.Join(dims, ","))
}

func TestModelFile(t *testing.T) {
	require.LessOrEqual(t, len(Model()), 2_000_000)
	model, _ := fields(t, Model())
	require.Len(t, model[modelOpset], 1)
	_, opset := fields(t, model[modelOpset][0])
	assert.Equal(t, []uint64{13}, opset[opsetVersion])
	graph, _ := fields(t, model[modelGraph][0])
	require.Len(t, graph[graphInput], 1)
	require.Len(t, graph[graphOutput], 1)
	assert.Equal(t, "images[batch,3,416,416]", value(t, graph[graphInput][0]))
	assert.Equal(t, "output0[batch,10,3549]", value(t, graph[graphOutput][0]))
}

func TestModelMetadata(t *testing.T) {
	model, _ := fields(t, Model())
	metadata := map[string]string{}
	for _, entry := range model[modelMetadata] {
		pair, _ := fields(t, entry)
		metadata[string(pair[1][0])] = string(pair[2][0])
	}
	var names []string
	for i, label := range scene.Labels() {
		names = append(names, fmt.Sprintf("%d: '%s'", i, label))
	}
	assert.Equal(t, map[string]string{
		"description": "edge-infer demo detector", "author": "The edge-infer authors", "license": "Apache-2.0", "version": "1.0.0",
		"task": "detect", "stride": "32", "batch": "1", "imgsz": "[416, 416]", "names": "{" + strings.Join(names, ", ") + "}",
	}, metadata)
}

// The operators are those that every runtime builds and quantizes well; BatchNorm is folded.
func TestModelOperators(t *testing.T) {
	usual := map[string]bool{
		"Conv": true, "Relu": true, "Concat": true, "Resize": true, "MaxPool": true, "Sigmoid": true, "Reshape": true, "Split": true,
		"Slice": true, "Add": true, "Sub": true, "Mul": true, "Constant": true, "Transpose": true,
	}
	model, _ := fields(t, Model())
	graph, _ := fields(t, model[modelGraph][0])
	require.NotEmpty(t, graph[graphNode])
	for _, node := range graph[graphNode] {
		parts, _ := fields(t, node)
		assert.Contains(t, usual, string(parts[nodeOp][0]))
	}
}
