package engine

// Task is what a model's outputs mean.
type Task string

// The tasks that the daemon decodes. Any other model runs through SubmitTensors.
const (
	Detect   Task = "detect"
	Classify Task = "classify"
	Raw      Task = "raw"
)

// Precision is the arithmetic of the network's heavy layers.
type Precision string

// The precisions that a backend can be asked for; Auto takes the backend's best that passes the accuracy gate.
const (
	Auto Precision = "auto"
	FP32 Precision = "fp32"
	FP16 Precision = "fp16"
	INT8 Precision = "int8"
)

// Metadata is what a model file says of itself, as Ultralytics exports carry it. Zero values mean that the file is silent.
type Metadata struct {
	Task   Task
	Labels []string // by class number
	Stride int      // largest stride of the network in input pixels
	Width  int      // imgsz
	Height int
	Batch  int
}

// Model describes a loaded model.
type Model struct {
	Path            string // file, or "demo" for the embedded model
	Plan            string // file of a cache that runs instead of the model, empty for none
	Inputs, Outputs []TensorInfo
	Metadata        Metadata
	Width, Height   int // network input in pixels; 0 when the model has no picture input
	MaxBatch        int
	Backend         string // tensorrt or onnxruntime
	BackendVersion  string
	Device          string // what the backend runs on, for people
	Precision       Precision
	// Reason says in one sentence why this backend was chosen, including what was refused before it.
	Reason string
}

// Provider is the hardware that ONNX Runtime computes on. TensorRT ignores it.
type Provider string

// The providers that can be asked for; the zero value means the CPU.
const (
	CPU  Provider = "cpu"
	CUDA Provider = "cuda"
)

// Options is what a backend needs to open a model. The zero value of each field asks for the backend's default.
type Options struct {
	// Path is where the model was read from, for messages; Bytes is the ONNX file or the engine plan itself.
	Path  string
	Bytes []byte
	// Metadata overrides what the file says where a field is set.
	Metadata  Metadata
	Precision Precision
	Provider  Provider
	Device    int  // GPU number
	Threads   int  // CPU threads of one request
	Spin      bool // CPU threads wait for work in a busy loop: a little faster alone, much slower beside other processes
	Slots     int  // requests in flight, default 2
	MaxBatch  int  // default 1
	// Shapes are those of inputs that leave more than their batch open: what TensorRT builds a plan for. The other backends take any shape.
	Shapes []TensorInfo
	// Confidence is the score under which a box may be dropped on the device. Zero leaves filtering to the host.
	Confidence float32
	// Library is the shared library to load instead of searching.
	Library string
}
