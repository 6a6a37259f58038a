package triton

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/kserve"
	"github.com/edge-infer/edge-infer/internal/inflight"
)

// wire is a client of one server. Its methods may be called from any goroutine.
type wire interface {
	// ready reports why the server or the model is not ready.
	ready(ctx context.Context) error
	describe(ctx context.Context) (*description, error)
	register(ctx context.Context, r kserve.Registration) error
	unregister(ctx context.Context, r kserve.Registration) error
	infer(ctx context.Context, r *request, a *answer) error
	// renew closes idle connections and drops cached request heads.
	renew()
}

// description is the metadata of a server and its model.
type description struct {
	server kserve.ServerMetadata
	model  kserve.ModelMetadata
	config kserve.ModelConfig // zero if the server has none
}

// request is an inference request. Each input has its data or a shared memory region.
type request struct {
	kserve.InferRequest
	// key is equal for requests that differ only in their data. Heads of requests with the zero key are not cached.
	key requestKey
}

type requestKey struct{ slot, batch int }

// answer is a response and its memory. Outputs are views of buffer.
type answer struct {
	kserve.InferResponse
	buffer         []byte
	shift          int // offset of the message in buffer that aligns its first tensor
	limit          int // maximum message size in bytes
	memory         inflight.Lease
	sent, received int64
}

// newAnswer returns an answer whose memory is counted. Its limit is in bytes.
func (e *Engine) newAnswer(limit int) *answer {
	return &answer{limit: limit, memory: inflight.Lease{Budget: &e.answers}}
}

const (
	first = 64 << 10 // bytes of the buffer for an answer of unknown size
	// alignment of tensors in bytes: the size of the widest element.
	alignment = 8
	// controlLimit is the maximum size of responses without tensors, in bytes; headerLimit that of their headers and trailers.
	controlLimit = 4 << 20
	headerLimit  = 1 << 20
	dialTimeout  = 5 * time.Second
)

// room returns space for a message of n bytes in the buffer, which grows if needed and keeps what it holds.
func (a *answer) room(n int) ([]byte, error) {
	if n < 0 || n > a.limit {
		return nil, kserve.Statusf(kserve.Internal, "the response has %d bytes, the limit is %d", n, a.limit)
	}
	if need := n + alignment; len(a.buffer) < need {
		need += need / 8
		if err := a.memory.Grow(int64(need)); err != nil {
			return nil, kserve.Statusf(kserve.ResourceExhausted, "the response has %d bytes: %v", n, err)
		}
		larger := make([]byte, need)
		copy(larger, a.buffer)
		a.buffer = larger
	}
	return a.buffer[a.shift : a.shift+n], nil
}

// drop gives the buffer's memory back.
func (a *answer) drop() {
	a.buffer, a.Outputs = nil, nil
	a.memory.End()
}

// readExactly reads a message of n bytes. Memory grows as it arrives: a server may announce what it never sends.
func (a *answer) readExactly(from io.Reader, n int) ([]byte, error) {
	if n < 0 || n > a.limit {
		return nil, kserve.Statusf(kserve.Internal, "the response has %d bytes, the limit is %d", n, a.limit)
	}
	read := 0
	for size := min(n, max(first, len(a.buffer)-alignment)); ; size = min(2*size, n) {
		data, err := a.room(size)
		if err != nil {
			return nil, err
		}
		if _, err := io.ReadFull(from, data[read:]); err != nil {
			return nil, truncated(err)
		}
		if read = size; read == n {
			return data, nil
		}
	}
}

// readAll reads a message of unknown size.
func (a *answer) readAll(from io.Reader) ([]byte, error) {
	read := 0
	for size := min(first, a.limit); ; size = min(2*size, a.limit) {
		data, err := a.room(size)
		if err != nil {
			return nil, err
		}
		n, err := io.ReadFull(from, data[read:])
		read += n
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return data[:read], nil
		case err != nil:
			return nil, err
		case size == a.limit:
			if n, _ := io.ReadFull(from, make([]byte, 1)); n > 0 {
				return nil, kserve.Statusf(kserve.Internal, "the response has over %d bytes", a.limit)
			}
			return data, nil
		}
	}
}

// align aligns the data of every output, so that it can be viewed as numbers. Responses to the same request have the same layout, so the
// shift computed here avoids the copy for the next response.
func (a *answer) align() {
	first := true
	for i := range a.Outputs {
		t := &a.Outputs[i]
		if len(t.Data) == 0 {
			continue
		}
		if off := offset(t.Data, alignment); off != 0 {
			if first {
				a.shift = (a.shift + alignment - off) % alignment
			}
			aligned := make([]byte, len(t.Data)+alignment)
			if skip := offset(aligned, alignment); skip != 0 {
				aligned = aligned[alignment-skip:]
			}
			t.Data = aligned[:copy(aligned, t.Data)]
		}
		first = false
	}
}

// body reads the parts of a request in order. It does not access their memory after detach.
type body struct {
	size int64

	mu       sync.Mutex
	parts    [][]byte
	detached bool
}

func newBody(parts ...[]byte) *body {
	b := &body{parts: parts}
	for _, part := range parts {
		b.size += int64(len(part))
	}
	return b
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (n int, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.detached {
		return 0, errDetached
	}
	for n < len(p) && len(b.parts) > 0 {
		m := copy(p[n:], b.parts[0])
		n += m
		if b.parts[0] = b.parts[0][m:]; len(b.parts[0]) == 0 {
			b.parts = b.parts[1:]
		}
	}
	if n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

// Close implements io.Closer.
func (b *body) Close() error { return nil }

// detach ends reading. The transport may still read the body of a failed request when its memory is reused.
func (b *body) detach() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.detached, b.parts = true, nil
}

var errDetached = errors.New("the request has ended")

// client is the HTTP transport to one server, with its authorization.
type client struct {
	transport *http.Transport
	base      string // URL
	authorize func() string
}

func newClient(a address, remote *engine.Remote, authorize func() string) *client {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(!a.grpc)
	protocols.SetUnencryptedHTTP2(a.grpc && !a.tls)
	protocols.SetHTTP2(a.tls)
	dialer := &net.Dialer{Timeout: dialTimeout, KeepAlive: 15 * time.Second}
	c := &client{base: "http://" + a.host, authorize: authorize}
	c.transport = &http.Transport{
		Protocols: protocols, DisableCompression: true, DialContext: dialer.DialContext, MaxIdleConnsPerHost: 16,
		IdleConnTimeout: 90 * time.Second, WriteBufferSize: 64 << 10, ReadBufferSize: 64 << 10, MaxResponseHeaderBytes: headerLimit,
	}
	if a.tls {
		c.base = "https://" + a.host
		c.transport.DialTLSContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			config := &tls.Config{MinVersion: tls.VersionTLS12}
			if remote.TLS != nil {
				var err error
				if config, err = remote.TLS(); err != nil {
					return nil, err
				}
			}
			config.NextProtos = []string{"h2"}
			if !a.grpc {
				config.NextProtos = []string{"h2", "http/1.1"}
			}
			return (&tls.Dialer{NetDialer: dialer, Config: config}).DialContext(ctx, network, address)
		}
	}
	return c
}

// send makes one request. The caller must close the response's body.
func (c *client) send(ctx context.Context, method, path string, b *body, header http.Header) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.base+path, nil)
	if err != nil {
		return nil, err
	}
	if b != nil {
		request.Body, request.ContentLength = b, b.size
	}
	for key, values := range header {
		request.Header[key] = values
	}
	request.Header["User-Agent"] = []string{"edge-infer"}
	if token := c.authorize(); token != "" {
		request.Header["Authorization"] = []string{token}
	}
	return c.transport.RoundTrip(request)
}

// heads caches request heads by key.
type heads struct {
	mu   sync.Mutex
	kept map[requestKey]*head
}

type head struct {
	parts [][]byte // the bytes before each input's data
	data  []byte   // the backing array of all parts
}

// maxHeads is the size at which the cache is emptied.
const maxHeads = 1024

func (h *heads) get(r *request, build func(r *request) (*head, error)) (*head, error) {
	if r.key == (requestKey{}) {
		return build(r)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if known := h.kept[r.key]; known != nil {
		return known, nil
	}
	made, err := build(r)
	if err != nil {
		return nil, err
	}
	if h.kept == nil || len(h.kept) == maxHeads {
		h.kept = map[requestKey]*head{}
	}
	h.kept[r.key] = made
	return made, nil
}

// forget empties the cache.
func (h *heads) forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.kept = nil
}

// readAll reads a response of at most limit bytes.
func readAll(r io.Reader, limit int) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, int64(limit)+1))
	if err == nil && len(data) > limit {
		err = fmt.Errorf("the response has over %d bytes", limit)
	}
	return data, err
}

var errShort = errors.New("the response is truncated")
