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
)

// wire speaks to one server. Its methods may be called from any goroutine.
type wire interface {
	// ready reports why the server or the model is not ready.
	ready(ctx context.Context) error
	describe(ctx context.Context) (*description, error)
	register(ctx context.Context, r kserve.Registration) error
	unregister(ctx context.Context, r kserve.Registration) error
	infer(ctx context.Context, r *request, a *answer) error
	// renew closes the connections that nobody uses, and forgets what is kept for regions that are gone.
	renew()
}

// description is what a server says of itself and of the model.
type description struct {
	server kserve.ServerMetadata
	model  kserve.ModelMetadata
	config kserve.ModelConfig // zero where the server has none
}

// request is what goes to a server: everything about the inputs, with their data or the region that they are in.
type request struct {
	kserve.InferRequest
	// key is the same for requests that differ in their data alone; its zero value is for a request of its own kind.
	key requestKey
}

type requestKey struct{ slot, batch int }

// answer is the memory of what comes back. Outputs are views of buffer.
type answer struct {
	kserve.InferResponse
	buffer         []byte
	shift          int // of the message in the buffer, so that its first tensor is aligned
	limit          int // most bytes that are read
	sent, received int64
}

const (
	// alignment of tensors in memory; the widest element has 8 bytes.
	alignment = 8
	// controlLimit bounds answers that are no tensors.
	controlLimit = 16 << 20
	dialTimeout  = 5 * time.Second
)

// room returns the buffer's part for a message of n bytes.
func (a *answer) room(n int) ([]byte, error) {
	if n < 0 || n > a.limit {
		return nil, kserve.Statusf(kserve.Internal, "the answer has %d bytes, at most %d are read", n, a.limit)
	}
	if need := n + alignment; len(a.buffer) < need {
		a.buffer = make([]byte, need+need/8)
	}
	return a.buffer[a.shift : a.shift+n], nil
}

// align makes the data of every output begin at a multiple of its element size, for whoever views it as numbers. Answers to the same
// request are laid out alike, so the shift that helps this one helps the next: then nothing is copied.
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

// body reads the parts of a request one after the other, until it is detached from their memory.
type body struct {
	size int64

	mu    sync.Mutex
	parts [][]byte
	gone  bool
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
	if b.gone {
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

// detach ends reading. The transport may go on with a body after the request has failed, while its memory is used for the next one.
func (b *body) detach() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.gone, b.parts = true, nil
}

var errDetached = errors.New("the request is over")

// client is a connection to one server and what every request to it carries.
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
		IdleConnTimeout: 90 * time.Second, WriteBufferSize: 64 << 10, ReadBufferSize: 64 << 10,
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

// send does one request. The answer's body must be closed.
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

// heads keeps what goes before the data of requests, by their keys.
type heads struct {
	mu   sync.Mutex
	kept map[requestKey]*head
}

type head struct {
	parts [][]byte // the first one, and what goes before each further input
	data  []byte   // all parts in one memory
}

// maxHeads bounds what is kept; then all of it is made anew.
const maxHeads = 1024

func (h *heads) of(r *request, build func(r *request) (*head, error)) (*head, error) {
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

// forget drops what is kept.
func (h *heads) forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.kept = nil
}

// readAll reads an answer that is no tensor, to a limit.
func readAll(r io.Reader, limit int) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, int64(limit)+1))
	if err == nil && len(data) > limit {
		err = fmt.Errorf("the answer has over %d bytes", limit)
	}
	return data, err
}

var errShort = errors.New("the answer ends too early")
