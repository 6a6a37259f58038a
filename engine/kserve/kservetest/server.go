// Package kservetest provides a server of the Open Inference Protocol for tests. It runs an engine of this project on loopback and can
// inject faults. Only tests import it.
package kservetest

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/kserve"
	"github.com/edge-infer/edge-infer/engine/kserve/server"
)

// Server is one server with one model, named "net".
type Server struct {
	server.Server
	Model   *Model
	Address string // host and port; the same after Stop and Start
	TLS     *tls.Config
	Memory  *Memory // nil for a server that shares none

	// Hang, while set, blocks every request, as a stopped process does.
	Hang atomic.Bool

	http     *http.Server
	released atomic.Pointer[chan struct{}] // closed by Stop; handlers that outlive it read the next server's
	done     chan struct{}
}

// Name is the name of the model.
const Name = "net"

// New starts a server for an engine, which it does not close. change may be nil.
func New(t testing.TB, e engine.Engine, properties map[string]string, change func(*Server)) *Server {
	m := &Model{engine: e, Version: "1", Parameters: properties}
	m.MaxBatch = e.Model().MaxBatch
	s := &Server{Model: m, Address: "127.0.0.1:0"}
	s.Models = map[string]server.Model{Name: m}
	s.About = kserve.ServerMetadata{Name: "kservetest", Version: "1.2", Extensions: []string{"binary_tensor_data", "model_configuration"}}
	if change != nil {
		change(s)
	}
	s.Start(t)
	t.Cleanup(s.Stop)
	return s
}

// Start listens, after Stop at the same address again.
func (s *Server) Start(t testing.TB) {
	listener, err := net.Listen("tcp", s.Address)
	require.NoError(t, err)
	s.Address = listener.Addr().String()
	released := make(chan struct{})
	s.released.Store(&released)
	s.done = make(chan struct{})
	s.http = &http.Server{Handler: s, Protocols: server.Protocols(s.TLS != nil), TLSConfig: s.TLS}
	serving, done := s.http, s.done
	go func() {
		defer close(done)
		if s.TLS != nil {
			_ = serving.ServeTLS(listener, "", "") // ends with Stop
		} else {
			_ = serving.Serve(listener)
		}
	}()
}

// Stop ends the server at once and aborts all requests.
func (s *Server) Stop() {
	if s.http == nil {
		return
	}
	close(*s.released.Load())
	_ = s.http.Close() // errors of connections do not matter
	<-s.done
	s.http = nil
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	released := *s.released.Load()
	if s.Hang.Load() {
		select {
		case <-r.Context().Done():
		case <-released:
		}
		return
	}
	if s.Memory != nil && s.Memory.serve(s.Model, w, r) {
		return
	}
	s.Server.ServeHTTP(w, r)
}

// Model is an engine that is served, one request after the other.
type Model struct {
	MaxBatch   int
	Parameters map[string]string
	Version    string
	Unready    atomic.Bool
	// Fault changes an answer or replaces it by an error; nil for none. Set it through SetFault.
	fault atomic.Pointer[func(*kserve.InferRequest, *kserve.InferResponse) error]
	// Inferred counts the requests that were answered, Images what they held.
	Inferred, Images atomic.Int64

	engine   engine.Engine
	mu       sync.Mutex
	describe func(*kserve.ModelMetadata)
}

// SetFault sets the Fault; nil removes it.
func (m *Model) SetFault(fault func(*kserve.InferRequest, *kserve.InferResponse) error) {
	if fault == nil {
		m.fault.Store(nil)
		return
	}
	m.fault.Store(&fault)
}

// Redescribe makes the server return another description of the model, as a new version of it would.
func (m *Model) Redescribe(version string, change func(*kserve.ModelMetadata)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.Version, m.describe = version, change
}

// Metadata implements server.Model.
func (m *Model) Metadata() kserve.ModelMetadata {
	m.mu.Lock()
	defer m.mu.Unlock()
	model := m.engine.Model()
	list := func(infos []engine.TensorInfo) (tensors []kserve.TensorMetadata) {
		for _, info := range infos {
			tensors = append(tensors, kserve.TensorMetadata{Name: info.Name, Datatype: kserve.Datatype(info.Type), Shape: info.Shape})
		}
		return tensors
	}
	d := kserve.ModelMetadata{
		Name: Name, Versions: []string{m.Version}, Platform: "test", Inputs: list(model.Inputs), Outputs: list(model.Outputs),
	}
	if m.describe != nil {
		m.describe(&d)
	}
	return d
}

// Config implements server.Model.
func (m *Model) Config() kserve.ModelConfig {
	c := kserve.ModelConfig{Name: Name, Backend: "test", Parameters: map[string]kserve.Parameter{}}
	inputs := m.engine.Model().Inputs
	if len(inputs) == 1 && len(inputs[0].Shape) > 0 && inputs[0].Shape[0] == -1 {
		c.MaxBatch = m.MaxBatch
	}
	for key, value := range m.Parameters {
		c.Parameters[key] = kserve.Parameter{Text: value}
	}
	return c
}

// Statistics implements server.Model.
func (m *Model) Statistics() kserve.ModelStatistics {
	return kserve.ModelStatistics{
		Name: Name, Version: m.Version, InferenceCount: uint64(m.Images.Load()), ExecutionCount: uint64(m.Inferred.Load()),
	}
}

// Ready implements server.Model.
func (m *Model) Ready() error {
	if m.Unready.Load() {
		return kserve.Statusf(kserve.Unavailable, "the model is not ready")
	}
	return nil
}

// Infer implements server.Model.
func (m *Model) Infer(_ context.Context, r *kserve.InferRequest, write func(*kserve.InferResponse) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var inputs []engine.Tensor
	for i := range r.Inputs {
		t := &r.Inputs[i]
		kind, ok := kserve.ElementType(t.Datatype)
		if !ok {
			return kserve.Statusf(kserve.InvalidArgument, "type %s", t.Datatype)
		}
		inputs = append(inputs, engine.Tensor{Name: t.Name, Type: kind, Shape: t.Shape, Data: t.Data})
	}
	if len(inputs[0].Shape) == 4 && m.MaxBatch > 0 && inputs[0].Shape[0] > int64(m.MaxBatch) {
		return kserve.Statusf(kserve.InvalidArgument, "a batch of %d", inputs[0].Shape[0])
	}
	if err := m.engine.SubmitTensors(0, inputs); err != nil {
		return kserve.Statusf(kserve.InvalidArgument, "%v", err)
	}
	result, err := m.engine.Wait(0)
	if err != nil {
		return err
	}
	a := &kserve.InferResponse{Model: Name, Version: m.Version}
	for _, out := range result.Outputs {
		a.Outputs = append(a.Outputs, kserve.Tensor{Name: out.Name, Datatype: kserve.Datatype(out.Type), Shape: out.Shape, Data: out.Data})
	}
	if fault := m.fault.Load(); fault != nil {
		if err := (*fault)(r, a); err != nil {
			return err
		}
	}
	m.Inferred.Add(1)
	m.Images.Add(inputs[0].Shape[0])
	return write(a)
}
