package triton

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/edge-infer/edge-infer/engine/kserve"
	"github.com/edge-infer/edge-infer/engine/kserve/kservepb"
)

// grpcWire implements the unary gRPC calls of the protocol directly over HTTP/2. Images go from the slot's memory into the connection
// without a copy.
type grpcWire struct {
	*client
	address address
	heads   heads
}

const service = "/inference.GRPCInferenceService/"

// start sends a message and returns the response, whose gRPC status is in its trailer.
func (w *grpcWire) start(ctx context.Context, method string, b *body) (*http.Response, error) {
	header := http.Header{"Content-Type": {"application/grpc"}, "Te": {"trailers"}}
	if deadline, ok := ctx.Deadline(); ok {
		header["Grpc-Timeout"] = []string{strconv.FormatInt(max(time.Until(deadline).Microseconds(), 1), 10) + "u"}
	}
	response, err := w.send(ctx, http.MethodPost, service+method, b, header)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		defer response.Body.Close()
		text, _ := readAll(io.LimitReader(response.Body, kserve.MaxErrorBytes), kserve.MaxErrorBytes)
		return nil, kserve.NewStatus(kserve.FromHTTP(response.StatusCode), fmt.Sprintf("no gRPC: %s %s", response.Status, text))
	}
	if err := status(response.Header); err != nil { // a trailers-only response
		response.Body.Close()
		return nil, err
	}
	return response, nil
}

// status returns the error of a gRPC trailer, or nil.
func status(header http.Header) error {
	text := header.Get("Grpc-Status")
	if text == "" || text == "0" {
		return nil
	}
	code, err := strconv.Atoi(text)
	if err != nil || code < 0 || code > 16 {
		code = int(kserve.Unknown)
	}
	message := header.Get("Grpc-Message")
	if plain, err := url.PathUnescape(message); err == nil {
		message = plain
	}
	return kserve.NewStatus(kserve.Code(code), message)
}

// end checks that a response has no further message and returns the error of its trailer.
func end(response *http.Response) error {
	var more [1]byte
	switch n, err := response.Body.Read(more[:]); {
	case n > 0:
		return kserve.Statusf(kserve.Internal, "the server sent more than one message")
	case err == io.EOF:
	case err != nil:
		return err
	}
	if response.Trailer.Get("Grpc-Status") == "" && response.Header.Get("Grpc-Status") == "" {
		return errShort
	}
	return status(response.Trailer)
}

// call makes a unary call without tensors and decodes the message of the response into answer, unless that is nil.
func (w *grpcWire) call(ctx context.Context, method string, question, answer proto.Message) error {
	framed, err := kserve.Marshal(make([]byte, kserve.FrameHead, 64), question)
	if err != nil {
		return err
	}
	kserve.PutFrameHead(framed, len(framed)-kserve.FrameHead)
	response, err := w.start(ctx, method, newBody(framed))
	if err != nil {
		return err
	}
	defer response.Body.Close()
	var head [kserve.FrameHead]byte
	if _, err := io.ReadFull(response.Body, head[:]); err != nil {
		if failed := status(response.Trailer); err == io.EOF && failed != nil {
			return failed
		}
		return truncated(err)
	}
	length, err := kserve.FrameLength(head[:])
	if err != nil {
		return err
	}
	if length > controlLimit {
		return kserve.Statusf(kserve.Internal, "the response has %d bytes", length)
	}
	data, err := readAll(io.LimitReader(response.Body, int64(length)), length)
	if err == nil && len(data) < length {
		err = errShort
	}
	if err == nil {
		err = end(response)
	}
	if err != nil || answer == nil {
		return err
	}
	return kserve.Unmarshal(data, answer)
}

// truncated replaces an unexpected end of the response by errShort.
func truncated(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errShort
	}
	return err
}

// named returns the request about the model.
func (w *grpcWire) named() *kservepb.ModelRequest {
	return &kservepb.ModelRequest{Name: w.address.model, Version: w.address.version}
}

// ready implements wire.
func (w *grpcWire) ready(ctx context.Context) error {
	var answer kservepb.ReadyResponse
	if err := w.call(ctx, "ModelReady", w.named(), &answer); err != nil {
		return err
	}
	if !answer.Ready {
		return kserve.Statusf(kserve.Unavailable, "model %s is not ready", w.address.model)
	}
	return nil
}

// describe implements wire.
func (w *grpcWire) describe(ctx context.Context) (*description, error) {
	var server kservepb.ServerMetadataResponse
	var model kservepb.ModelMetadataResponse
	var config kservepb.ModelConfigResponse
	if err := w.call(ctx, "ServerMetadata", &kservepb.ModelRequest{}, &server); err != nil {
		return nil, err
	}
	if err := w.call(ctx, "ModelMetadata", w.named(), &model); err != nil {
		return nil, err
	}
	if err := w.call(ctx, "ModelConfig", w.named(), &config); err != nil && !missing(err) {
		return nil, err
	}
	d := &description{}
	d.server.SetMessage(&server)
	d.config.SetMessage(&config)
	if err := d.model.SetMessage(&model); err != nil {
		return nil, err
	}
	d.model.Inputs = imagesFirst(d.model.Inputs)
	return d, nil
}

// register implements wire.
func (w *grpcWire) register(ctx context.Context, r kserve.Registration) error {
	method := "SystemSharedMemoryRegister"
	if r.Handle != nil {
		method = "CudaSharedMemoryRegister"
	}
	return w.call(ctx, method, r.Message(), nil)
}

// unregister implements wire.
func (w *grpcWire) unregister(ctx context.Context, r kserve.Registration) error {
	method := "SystemSharedMemoryUnregister"
	if r.Handle != nil {
		method = "CudaSharedMemoryUnregister"
	}
	return w.call(ctx, method, &kservepb.ModelRequest{Name: r.Name}, nil)
}

// frame builds the head of a request: the parts before the data of each input.
func (w *grpcWire) frame(r *request) (*head, error) {
	r.Model, r.Version = w.address.model, w.address.version
	data := r.AppendHead(make([]byte, kserve.FrameHead, 512))
	total, cuts := 0, []int{}
	for i := range r.Inputs {
		t := &r.Inputs[i]
		if t.Region.Name == "" {
			data = kserve.AppendRaw(data, len(t.Data))
			cuts = append(cuts, len(data))
			total += len(t.Data)
		}
	}
	kserve.PutFrameHead(data, len(data)-kserve.FrameHead+total)
	h, from := &head{data: data}, 0
	for _, at := range cuts {
		h.parts = append(h.parts, data[from:at:at])
		from = at
	}
	if len(cuts) == 0 {
		h.parts = append(h.parts, data)
	}
	return h, nil
}

// infer implements wire.
func (w *grpcWire) infer(ctx context.Context, r *request, a *answer) error {
	h, err := w.heads.get(r, w.frame)
	if err != nil {
		return err
	}
	b := r.body(h)
	defer b.detach()
	a.sent = b.size
	response, err := w.start(ctx, "ModelInfer", b)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	var prefix [kserve.FrameHead]byte
	if _, err := io.ReadFull(response.Body, prefix[:]); err != nil {
		if failed := status(response.Trailer); err == io.EOF && failed != nil {
			return failed
		}
		return truncated(err)
	}
	length, err := kserve.FrameLength(prefix[:])
	if err != nil {
		return err
	}
	data, err := a.readExactly(response.Body, length)
	if err != nil {
		return err
	}
	if err := end(response); err != nil {
		return err
	}
	a.received = int64(length) + kserve.FrameHead
	return a.Unmarshal(data)
}

// body returns the head of a request interleaved with the data of its inputs.
func (r *request) body(h *head) *body {
	parts := make([][]byte, 0, 2*len(h.parts))
	next := 0
	for i := range r.Inputs {
		if t := &r.Inputs[i]; t.Region.Name == "" {
			parts = append(parts, h.parts[next], t.Data)
			next++
		}
	}
	if len(parts) == 0 {
		parts = append(parts, h.parts...)
	}
	return newBody(parts...)
}

// renew implements wire.
func (w *grpcWire) renew() {
	w.transport.CloseIdleConnections()
	w.heads.forget()
}
