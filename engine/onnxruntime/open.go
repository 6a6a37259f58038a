package onnxruntime

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	ort "github.com/yalue/onnxruntime_go"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/onnx"
	"github.com/edge-infer/edge-infer/engine/preprocess"
)

func (e *Engine) open(options engine.Options) error {
	if options.Frugal && (options.Provider == "" || options.Provider == engine.CPU) {
		options.MaxBatch = min(options.MaxBatch, 1) // a batch saves no time on the CPU and costs memory (13 MB at 416x416)
	}
	for _, n := range []struct {
		name      string
		value, to int
	}{{"slots", options.Slots, 64}, {"threads", options.Threads, 1024}, {"images in a batch", options.MaxBatch, 1024}} {
		if n.value < 0 || n.value > n.to {
			return &engine.Error{Kind: engine.ErrUnsupported, Message: fmt.Sprintf("%d %s: use 0 to %d", n.value, n.name, n.to)}
		}
	}
	file, err := onnx.Parse(options.Path, options.Bytes)
	if err != nil {
		return err
	}
	if err := e.describe(file, options); err != nil {
		return err
	}
	if _, err := acquire(options.Library); err != nil {
		return err
	}
	e.loaded = true
	e.model.BackendVersion = ort.GetVersion()
	if err := e.load(file, options); err != nil {
		return err
	}
	slots := 1
	if e.deviceMemory {
		slots = 2 // the host prepares an image while the device computes
	}
	for range cmp.Or(options.Slots, slots) {
		s, err := e.newSlot()
		if err != nil {
			return err
		}
		e.slots = append(e.slots, s)
	}
	if e.img != nil {
		if err := e.warmUp(); err != nil {
			return err
		}
	}
	e.requests.Backend, e.requests.Model, e.requests.Fail = backend, &e.model, e.fail
	for _, s := range e.slots {
		e.requests.Start(&s.Slot, s.work)
	}
	return nil
}

// describe fills the model from the file and the options.
func (e *Engine) describe(file *onnx.Model, options engine.Options) error {
	inputs, err := file.Inputs()
	if err != nil {
		return err
	}
	outputs, err := file.Outputs()
	if err != nil {
		return err
	}
	for _, info := range inputs {
		if info.Shape == nil || len(info.Shape) > 8 {
			return &engine.Error{
				Kind:    engine.ErrUnsupported,
				Message: fmt.Sprintf("input %q has %d dimensions or an unknown number; 1 to 8 are supported", info.Name, len(info.Shape)),
				Hint:    "export the model with input shapes",
			}
		}
	}
	metadata, err := fileMetadata(file, options.Metadata)
	if err != nil {
		return err
	}
	precision := filePrecision(file)
	if options.Precision != "" && options.Precision != engine.Auto && options.Precision != precision {
		hint := "use the original model file"
		if options.Precision != engine.FP32 {
			hint = fmt.Sprintf("run edge-infer quantize %s --precision %s and use its output", filepath.Base(options.Path), options.Precision)
		}
		return &engine.Error{
			Kind:    engine.ErrUnsupported,
			Message: fmt.Sprintf("the model file has precision %s, not %s", precision, options.Precision), Hint: hint,
		}
	}
	e.model = engine.Model{
		Path: options.Path, Inputs: inputs, Outputs: outputs, Metadata: metadata, MaxBatch: max(options.MaxBatch, 1),
		Backend: backend, Precision: precision,
	}
	sides := metadata
	sides.Width, sides.Height = options.Sides(metadata)
	if e.img, err = engine.FindImageInput(inputs, sides); err != nil {
		e.model.NoImage = err
		return nil //nolint:nilerr // a model that takes no images runs on tensors
	}
	return e.model.SetImage(e.img)
}

// fileMetadata reads the file's metadata and overrides it by the given values.
func fileMetadata(file *onnx.Model, by engine.Metadata) (engine.Metadata, error) {
	metadata, err := engine.ParseMetadata(file.Metadata())
	if err != nil {
		return metadata, &engine.Error{
			Kind: engine.ErrUnsupported, Err: err,
			Hint: "remove or correct the entry in the file",
		}
	}
	return metadata.Override(by), nil
}

// filePrecision returns INT8 for a quantized model, otherwise the type of most weights.
func filePrecision(file *onnx.Model) engine.Precision {
	operators := file.Operators()
	for _, name := range []string{"QuantizeLinear", "DequantizeLinear", "QLinearConv", "ConvInteger", "MatMulInteger", "QLinearMatMul"} {
		if operators[name] > 0 {
			return engine.INT8
		}
	}
	half, single := 0, 0
	for _, t := range file.Proto.Graph.Initializer {
		switch onnx.TensorProto_DataType(t.GetDataType()) {
		case onnx.TensorProto_FLOAT16:
			half += int(engine.Elements(t.Dims))
		case onnx.TensorProto_FLOAT:
			single += int(engine.Elements(t.Dims))
		}
	}
	if half > single {
		return engine.FP16
	}
	return engine.FP32
}

// load creates the session.
func (e *Engine) load(file *onnx.Model, options engine.Options) error {
	settings, err := ort.NewSessionOptions()
	if err != nil {
		return err
	}
	defer func() { _ = settings.Destroy() }() // fails only on a second call
	threads := options.Threads
	if threads == 0 {
		threads = runtime.NumCPU()
	}
	spin := "0"
	if options.Spin {
		spin = "1"
	}
	err = errors.Join(
		settings.SetIntraOpNumThreads(threads),
		settings.SetLogSeverityLevel(ort.LoggingLevelFatal),
		settings.AddSessionConfigEntry("session.intra_op.allow_spinning", spin),
	)
	if err != nil {
		return err
	}
	switch options.Provider {
	case "", engine.CPU:
		e.model.Device = fmt.Sprintf("CPU, %d threads", threads)
	case engine.CUDA:
		if err := appendCUDA(settings, options.Device); err != nil {
			return err
		}
		e.model.Device = fmt.Sprintf("CUDA device %d", options.Device)
		e.deviceMemory = true
	default:
		return &engine.Error{
			Kind: engine.ErrUnsupported, Message: fmt.Sprintf("unknown provider %q", options.Provider),
			Hint: fmt.Sprintf("use %s or %s", engine.CPU, engine.CUDA),
		}
	}
	x, changed, err := expose(file, e.model.Inputs, e.model.Outputs)
	if err != nil {
		return err
	}
	e.exposed = x
	if len(file.ExternalFiles()) > 0 {
		e.session, err = ort.NewDynamicAdvancedSession(options.Path, x.inputs, x.outputs, settings)
	} else {
		data := options.Bytes
		if changed {
			if data, err = file.Bytes(); err != nil {
				return err
			}
		}
		e.session, err = ort.NewDynamicAdvancedSessionWithONNXData(data, x.inputs, x.outputs, settings)
	}
	if err != nil {
		message := cleanMessage(err.Error())
		return &engine.Error{
			Kind: engine.ErrUnsupported, Message: "ONNX Runtime " + e.model.BackendVersion + " rejects the model",
			Err: errors.New(message), Hint: remedy(file, message),
		}
	}
	return nil
}

// appendCUDA adds the CUDA provider. If the library lacks CUDA support, creating the options already fails.
func appendCUDA(settings *ort.SessionOptions, device int) error {
	cuda, err := ort.NewCUDAProviderOptions()
	if err == nil {
		defer func() { _ = cuda.Destroy() }() // fails only on a second call
		if err = cuda.Update(map[string]string{
			"device_id": strconv.Itoa(device),
			// The defaults time every algorithm for every shape, which stalls the first frames of each batch size, and allocate powers of two.
			"cudnn_conv_algo_search": "HEURISTIC", "arena_extend_strategy": "kSameAsRequested",
		}); err == nil {
			err = settings.AppendExecutionProviderCUDA(cuda)
		}
	}
	if err != nil {
		text := oneLine(err.Error())
		if _, plain, found := strings.Cut(text, " : FAIL : "); found { // drop the source location
			text = plain
		}
		return &engine.Error{
			Op: "open", Backend: backend, Kind: engine.ErrUnavailable, Message: "no CUDA provider", Err: errors.New(text),
			Hint: "use a libonnxruntime built with CUDA, with its libonnxruntime_providers_cuda.so and CUDA's own libraries, or onnxruntime=cpu",
		}
	}
	return nil
}

func (e *Engine) newSlot() (*slot, error) {
	s := &slot{
		engine: e,
		inputs: make([]*engine.Buffer, len(e.model.Inputs)), outputs: make([]*engine.Buffer, len(e.model.Outputs)),
	}
	if e.img != nil {
		s.images = preprocess.NewBatch(e.img, e.model.MaxBatch)
		s.Result.Transforms = make([]engine.Transform, 0, e.model.MaxBatch)
		if err := s.inputMemory(0, e.model.MaxBatch*e.img.ImageBytes()); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// warmUp runs an empty image in the first slot, so that a network that cannot run fails at Open, and replaces the open dimensions of the
// outputs, except the batch, by their actual sizes.
func (e *Engine) warmUp() error {
	s := e.slots[0]
	shape := e.img.Shape(max(e.img.Batch, 1))
	r, err := s.request(shape)
	if err == nil {
		err = s.run(r)
	}
	if err != nil {
		return e.unfit(err)
	}
	for i := range e.model.Outputs {
		declared, actual := e.model.Outputs[i].Shape, slices.Clone(r.views[i].Shape)
		free := e.img.Batch == 0 && len(actual) > 0 && actual[0] == 1
		if len(declared) == len(actual) {
			for d := range actual {
				if d == 0 && declared[0] < 0 {
					actual[0] = -1
				}
			}
		} else if free {
			actual[0] = -1
		}
		e.model.Outputs[i].Shape = actual
	}
	return nil
}

// unfit explains an error of the first run for a model with open image sizes, which may still not accept every size.
func (e *Engine) unfit(err error) error {
	if !slices.Contains(e.model.Inputs[e.img.Index].Shape[1:], -1) {
		return err
	}
	return &engine.Error{
		Kind: engine.ErrUnsupported, Err: errors.New(cleanMessage(err.Error())),
		Message: fmt.Sprintf("the model declares no image size and does not run at %dx%d", e.img.Width, e.img.Height),
		Hint:    "set its training size with --imgsz HEIGHTxWIDTH",
	}
}
