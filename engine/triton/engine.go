// Package triton runs models on servers of the Open Inference Protocol, version 2: Triton Inference Server and KServe. Images are
// letterboxed locally. Requests are balanced over several servers and fail over between them.
package triton

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/kserve"
	"github.com/edge-infer/edge-infer/engine/preprocess"
	"github.com/edge-infer/edge-infer/engine/worker"
	"github.com/edge-infer/edge-infer/internal/inflight"
)

// Name is the name of this backend in settings and errors.
const Name = "triton"

const (
	maxEndpoints = 16
	answerLimit  = 256 << 20 // bytes of any answer
	unknownLimit = 64 << 20  // bytes of the answer to an image while the size of the model's outputs is not known
	openTimeout  = 10 * time.Second

	// DefaultTimeout is the default timeout of a request. A local standby engine takes over within a second.
	DefaultTimeout = 800 * time.Millisecond
)

// Engine is a model on one or more servers.
type Engine struct {
	// Set by Open.
	model     engine.Model
	remote    engine.Remote
	img       *engine.ImageInput // nil when there is none
	auxiliary []kserve.Tensor    // the inputs after it, for the largest batch
	jpeg      bool               // images are compressed
	layout    layout
	gpu       *preprocess.Device // nil unless images are shared in GPU memory
	ordinal   int                // the GPU's
	endpoints []*endpoint
	slots     []*slot
	log       *slog.Logger
	timeout   time.Duration
	context   context.Context // of all requests and watchers; cancelled by Close
	cancel    context.CancelFunc

	memory      engine.Memory
	requests    worker.Slots
	choosing    sync.Mutex     // held by reserve
	watches     sync.WaitGroup // of the endpoints
	budget      budget
	answers     inflight.Budget // the memory of answers
	retries     atomic.Uint64
	locks       locks
	token       atomic.Pointer[string]
	gpuDisabled atomic.Pointer[string] // why images are not shared in GPU memory
	closing     sync.Once
}

var _ engine.Engine = (*Engine)(nil)

// Open connects to the servers at addresses, a list of the form that Check accepts. One server must answer; the engine keeps trying the
// others until Close. All errors are *engine.Error, with kind ErrUnavailable if no server answered.
func Open(ctx context.Context, addresses string, options engine.Options, logger *slog.Logger) (*Engine, error) {
	e := &Engine{remote: options.Remote, log: logger, timeout: cmp.Or(options.Remote.Timeout, DefaultTimeout), budget: newBudget()}
	e.answers = inflight.Budget{Max: options.Remote.MaxAnswers, Setting: "remote.memory_mb"}
	e.context, e.cancel = context.WithCancel(context.WithoutCancel(ctx))
	if err := e.open(ctx, addresses, options); err != nil {
		_ = e.Close() // the first error matters
		return nil, e.fail("open", err)
	}
	return e, nil
}

func (e *Engine) open(ctx context.Context, addresses string, options engine.Options) error {
	if options.Precision != "" && options.Precision != engine.Auto {
		return &engine.Error{
			Kind:    engine.ErrUnsupported,
			Message: fmt.Sprintf("the precision of a server's model is fixed, %s cannot be selected", options.Precision),
			Hint:    "leave the precision at auto",
		}
	}
	if options.Slots < 0 || options.Slots > 64 || options.MaxBatch < 0 || options.MaxBatch > 1024 {
		return &engine.Error{
			Kind: engine.ErrUnsupported, Message: fmt.Sprintf("%d slots and batches of %d images: use 0 to 64 slots and batches of 0 to 1024",
				options.Slots, options.MaxBatch),
		}
	}
	list, err := parse(addresses)
	if err != nil {
		return err
	}
	if err := e.authorize(list); err != nil {
		return err
	}
	for _, a := range list {
		p := &endpoint{engine: e, address: a, wake: make(chan struct{}, 1)}
		p.named = e.newWire(a)
		p.wire = p.named
		if asked := e.remote.Encoding; asked != "" && asked != Auto {
			p.variant = e.newWire(a.variant(asked))
		}
		e.endpoints = append(e.endpoints, p)
	}
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	first, err := e.connect(ctx, options)
	if err != nil {
		return err
	}
	sweep()
	if err := first.warmUp(ctx); err != nil {
		return err
	}
	for number := range cmp.Or(options.Slots, 2) { // after warmUp, which may find the size of their answers
		s, err := e.newSlot(number)
		if err != nil {
			return err
		}
		e.slots = append(e.slots, s)
	}
	if e.img != nil {
		e.planLayout()
		e.openGPU(options.Device)
	}
	if err := first.prepare(ctx); err != nil {
		return err
	}
	for _, p := range e.endpoints {
		if p == first {
			p.resume()
		} else {
			p.wakeUp() // probe it at once
		}
		e.watches.Go(func() { p.watch(e.context) })
	}
	e.requests.Backend, e.requests.Model, e.requests.Fail = Name, &e.model, e.fail
	for _, s := range e.slots {
		e.requests.Start(&s.Slot, s.work)
	}
	return nil
}

func (e *Engine) newWire(a address) wire {
	c := newClient(a, &e.remote, e.authorization)
	if a.grpc {
		return &grpcWire{client: c, address: a}
	}
	return &httpWire{client: c, address: a}
}

// connect queries all servers in parallel and uses the model description of the first that answers.
func (e *Engine) connect(ctx context.Context, options engine.Options) (*endpoint, error) {
	type answer struct {
		*description
		from *endpoint
		way  wire
		err  error
	}
	answers := make(chan answer, len(e.endpoints))
	for _, p := range e.endpoints {
		go func() {
			way, d, err := p.findModel(ctx)
			if err == nil {
				err = way.ready(ctx)
			}
			answers <- answer{d, p, way, err}
		}()
	}
	var reasons []string
	var last error
	for range e.endpoints {
		a := <-answers
		if a.err == nil {
			if a.err = e.describe(a.description, a.from, options); a.err == nil {
				a.from.wire, a.from.chosen = a.way, true
				return a.from, nil
			}
		}
		if _, ours := errors.AsType[*engine.Error](a.err); ours && len(e.endpoints) == 1 {
			return nil, a.err
		}
		last = a.err
		reason := e.explain(a.err)
		a.from.reason = reason
		reasons = append(reasons, a.from.address.String()+": "+reason)
	}
	return nil, &engine.Error{
		Kind: engine.ErrUnavailable, Message: "no server runs the model: " + strings.Join(reasons, "; "), Hint: remedy(last),
	}
}

// remedy returns the hint for an error of Open.
func remedy(err error) string {
	var s *kserve.Status
	switch {
	case errors.As(err, &s) && s.Code == kserve.NotFound:
		return "the path of the address must name a model in the server's repository"
	case errors.As(err, &s) && (s.Code == kserve.Unauthenticated || s.Code == kserve.PermissionDenied):
		return "set remote.token_file to the file with the server's token"
	case err != nil && strings.Contains(err.Error(), "x509"):
		return "set remote.ca to the CA of the server's certificate"
	}
	return "check that the server runs and that the port is right (Triton: 8001 for gRPC, 8000 for HTTP)"
}

// describe fills the model from the server's description and the options.
func (e *Engine) describe(d *description, from *endpoint, options engine.Options) error {
	declared, err := metadata(d)
	if err != nil {
		return &engine.Error{
			Kind: engine.ErrUnsupported, Message: "invalid parameters of the server's model", Err: err,
			Hint: "correct them in its config.pbtxt",
		}
	}
	known := declared.Override(options.Metadata)
	if d.encoding() == "uint8" && !declared.Preprocess.IsZero() { // the server normalizes, so its parameters win
		numbers := &declared.Preprocess
		known.Preprocess.Range, known.Preprocess.Mean, known.Preprocess.Deviation = numbers.Range, numbers.Mean, numbers.Deviation
	}
	known.Width, known.Height = options.Sides(known)
	inputs, err := inputsOf(d, &known)
	if err != nil {
		return err
	}
	e.jpeg = d.encoding() == JPEG
	outputs, err := tensors(d.model.Outputs)
	if err != nil {
		return err
	}
	if len(inputs) == 0 || len(outputs) == 0 {
		return &engine.Error{
			Kind: engine.ErrUnsupported, Message: fmt.Sprintf("the model has %d inputs and %d outputs", len(inputs), len(outputs)),
		}
	}
	var hosts []string
	for _, p := range e.endpoints {
		hosts = append(hosts, p.address.String())
	}
	e.model = engine.Model{
		Path: cmp.Or(options.Path, from.address.model), Inputs: inputs, Outputs: outputs, Metadata: declared.Override(options.Metadata),
		MaxBatch: max(options.MaxBatch, 1), Backend: Name, Precision: engine.Auto,
		BackendVersion: strings.TrimSpace(oneLine(d.server.Name + " " + d.server.Version)), Device: "server " + strings.Join(hosts, ", "),
	}
	if d.config.MaxBatch > 0 {
		e.model.MaxBatch = min(e.model.MaxBatch, d.config.MaxBatch)
	}
	alone, beside := partition(inputs, func(in engine.TensorInfo) bool { return !engine.IsAuxiliary(in) })
	if e.img, err = engine.FindImageInput(alone, known); err == nil {
		err = e.fillAuxiliary(beside)
	}
	if err != nil {
		e.img = nil
		if len(inputs) > 1 {
			err = fmt.Errorf("%w; the only other inputs supported are %s", err, strings.Join(engine.AuxiliaryInputs(), ", "))
		}
		e.model.NoImage = err
		return nil //nolint:nilerr // a model that takes no images runs on tensors
	}
	return e.model.SetImage(e.img)
}

// inputsOf converts the server's description of the inputs. For a model that takes JPEG it returns the image before compression; see
// jpegInput for m.
func inputsOf(d *description, m *engine.Metadata) ([]engine.TensorInfo, error) {
	if d.encoding() != JPEG {
		return tensors(d.model.Inputs)
	}
	in, ok := jpegInput(&d.model.Inputs[0], m)
	if !ok {
		return nil, &engine.Error{
			Kind: engine.ErrUnsupported,
			Message: fmt.Sprintf("input %.64q is %s %v, which is not a JPEG input of known size",
				d.model.Inputs[0].Name, bytesType, d.model.Inputs[0].Shape),
			Hint: "its shape must be [1] per image; set height and width with the model's parameter imgsz or --imgsz",
		}
	}
	beside, err := tensors(d.model.Inputs[1:])
	return append([]engine.TensorInfo{in}, beside...), err
}

// tensors converts the server's description of inputs or outputs.
func tensors(list []kserve.TensorMetadata) ([]engine.TensorInfo, error) {
	var infos []engine.TensorInfo
	for _, t := range list {
		kind, ok := kserve.ElementType(t.Datatype)
		if !ok || len(t.Shape) > 8 || slices.ContainsFunc(t.Shape, func(n int64) bool { return n < -1 || n > 1<<40 }) {
			return nil, &engine.Error{
				Kind: engine.ErrUnsupported, Message: fmt.Sprintf("tensor %.64q has unsupported type or shape %.16s %v", t.Name, t.Datatype, t.Shape),
			}
		}
		infos = append(infos, engine.TensorInfo{Name: t.Name, Type: kind, Shape: slices.Clone(t.Shape)})
	}
	return infos, nil
}

// metadata parses the parameters of the model's configuration. They have the same names as the metadata of ONNX files.
func metadata(d *description) (engine.Metadata, error) {
	properties := map[string]string{}
	for key, value := range d.config.Parameters {
		properties[key] = value.Text
	}
	return engine.ParseMetadata(properties)
}

// sameModel returns an error if a model's inputs, outputs or number of labels differ from the opened one.
func (e *Engine) sameModel(d *description) error {
	bad := func(what string, is, was any) error {
		return &engine.Error{
			Op: "open", Backend: Name, Kind: engine.ErrShape,
			Message: fmt.Sprintf("the server's model has changed: %s %v, before %v", what, is, was),
			Hint:    "restart edge-infer to use it, or restore the previous version on the server",
		}
	}
	known := e.model.Metadata
	known.Width, known.Height = e.model.Width, e.model.Height
	if (d.encoding() == JPEG) != e.jpeg {
		return bad("it takes", d.takes(), e.model.Inputs)
	}
	inputs, err := inputsOf(d, &known)
	if err != nil {
		return err
	}
	if !reflect.DeepEqual(inputs, e.model.Inputs) {
		return bad("its inputs are", inputs, e.model.Inputs)
	}
	outputs, err := tensors(d.model.Outputs)
	if err != nil {
		return err
	}
	same := func(a, b engine.TensorInfo) bool {
		return a.Name == b.Name && a.Type == b.Type && fits(a.Shape, b.Shape)
	}
	if !slices.EqualFunc(outputs, e.model.Outputs, same) {
		return bad("its outputs are", outputs, e.model.Outputs)
	}
	declared, err := metadata(d)
	if err == nil && len(declared.Labels) > 0 && len(e.model.Metadata.Labels) != len(declared.Labels) {
		return bad("its labels are", len(declared.Labels), len(e.model.Metadata.Labels))
	}
	return nil
}

// fits compares two shapes, where -1 matches any size.
func fits(declared, known []int64) bool {
	return slices.EqualFunc(declared, known, func(d, k int64) bool { return d == k || d == -1 || k == -1 })
}

// warmUp runs an empty image, so that a model that cannot run fails at Open, and replaces the open dimensions of the outputs, except the
// batch, by their actual sizes.
func (p *endpoint) warmUp(ctx context.Context) error {
	e := p.engine
	if e.img == nil {
		return nil
	}
	outputs, err := p.try(ctx)
	if err != nil {
		return &engine.Error{Kind: engine.ErrUnavailable, Message: p.address.String() + ": " + e.explain(err)}
	}
	for i := range e.model.Outputs {
		declared, actual := e.model.Outputs[i].Shape, slices.Clone(outputs[i].Shape)
		if len(declared) > 0 && declared[0] < 0 {
			actual[0] = -1
		}
		e.model.Outputs[i].Shape = actual
	}
	return nil
}

// ordered checks the outputs of an answer and appends them to list[:0] in the model's order. batch is the required size of a first
// dimension that the model leaves open; 0 allows any.
func (e *Engine) ordered(list []engine.Tensor, r *kserve.InferResponse, batch int64) ([]engine.Tensor, error) {
	list = list[:0]
	for i := range e.model.Outputs {
		info := &e.model.Outputs[i]
		at := slices.IndexFunc(r.Outputs, func(t kserve.Tensor) bool { return t.Name == info.Name })
		if at < 0 {
			return list, e.refuse(engine.ErrShape, "output %q is missing in the server's answer", info.Name)
		}
		t := &r.Outputs[at]
		if t.Datatype != kserve.Datatype(info.Type) || !fits(info.Shape, t.Shape) ||
			batch > 0 && len(info.Shape) > 0 && info.Shape[0] == -1 && t.Shape[0] != batch {
			return list, e.refuse(engine.ErrShape, "the server sent output %q as %.16s %v, the model declares %s %v",
				info.Name, t.Datatype, t.Shape, kserve.Datatype(info.Type), info.Shape)
		}
		if err := t.Check(); err != nil {
			return list, e.refuse(engine.ErrShape, "%v", err)
		}
		list = append(list, engine.Tensor{Name: info.Name, Type: info.Type, Shape: t.Shape, Data: t.Data})
	}
	return list, nil
}

// Model implements engine.Engine.
func (e *Engine) Model() engine.Model { return e.model }

// Slots implements engine.Engine.
func (e *Engine) Slots() int { return e.requests.Len() }

// Alloc implements engine.Engine.
func (e *Engine) Alloc(size int) (*engine.Buffer, error) {
	buffer, err := e.memory.Alloc(size)
	if err != nil {
		return nil, e.fail("alloc", err)
	}
	return e.locked(buffer), nil
}

// Submit implements engine.Engine.
func (e *Engine) Submit(slot int, images []engine.Image) error {
	return e.requests.Submit(slot, images)
}

// SubmitTensors implements engine.Engine. The tensors are sent without a copy.
func (e *Engine) SubmitTensors(slot int, inputs []engine.Tensor) error {
	return e.requests.SubmitTensors(slot, inputs)
}

// Wait implements engine.Engine. It returns within the request timeout; the error is ErrUnavailable if no server answered.
func (e *Engine) Wait(slot int) (*engine.Result, error) { return e.requests.Wait(slot) }

// Reject suspends the server that gave a slot's last result, because its values are invalid. It reports whether another server is healthy,
// so that the request can be repeated.
func (e *Engine) Reject(slot int, reason error) (repeat bool) {
	s := e.slots[slot]
	if len(s.tried) > 0 {
		s.tried[len(s.tried)-1].reject(reason)
	}
	return e.Healthy()
}

// Close implements engine.Engine. It cancels requests in flight.
func (e *Engine) Close() error {
	e.closing.Do(func() {
		e.requests.End()
		e.cancel()
		e.requests.Finish()
		e.watches.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		for _, p := range e.endpoints {
			p.unshare(ctx)
			p.named.renew()
			if p.variant != nil {
				p.variant.renew()
			}
		}
		e.closeGPU()
		e.memory.Close()
	})
	return nil
}

// fail makes err an *engine.Error of this backend.
func (e *Engine) fail(op string, err error) error {
	return engine.Attribute(err, op, Name, e.explain)
}

// refuse returns an error about a server's answer.
func (e *Engine) refuse(kind error, format string, arguments ...any) error {
	return &engine.Error{Op: "wait", Backend: Name, Kind: kind, Message: fmt.Sprintf(format, arguments...)}
}

// explain returns the text of an error in one line.
func (e *Engine) explain(err error) string {
	var known *engine.Error
	var connection *net.OpError
	switch {
	case errors.As(err, &known):
		text := known.Message
		if known.Hint != "" {
			text += " (" + known.Hint + ")"
		}
		return oneLine(text)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("no answer within %v", e.timeout)
	case errors.As(err, &connection): // its full text has the local port, which varies
		return oneLine(connection.Op + ": " + connection.Err.Error())
	}
	return oneLine(err.Error())
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
