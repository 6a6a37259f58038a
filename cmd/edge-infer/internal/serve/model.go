package serve

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/kserve"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// version is the only model version.
const version = "1"

// model is a served network. Requests that arrive while the engine is busy are batched.
type model struct {
	name     string
	raw      *predict.Raw
	about    engine.Model
	metadata kserve.ModelMetadata
	config   kserve.ModelConfig
	delay    time.Duration
	queue    chan *request
	stop     chan struct{} // closed by close
	done     sync.WaitGroup

	// Used by the worker only.
	batch  []*request
	inputs []engine.Tensor
	memory [][]byte // concatenated inputs

	mu    sync.Mutex
	stats kserve.ModelStatistics
	sizes map[int]*kserve.BatchStatistics
}

// request is a request of a client.
type request struct {
	ctx     context.Context
	inputs  []engine.Tensor // in the model's order
	rows    int64
	arrived time.Time

	// Written by the worker before done is closed.
	outputs []kserve.Tensor
	err     error
	done    chan struct{}
}

// newModel serves a network. size replaces dynamic image sizes; zero allows any.
func newModel(raw *predict.Raw, size engine.Size, name string, queue int, delay time.Duration) (*model, error) {
	about := raw.Model()
	about.Inputs = sized(&about, size)
	m := &model{
		name: name, raw: raw, about: about, delay: delay, queue: make(chan *request, queue), stop: make(chan struct{}),
		sizes: map[int]*kserve.BatchStatistics{},
	}
	m.stats.Name, m.stats.Version = name, version
	properties, err := about.Metadata.Properties()
	if err != nil {
		return nil, err
	}
	parameters := map[string]kserve.Parameter{}
	for key, value := range properties {
		parameters[key] = kserve.Parameter{Text: value}
	}
	m.metadata = kserve.ModelMetadata{Name: name, Versions: []string{version}, Platform: about.Backend}
	m.config = kserve.ModelConfig{Name: name, Backend: about.Backend, Parameters: parameters}
	if m.batches() {
		m.config.MaxBatch = about.MaxBatch
		m.config.DynamicBatching = &kserve.DynamicBatching{MaxQueueDelay: uint64(delay.Microseconds())}
	}
	for _, t := range about.Inputs {
		m.metadata.Inputs = append(m.metadata.Inputs, described(&t))
		m.config.Inputs = append(m.config.Inputs, m.configured(&t))
	}
	for _, t := range about.Outputs {
		m.metadata.Outputs = append(m.metadata.Outputs, described(&t))
		m.config.Outputs = append(m.config.Outputs, m.configured(&t))
	}
	m.done.Go(m.work)
	return m, nil
}

// sized returns a network's inputs with dynamic image sizes replaced.
func sized(about *engine.Model, size engine.Size) []engine.TensorInfo {
	if about.Image == nil || size.Width == 0 {
		return about.Inputs
	}
	inputs := slices.Clone(about.Inputs)
	img := &inputs[about.Image.Index]
	img.Shape = slices.Clone(img.Shape)
	first := 2
	if about.Image.Interleaved {
		first = 1
	}
	img.Shape[first], img.Shape[first+1] = int64(size.Height), int64(size.Width)
	return inputs
}

// takes describes the inputs of a request.
func (m *model) takes() string {
	var all []string
	for i := range m.about.Inputs {
		t := &m.about.Inputs[i]
		all = append(all, fmt.Sprintf("%s %v %v", t.Name, t.Type, t.Shape))
	}
	return strings.Join(all, ", ")
}

func described(t *engine.TensorInfo) kserve.TensorMetadata {
	return kserve.TensorMetadata{Name: t.Name, Datatype: kserve.Datatype(t.Type), Shape: append([]int64{}, t.Shape...)}
}

func (m *model) configured(t *engine.TensorInfo) kserve.ConfigTensor {
	dims := append([]int64{}, t.Shape...)
	if m.config.MaxBatch > 0 {
		dims = dims[1:]
	}
	return kserve.ConfigTensor{Name: t.Name, DataType: kserve.ConfigType(kserve.Datatype(t.Type)), Dims: dims}
}

// batches reports whether requests can be batched: all inputs and outputs have a dynamic first dimension.
func (m *model) batches() bool {
	closed := func(t engine.TensorInfo) bool { return len(t.Shape) == 0 || t.Shape[0] != -1 }
	return m.about.MaxBatch > 1 && !slices.ContainsFunc(m.about.Inputs, closed) && !slices.ContainsFunc(m.about.Outputs, closed)
}

// largest returns the limit of a request in bytes: the largest batch, or one image as JSON text, about six times its binary size, and 1 MiB
// more.
func (m *model) largest() int64 {
	const text, others = 6, 1 << 20
	batch, known := kserve.BatchBytes(m.about.Inputs, m.about.MaxBatch)
	if !known { // dynamic sizes
		return 256 << 20
	}
	image, _ := kserve.BatchBytes(m.about.Inputs, 1)
	return int64(max(batch, text*image) + others)
}

// close ends the worker, refuses queued requests and closes the network.
func (m *model) close() error {
	close(m.stop)
	m.done.Wait()
	return m.raw.Close()
}

// Metadata implements server.Model.
func (m *model) Metadata() kserve.ModelMetadata { return m.metadata }

// Config implements server.Model.
func (m *model) Config() kserve.ModelConfig { return m.config }

// Ready implements server.Model.
func (m *model) Ready() error { return nil }

// Statistics implements server.Model.
func (m *model) Statistics() kserve.ModelStatistics {
	m.mu.Lock()
	defer m.mu.Unlock()
	stats := m.stats
	stats.Batches = []kserve.BatchStatistics{}
	for _, b := range m.sizes {
		stats.Batches = append(stats.Batches, *b)
	}
	slices.SortFunc(stats.Batches, func(a, b kserve.BatchStatistics) int { return int(a.BatchSize) - int(b.BatchSize) })
	return stats
}

// Infer implements server.Model.
func (m *model) Infer(ctx context.Context, in *kserve.InferRequest, write func(*kserve.InferResponse) error) error {
	r, err := m.request(ctx, in)
	if err != nil {
		return err
	}
	select {
	case m.queue <- r:
	case <-m.stop:
		return kserve.Statusf(kserve.Unavailable, "the server is stopping")
	default:
		m.count(r, 0, kserve.Statusf(kserve.Unavailable, ""))
		return kserve.Statusf(kserve.Unavailable, "Exceeds maximum queue size of %d", cap(m.queue))
	}
	// The worker uses the client's memory until it is done, even if the client has disconnected.
	select {
	case <-r.done:
	case <-m.stop:
		m.done.Wait()
		select {
		case <-r.done:
		default:
			return kserve.Statusf(kserve.Unavailable, "the server is stopping")
		}
	}
	if r.err != nil {
		return r.err
	}
	return write(&kserve.InferResponse{Model: m.name, Version: version, Outputs: r.outputs})
}

// request validates the request of a client.
func (m *model) request(ctx context.Context, in *kserve.InferRequest) (*request, error) {
	r := &request{ctx: ctx, arrived: time.Now(), done: make(chan struct{}), rows: 1}
	for i := range in.Inputs {
		t := &in.Inputs[i]
		if err := t.Check(); err != nil {
			return nil, kserve.Statusf(kserve.InvalidArgument, "%v", err)
		}
		kind, _ := kserve.ElementType(t.Datatype)
		r.inputs = append(r.inputs, engine.Tensor{Name: t.Name, Type: kind, Shape: t.Shape, Data: t.Data})
	}
	if err := engine.CheckTensors(m.about.Inputs, r.inputs); err != nil {
		message := err.Error()
		if known, ok := errors.AsType[*engine.Error](err); ok {
			message = known.Message
		}
		return nil, kserve.Statusf(kserve.InvalidArgument, "%s", message)
	}
	ordered := make([]engine.Tensor, 0, len(r.inputs))
	for _, info := range m.about.Inputs {
		ordered = append(ordered, r.inputs[slices.IndexFunc(r.inputs, func(t engine.Tensor) bool { return t.Name == info.Name })])
	}
	r.inputs = ordered
	if m.config.MaxBatch > 0 {
		r.rows = r.inputs[0].Shape[0]
		for _, t := range r.inputs {
			if t.Shape[0] != r.rows {
				return nil, kserve.Statusf(kserve.InvalidArgument, "inputs have %d and %d rows", r.rows, t.Shape[0])
			}
		}
		if r.rows > int64(m.config.MaxBatch) {
			return nil, kserve.Statusf(kserve.InvalidArgument, "batch of %d exceeds the maximum of %d", r.rows, m.config.MaxBatch)
		}
	}
	return r, nil
}

// count updates the statistics with a finished request.
func (m *model) count(r *request, queued time.Duration, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	took := &m.stats.Infer.Success
	if err != nil {
		took = &m.stats.Infer.Fail
	} else {
		m.stats.InferenceCount += uint64(r.rows)
		m.stats.LastInference = uint64(time.Now().UnixMilli())
	}
	add(took, time.Since(r.arrived))
	add(&m.stats.Infer.Queue, queued)
}

func add(to *kserve.Duration, d time.Duration) {
	to.Count++
	to.Ns += uint64(max(d, 0))
}
