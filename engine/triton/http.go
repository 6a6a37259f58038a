package triton

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync/atomic"

	"github.com/edge-infer/edge-infer/engine/kserve"
)

// httpWire implements the protocol over HTTP: JSON, followed by binary tensors if the server supports them.
type httpWire struct {
	*client
	address address
	heads   heads
	text    atomic.Bool // the server takes tensors only as JSON
}

// binaryExtension is the server extension for binary tensors.
const binaryExtension = "binary_tensor_data"

func (w *httpWire) model() string {
	path := "/v2/models/" + url.PathEscape(w.address.model)
	if w.address.version != "" {
		path += "/versions/" + url.PathEscape(w.address.version)
	}
	return path
}

// call makes a request without tensors and decodes the JSON response into answer, unless that is nil.
func (w *httpWire) call(ctx context.Context, method, path string, b *body, answer any) error {
	header := http.Header{"Accept": {"application/json"}}
	if b != nil {
		header["Content-Type"] = []string{"application/json"}
	}
	response, err := w.send(ctx, method, path, b, header)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return refusal(response)
	}
	data, err := readAll(response.Body, controlLimit)
	if err != nil || answer == nil {
		return err
	}
	if json.Unmarshal(data, answer) != nil {
		return kserve.Statusf(kserve.Internal, "the response to %s is not the expected JSON", path)
	}
	return nil
}

// refusal returns the error of a response. It limits the text, since some servers send up to 16 MB.
func refusal(response *http.Response) error {
	text, _ := io.ReadAll(io.LimitReader(response.Body, 4*kserve.MaxErrorBytes)) // a partial text is enough
	var reason struct {
		Error string `json:"error"`
	}
	message := string(text)
	if json.Unmarshal(text, &reason) == nil && reason.Error != "" {
		message = reason.Error
	}
	if message == "" {
		message = response.Status
	}
	return kserve.NewStatus(kserve.FromHTTP(response.StatusCode), message)
}

// missing reports whether an error means that the server does not support the call or has no such object.
func missing(err error) bool {
	var s *kserve.Status
	return errors.As(err, &s) && (s.Code == kserve.Unimplemented || s.Code == kserve.NotFound)
}

// ready implements wire.
func (w *httpWire) ready(ctx context.Context) error {
	err := w.call(ctx, http.MethodGet, w.model()+"/ready", nil, nil)
	var s *kserve.Status
	if errors.As(err, &s) && s.Code == kserve.InvalidArgument { // Triton's code for a model that is not ready
		return kserve.Statusf(kserve.Unavailable, "model %s is not ready", w.address.model)
	}
	return err
}

// describe implements wire.
func (w *httpWire) describe(ctx context.Context) (*description, error) {
	d := &description{}
	if err := w.call(ctx, http.MethodGet, "/v2", nil, &d.server); err != nil {
		return nil, err
	}
	if err := w.call(ctx, http.MethodGet, w.model(), nil, &d.model); err != nil {
		return nil, err
	}
	if err := w.call(ctx, http.MethodGet, w.model()+"/config", nil, &d.config); err != nil && !missing(err) {
		return nil, err
	}
	d.model.Inputs = imagesFirst(d.model.Inputs)
	w.text.Store(!slices.Contains(d.server.Extensions, binaryExtension))
	return d, nil
}

// region returns the path of an operation on shared memory.
func (*httpWire) region(r *kserve.Registration, what string) string {
	kind := "system"
	if r.Handle != nil {
		kind = "cuda"
	}
	return "/v2/" + kind + "sharedmemory/region/" + url.PathEscape(r.Name) + "/" + what
}

// register implements wire.
func (w *httpWire) register(ctx context.Context, r kserve.Registration) error {
	about := map[string]any{"key": r.Key, "offset": 0, "byte_size": r.Size}
	if r.Handle != nil { // encoded as base64 in JSON
		about = map[string]any{"raw_handle": map[string]any{"b64": r.Handle}, "device_id": r.Device, "byte_size": r.Size}
	}
	text, err := json.Marshal(about)
	if err != nil {
		return err
	}
	return w.call(ctx, http.MethodPost, w.region(&r, "register"), newBody(text), nil)
}

// unregister implements wire.
func (w *httpWire) unregister(ctx context.Context, r kserve.Registration) error {
	return w.call(ctx, http.MethodPost, w.region(&r, "unregister"), newBody([]byte("{}")), nil)
}

// frame builds the JSON of a request.
func (w *httpWire) frame(r *request) (*head, error) {
	r.BinaryOutput = true
	sizes := make([]int64, len(r.Inputs))
	for i := range r.Inputs {
		sizes[i] = int64(len(r.Inputs[i].Data))
	}
	data, err := r.MarshalHead(sizes)
	if err != nil {
		return nil, err
	}
	h := &head{data: data, parts: [][]byte{data}}
	for range r.Inputs {
		h.parts = append(h.parts, nil)
	}
	return h, nil
}

// infer implements wire.
func (w *httpWire) infer(ctx context.Context, r *request, a *answer) error {
	var b *body
	header := http.Header{}
	if w.text.Load() {
		text, err := r.MarshalJSONOnly()
		if err != nil {
			return err
		}
		b = newBody(text)
		header["Content-Type"] = []string{"application/json"}
	} else {
		h, err := w.heads.get(r, w.frame)
		if err != nil {
			return err
		}
		b = r.body(h)
		header[kserve.HeaderLength] = []string{strconv.Itoa(len(h.data))}
		header["Content-Type"] = []string{kserve.ContentType}
	}
	defer b.detach()
	a.sent = b.size
	response, err := w.send(ctx, http.MethodPost, w.model()+"/infer", b, header)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return refusal(response)
	}
	data, err := w.read(response, a)
	if err != nil {
		return err
	}
	a.received = int64(len(data))
	length := -1
	if text := response.Header.Get(kserve.HeaderLength); text != "" {
		if length, err = strconv.Atoi(text); err != nil || length < 0 {
			return kserve.Statusf(kserve.Internal, "%s is %.32q", kserve.HeaderLength, text)
		}
	}
	return a.UnmarshalHTTP(data, length)
}

// read reads the body of a response into the memory of a.
func (w *httpWire) read(response *http.Response, a *answer) ([]byte, error) {
	if n := response.ContentLength; n >= 0 {
		return a.readExactly(response.Body, int(min(n, int64(a.limit)+1)))
	}
	return a.readAll(response.Body)
}

// renew implements wire.
func (w *httpWire) renew() {
	w.transport.CloseIdleConnections()
	w.heads.forget()
}
