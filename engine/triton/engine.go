// Package triton runs models on servers that speak the Open Inference Protocol, version 2: Triton Inference Server and KServe. The
// letterbox is done here, the network there. Several servers share the work and stand in for each other.
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
)

// Name is what users call this backend.
const Name = "triton"

const (
	maxEndpoints = 16
	answerLimit  = 256 << 20 // bytes of the outputs of one request
	openTimeout  = 10 * time.Second

	// DefaultTimeout is how long a request may take where nothing else is said: a local engine that takes over does so within a second.
	DefaultTimeout = 800 * time.Millisecond
)

// Engine is a model on one or more servers.
type Engine struct {
	// Set by Open.
	model     engine.Model
	remote    engine.Remote
	img       *engine.ImageInput // nil when there is none
	auxiliary []kserve.Tensor    // the inputs behind it, for the largest batch
	jpeg      bool               // images are compressed
	layout    layout
	gpu       *preprocess.Device // nil where images do not stay on one
	ordinal   int                // the GPU's
	endpoints []*endpoint
	slots     []*slot
	log       *slog.Logger
	timeout   time.Duration
	context   context.Context // of everything that is under way; ends with Close
	cancel    context.CancelFunc

	memory   engine.Memory
	requests worker.Slots
	watches  sync.WaitGroup // of the endpoints
	budget   budget
	retries  atomic.Uint64
	locks    locks
	token    atomic.Pointer[string]
	noGPU    atomic.Pointer[string] // why images do not stay on a GPU
	closing  sync.Once
}

var _ engine.Engine = (*Engine)(nil)

// Open connects to the servers at addresses, which Check describes. One that answers is enough; the others are tried for as long as the
// engine is open. All errors are *engine.Error; ErrUnavailable says that no server answered.
func Open(ctx context.Context, addresses string, options engine.Options, logger *slog.Logger) (*Engine, error) {
	e := &Engine{remote: options.Remote, log: logger, timeout: cmp.Or(options.Remote.Timeout, DefaultTimeout), budget: newBudget()}
	e.context, e.cancel = context.WithCancel(context.WithoutCancel(ctx))
	if err := e.open(ctx, addresses, options); err != nil {
		_ = e.Close() // what kept it from opening is the better answer
		return nil, e.fail("open", err)
	}
	return e, nil
}

func (e *Engine) open(ctx context.Context, addresses string, options engine.Options) error {
	if options.Precision != "" && options.Precision != engine.Auto {
		return &engine.Error{
			Kind:    engine.ErrUnsupported,
			Message: fmt.Sprintf("the server's model computes as it was built, %s cannot be asked for", options.Precision),
			Hint:    "leave the precision at auto",
		}
	}
	if options.Slots < 0 || options.Slots > 64 || options.MaxBatch < 0 || options.MaxBatch > 1024 {
		return &engine.Error{
			Kind: engine.ErrUnsupported, Message: fmt.Sprintf("%d slots and %d images in a batch, 0 to 64 and 0 to 1024 are possible",
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
			p.beside = e.newWire(a.beside(asked))
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
	for number := range cmp.Or(options.Slots, 2) {
		s, err := e.newSlot(number)
		if err != nil {
			return err
		}
		e.slots = append(e.slots, s)
	}
	if err := first.warmUp(ctx); err != nil {
		return err
	}
	if e.img != nil {
		e.arrange()
		e.openGPU(options.Device)
	}
	if err := first.prepare(ctx); err != nil {
		return err
	}
	for _, p := range e.endpoints {
		if p == first {
			p.resume()
		} else {
			p.wakeUp() // it may be as well as the first one: looked at at once
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

// connect asks all servers and takes the description of the first one that gives one.
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
			way, d, err := p.ask(ctx)
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

// remedy says what to do about an error at opening.
func remedy(err error) string {
	var s *kserve.Status
	switch {
	case errors.As(err, &s) && s.Code == kserve.NotFound:
		return "the name behind the host is that of a model in the server's repository"
	case errors.As(err, &s) && (s.Code == kserve.Unauthenticated || s.Code == kserve.PermissionDenied):
		return "name the file with the server's token as remote.token_file"
	case err != nil && strings.Contains(err.Error(), "x509"):
		return "name the authority of the server's certificate as remote.ca"
	}
	return "is it running, and is 8001 its gRPC port and 8000 its HTTP port?"
}

// describe fills the model from what the server says and the options.
func (e *Engine) describe(d *description, from *endpoint, options engine.Options) error {
	said, err := metadata(d)
	if err != nil {
		return &engine.Error{
			Kind: engine.ErrUnsupported, Message: "parameters of the server's model", Err: err,
			Hint: "mend them in its config.pbtxt, or say what the model means with flags: labels, layout",
		}
	}
	known := said.Override(options.Metadata)
	if d.encoding() == "uint8" && !said.Preprocess.IsZero() { // what numbers become is the server's part, whatever a file says
		numbers := &said.Preprocess
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
		Path: cmp.Or(options.Path, from.address.model), Inputs: inputs, Outputs: outputs, Metadata: said.Override(options.Metadata),
		MaxBatch: max(options.MaxBatch, 1), Backend: Name, Precision: engine.Auto,
		BackendVersion: strings.TrimSpace(oneLine(d.server.Name + " " + d.server.Version)), Device: "server " + strings.Join(hosts, ", "),
	}
	if d.config.MaxBatch > 0 {
		e.model.MaxBatch = min(e.model.MaxBatch, d.config.MaxBatch)
	}
	alone, beside := split(inputs, func(in engine.TensorInfo) bool { return !engine.IsAuxiliary(in) })
	if e.img, err = engine.FindImageInput(alone, known); err == nil {
		err = e.fillAuxiliary(beside)
	}
	if err != nil {
		e.img = nil
		if len(inputs) > 1 {
			err = fmt.Errorf("%w; of inputs beside it only orig_target_sizes and pixel_mask are known, others must be inside a server's model", err)
		}
		e.model.NoImage = err
		return nil //nolint:nilerr // a model that takes no images runs on tensors
	}
	e.model.Image, e.model.Width, e.model.Height = e.img, e.img.Width, e.img.Height
	if e.img.Batch > 0 {
		e.model.MaxBatch = e.img.Batch
	}
	if err := e.img.CheckBatch(e.model.MaxBatch); err != nil {
		return &engine.Error{Kind: engine.ErrUnsupported, Err: err}
	}
	return nil
}

// inputsOf reads the server's description of the inputs. Those of a model that takes JPEG are the images before that, of which m says how
// they are made.
func inputsOf(d *description, m *engine.Metadata) ([]engine.TensorInfo, error) {
	if d.encoding() != JPEG {
		return tensors(d.model.Inputs)
	}
	in, ok := jpegInput(&d.model.Inputs[0], m)
	if !ok {
		return nil, &engine.Error{
			Kind: engine.ErrUnsupported, Message: fmt.Sprintf("input %.64q is %s %v, which is no JPEG of a known size", d.model.Inputs[0].Name,
				bytesType, d.model.Inputs[0].Shape),
			Hint: "its shape must be [1] an image, and the model's parameter imgsz say height and width, or --imgsz",
		}
	}
	beside, err := tensors(d.model.Inputs[1:])
	return append([]engine.TensorInfo{in}, beside...), err
}

// tensors reads the server's description of inputs or outputs.
func tensors(list []kserve.TensorMetadata) ([]engine.TensorInfo, error) {
	var infos []engine.TensorInfo
	for _, t := range list {
		kind, ok := kserve.ElementType(t.Datatype)
		if !ok || len(t.Shape) > 8 || slices.ContainsFunc(t.Shape, func(n int64) bool { return n < -1 || n > 1<<40 }) {
			return nil, &engine.Error{
				Kind: engine.ErrUnsupported, Message: fmt.Sprintf("tensor %.64q is %.16s %v, which cannot be fed or read", t.Name, t.Datatype, t.Shape),
			}
		}
		infos = append(infos, engine.TensorInfo{Name: t.Name, Type: kind, Shape: slices.Clone(t.Shape)})
	}
	return infos, nil
}

// metadata reads the parameters of the model's configuration: they have the names that ONNX files give the same.
func metadata(d *description) (engine.Metadata, error) {
	properties := map[string]string{}
	for key, value := range d.config.Parameters {
		properties[key] = value.Text
	}
	return engine.ParseMetadata(properties)
}

// sameModel reports a model that differs from the one that was opened in what requests and decoders go by.
func (e *Engine) sameModel(d *description) error {
	bad := func(what string, is, was any) error {
		return &engine.Error{
			Op: "open", Backend: Name, Kind: engine.ErrShape, Message: fmt.Sprintf("the model is another one now: %s %v, here %v", what, is, was),
			Hint: "start edge-infer again to take it, or give the server the former version",
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
	said, err := metadata(d)
	if err == nil && len(said.Labels) > 0 && len(e.model.Metadata.Labels) != len(said.Labels) {
		return bad("its labels are", len(said.Labels), len(e.model.Metadata.Labels))
	}
	return nil
}

// fits compares a declared shape with one that a run made definite.
func fits(declared, known []int64) bool {
	return slices.EqualFunc(declared, known, func(d, k int64) bool { return d == k || d == -1 || k == -1 })
}

// warmUp runs one image of nothing: a model that cannot run fails here, and sizes that the server leaves open become known, all but the
// batch.
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

// ordered checks the outputs of an answer against the model and brings them into its order. batch is the first dimension that they must
// have where the model leaves it open, 0 where any will do.
func (e *Engine) ordered(list []engine.Tensor, r *kserve.InferResponse, batch int64) ([]engine.Tensor, error) {
	list = list[:0]
	for i := range e.model.Outputs {
		info := &e.model.Outputs[i]
		at := slices.IndexFunc(r.Outputs, func(t kserve.Tensor) bool { return t.Name == info.Name })
		if at < 0 {
			return list, e.refuse(engine.ErrShape, "output %q is missing in the answer", info.Name)
		}
		t := &r.Outputs[at]
		if t.Datatype != kserve.Datatype(info.Type) || !fits(info.Shape, t.Shape) ||
			batch > 0 && len(info.Shape) > 0 && info.Shape[0] == -1 && t.Shape[0] != batch {
			return list, e.refuse(engine.ErrShape, "output %q came as %.16s %v, the model's is %s %v",
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

// SubmitTensors implements engine.Engine. The tensors are sent from where they are.
func (e *Engine) SubmitTensors(slot int, inputs []engine.Tensor) error {
	return e.requests.SubmitTensors(slot, inputs)
}

// Wait implements engine.Engine. It takes no longer than the timeout of a request; the error is ErrUnavailable when no server answered.
func (e *Engine) Wait(slot int) (*engine.Result, error) { return e.requests.Wait(slot) }

// Close implements engine.Engine. Requests under way are given up.
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
			if p.beside != nil {
				p.beside.renew()
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

// refuse is an error of an answer.
func (e *Engine) refuse(kind error, format string, arguments ...any) error {
	return &engine.Error{Op: "wait", Backend: Name, Kind: kind, Message: fmt.Sprintf(format, arguments...)}
}

// explain puts a failure in one line.
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
	case errors.As(err, &connection): // whose text has the number of a port of this side
		return oneLine(connection.Op + ": " + connection.Err.Error())
	}
	return oneLine(err.Error())
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
