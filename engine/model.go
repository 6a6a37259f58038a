package engine

// Task is the kind of result that a model's outputs represent.
type Task string

// The tasks that the daemon decodes. Any other model runs through SubmitTensors.
const (
	Detect   Task = "detect"
	Pose     Task = "pose"
	Segment  Task = "segment"
	OBB      Task = "obb" // oriented bounding boxes
	Classify Task = "classify"
	Semantic Task = "semantic" // a class for each pixel
	Depth    Task = "depth"    // a depth for each pixel
	Read     Task = "read"     // a line of text
	Embed    Task = "embed"    // an embedding for re-identification
	Raw      Task = "raw"
)

// Maps reports whether the result is a map with a value for each pixel.
func (t Task) Maps() bool { return t == Semantic || t == Depth }

// FindsObjects reports whether the result is a list of objects, which can be tracked, cropped and counted.
func (t Task) FindsObjects() bool { return t != Classify && t != Read && t != Embed && !t.Maps() }

// Activation is the function that turns a classifier's outputs into scores. It determines whether classes exclude each other.
type Activation string

// The activations that classifiers have.
const (
	Softmax Activation = "softmax" // an image is of one class: the scores add up to 1
	Sigmoid Activation = "sigmoid" // each class is there or not, whatever the others are
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

// Metadata is the metadata of a model file, as Ultralytics exports contain it. Zero values mean that the file does not specify the field.
type Metadata struct {
	Task   Task
	Labels []string // by class number
	Stride int      // largest stride of the network in input pixels
	Width  int      // imgsz
	Height int
	Batch  int
	// Preprocess is how images become the network's input. Presumed is the kind of network that takes them so, where only that tells.
	Preprocess Preprocess `json:",omitzero"`
	Presumed   string     `json:",omitempty"`
	// Activation is the classifier's activation, empty if unknown.
	Activation Activation `json:",omitempty"`
	// EndToEnd is set if the network suppresses overlapping boxes itself: an end-to-end head, or an export with nms=True.
	EndToEnd bool `json:",omitempty"`
	// Keypoints is how many points of an object a network for poses gives, and KeypointNumbers how many numbers each has: 2 for a place, 3
	// with how visible it is.
	Keypoints       int `json:",omitempty"`
	KeypointNumbers int `json:",omitempty"`
	// KeypointNames are the names of those points by class number; one list is for all classes.
	KeypointNames [][]string `json:",omitempty"`
}

// Model describes a loaded model.
type Model struct {
	Path            string // file, or "demo" for the embedded model
	Plan            string // file of a cache that runs instead of the model, empty for none
	Inputs, Outputs []TensorInfo
	Metadata        Metadata
	Width, Height   int // network input in pixels; 0 when the model has no image input
	// Image is the image input, nil when there is none; NoImage then says why.
	Image          *ImageInput
	NoImage        error
	MaxBatch       int
	Backend        string // tensorrt, onnxruntime or triton
	BackendVersion string
	// BlocksThread is set if Wait blocks the calling thread until the device is done. Other backends compute in goroutines of their own.
	BlocksThread bool
	Device       string // what the backend runs on, for people
	Precision    Precision
	// Reason explains in one sentence why this backend was chosen and why others were rejected.
	Reason string
	// Filter is what the engine lists on its device instead of handing over the outputs of images; nil when the outputs come whole.
	Filter *Filter
}

// RefusesImages returns the error of an operation that passes images to a model without image input, nil for other models.
func (m *Model) RefusesImages(op string) error {
	if m.NoImage == nil {
		return nil
	}
	return &Error{Op: op, Backend: m.Backend, Kind: ErrUnsupported, Message: "the model takes no images", Err: m.NoImage}
}

// Provider is the hardware that ONNX Runtime computes on. TensorRT ignores it.
type Provider string

// The providers that can be asked for; the zero value means the CPU.
const (
	CPU  Provider = "cpu"
	CUDA Provider = "cuda"
)

// Options configures the opening of a model by a backend. The zero value of each field means the backend's default.
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
	// Frugal allows a backend to take fewer images at once than MaxBatch where more are no faster: they wait for each other and need memory.
	Frugal bool
	// Width and Height are the sides that an image input which leaves them open gets; 0 leaves them to Sources.
	Width, Height int
	// Sources are the sizes of the images to come, as far as they are known: see Sides.
	Sources []Size
	// Shapes are those of inputs that leave more than their batch open: what TensorRT builds a plan for. The other backends take any shape.
	Shapes []TensorInfo
	// Filter says where the boxes of a model are, so that a backend with a device can list those over a threshold there; it is asked once the
	// outputs' shapes are known. Nil, or an answer of nil, leaves decoding to the host. Backends without a device do not ask.
	Filter func(Model) *Filter
	// Library is the shared library to load instead of searching.
	Library string
	// Plugins are shared objects with operators that the backend lacks. TensorRT takes some; the others ignore them.
	Plugins []string
	// Remote is for backends that run the model elsewhere.
	Remote Remote
}
