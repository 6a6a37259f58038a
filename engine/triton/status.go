package triton

import (
	"time"

	"github.com/edge-infer/edge-infer/engine/kserve"
	"github.com/edge-infer/edge-infer/internal/inflight"
)

// Status is the state of an engine's servers.
type Status struct {
	Servers []Server `json:"servers"`
	Retries uint64   `json:"retries"` // repeated attempts of requests
	// Answers is the memory that answers hold.
	Answers inflight.Stats `json:"answers"`
}

// Server is the state of one server.
type Server struct {
	Address string    `json:"address"`
	Healthy bool      `json:"healthy"`
	Reason  string    `json:"reason,omitempty"`  // why it is suspended
	Since   time.Time `json:"since,omitzero"`    // last change of Healthy
	Version string    `json:"version,omitempty"` // of the model
	Wire    string    `json:"wire,omitempty"`    // encoding of images: fp32, fp16, uint8 or jpeg
	// Shared is set if images go through shared memory, OnGPU if that is GPU memory. Unshared is why the configured kind is not used.
	Shared   bool   `json:"shared_memory"`
	OnGPU    bool   `json:"shared_gpu_memory"`
	Unshared string `json:"unshared,omitempty"`

	Requests    uint64  `json:"requests"`
	Failures    uint64  `json:"failures"`
	Suspensions uint64  `json:"suspensions"`
	Latency     float64 `json:"latency_ms"` // moving average per request
	Sent        uint64  `json:"sent_bytes"`
	Received    uint64  `json:"received_bytes"`
	// SentFrame is the average number of bytes sent per image.
	SentFrame float64 `json:"sent_bytes_per_frame"`
}

// Status returns the state of the servers. It may be called from any goroutine.
func (e *Engine) Status() Status {
	status := Status{Retries: e.retries.Load(), Answers: e.answers.Stats()}
	for _, p := range e.endpoints {
		p.mu.Lock()
		s := Server{
			Address: p.address.String(), Healthy: p.healthy, Reason: p.reason, Since: p.since,
			Version: p.version, Shared: p.shared.Load(), OnGPU: p.onGPU.Load(), Unshared: p.unshared,
			Wire: e.wireEncoding(),
		}
		p.mu.Unlock()
		s.Requests, s.Failures, s.Suspensions = p.requests.Load(), p.failures.Load(), p.suspensions.Load()
		s.Latency, s.Sent, s.Received = float64(p.latency.Load())/1e6, p.bytesSent.Load(), p.bytesReceived.Load()
		if frames := p.frames.Load(); frames > 0 {
			s.SentFrame = float64(s.Sent) / float64(frames)
		}
		status.Servers = append(status.Servers, s)
	}
	return status
}

// wireEncoding returns the encoding of images, or "" if the model takes none.
func (e *Engine) wireEncoding() string {
	switch {
	case e.jpeg:
		return JPEG
	case e.img == nil:
		return ""
	}
	return encodings[kserve.Datatype(e.img.Type)]
}

// Healthy reports whether any server is healthy.
func (e *Engine) Healthy() bool { return e.choose(nil) != nil }
