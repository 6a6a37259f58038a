package tritoncheck

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"
)

// byHand is what somebody writes who needs one request of one model: no checks, no deadline, no other server.
type byHand struct {
	client http.Client
	url    string
	head   []byte
	grpc   bool
	buffer []byte
}

// newByHand writes what goes before the tensor of a request with one float32 input.
func newByHand(s *server, scheme, input string, shape []int64, size int) *byHand {
	const model = "demo"
	c := &byHand{grpc: scheme == "grpc", buffer: make([]byte, 1<<20)}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(!c.grpc)
	protocols.SetUnencryptedHTTP2(c.grpc)
	c.client.Transport = &http.Transport{
		Protocols: protocols, DisableCompression: true, WriteBufferSize: 64 << 10, ReadBufferSize: 64 << 10,
	}
	if !c.grpc {
		c.url = fmt.Sprintf("http://127.0.0.1:%d/v2/models/%s/infer", s.http, model)
		c.head, _ = json.Marshal(map[string]any{
			"inputs": []any{map[string]any{
				"name": input, "datatype": "FP32", "shape": shape, "parameters": map[string]any{"binary_data_size": size},
			}},
			"parameters": map[string]any{"binary_data_output": true},
		})
		return c
	}
	c.url = fmt.Sprintf("http://127.0.0.1:%d/inference.GRPCInferenceService/ModelInfer", s.grpc)
	var packed, tensor []byte
	for _, n := range shape {
		packed = protowire.AppendVarint(packed, uint64(n))
	}
	tensor = protowire.AppendString(protowire.AppendTag(tensor, 1, protowire.BytesType), input)
	tensor = protowire.AppendString(protowire.AppendTag(tensor, 2, protowire.BytesType), "FP32")
	tensor = protowire.AppendBytes(protowire.AppendTag(tensor, 3, protowire.BytesType), packed)
	c.head = protowire.AppendString(protowire.AppendTag(make([]byte, 5), 1, protowire.BytesType), model)
	c.head = protowire.AppendBytes(protowire.AppendTag(c.head, 5, protowire.BytesType), tensor)
	c.head = protowire.AppendVarint(protowire.AppendTag(c.head, 7, protowire.BytesType), uint64(size))
	binary.BigEndian.PutUint32(c.head[1:], uint32(len(c.head)-5+size))
	return c
}

// infer sends the tensor and gives the memory of the answer's last output.
func (c *byHand) infer(tensor []byte) ([]byte, error) {
	request, err := http.NewRequest(http.MethodPost, c.url, io.MultiReader(bytes.NewReader(c.head), bytes.NewReader(tensor)))
	if err != nil {
		return nil, err
	}
	request.ContentLength = int64(len(c.head) + len(tensor))
	if c.grpc {
		request.Header = http.Header{"Content-Type": {"application/grpc"}, "Te": {"trailers"}}
	} else {
		request.Header.Set("Inference-Header-Content-Length", strconv.Itoa(len(c.head)))
	}
	response, err := c.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s", response.Status)
	}
	n, err := io.ReadFull(response.Body, c.buffer)
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, fmt.Errorf("an answer of over %d bytes: %w", n, err)
	}
	if !c.grpc {
		head, err := strconv.Atoi(response.Header.Get("Inference-Header-Content-Length"))
		return c.buffer[head:n], err
	}
	var output []byte
	for message := c.buffer[5:n]; len(message) > 0; {
		number, kind, tag := protowire.ConsumeTag(message)
		size := protowire.ConsumeFieldValue(number, kind, message[tag:])
		if number == 6 {
			output, _ = protowire.ConsumeBytes(message[tag:])
		}
		message = message[tag+size:]
	}
	return output, nil
}
