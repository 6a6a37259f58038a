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
	Semantic Task = "semantic" // a class per pixel
	Depth    Task = "depth"    // a depth per pixel
	Read     Task = "read"     // a line of text
	Embed    Task = "embed"    // an embedding for re-identification
	Raw      Task = "raw"
)

// Maps reports whether the result is a map with one value per pixel.
func (t Task) Maps() bool { return t == Semantic || t == Depth }

// FindsObjects reports whether the result is a list of objects, which can be tracked, cropped and counted.
func (t Task) FindsObjects() bool { return t != Classify && t != Read && t != Embed && !t.Maps() }

// Activation is the function that turns a classifier's outputs into scores. It determines whether classes exclude each other.
type Activation string

// The activations that classifiers have.
const (
	Softmax Activation = "softmax" // exactly one class per image: the scores add up to 1
	Sigmoid Activation = "sigmoid" // multi-label: classes are independent
)

// Precision is the arithmetic of the network's heavy layers.
type Precision string

// The precisions a backend supports; Auto is the backend's fastest that passes the accuracy gate.
const (
	Auto Precision = "auto"
	FP32 Precision = "fp32"
	FP16 Precision = "fp16"
	INT8 Precision = "int8"
)

// Column is what a column of a detector's rows holds.
type Column string

// Columns that a graph shows.
const (
	ScoreColumn Column = "score"
	ClassColumn Column = "class" // a class number
)

// Metadata is the metadata of a model file, as Ultralytics exports contain it. Zero values mean that the file does not specify the field.
type Metadata struct {
	Task   Task
	Labels []string // by class number
	Stride int      // largest stride of the network in input pixels
	Width  int      // imgsz
	Height int
	Batch  int
	// Preprocess is the conversion of images to the network's input. Presumed is the kind of network that it was inferred from, if from
	// nothing else.
	Preprocess Preprocess `json:",omitzero"`
	Presumed   string     `json:",omitempty"`
	// Activation is the classifier's activation, empty if unknown.
	Activation Activation `json:",omitempty"`
	// LastColumn is what the rows of the only output end with, BoxShares is set if their boxes are shares of the input. Both are read from
	// the file's graph, and zero where it does not show them.
	LastColumn Column `json:",omitempty"`
	BoxShares  bool   `json:",omitempty"`
	// EndToEnd is set if the network suppresses overlapping boxes itself: an end-to-end head, or an export with nms=True.
	EndToEnd bool `json:",omitempty"`
	// Keypoints is the number of keypoints per object of a pose network, KeypointNumbers the values per keypoint: 2 for x and y, 3 with
	// visibility.
	Keypoints       int `json:",omitempty"`
	KeypointNumbers int `json:",omitempty"`
	// KeypointNames are the keypoint names by class number; a single list applies to all classes.
	KeypointNames [][]string `json:",omitempty"`
	// Ignored are the entries of the file that were not in the form of their keys.
	Ignored []Ignored `json:",omitempty"`
}

// Model describes a loaded model.
type Model struct {
	Path            string // file, or "demo" for the embedded model
	Plan            string // cached engine plan that runs instead of the model, empty for none
	Inputs, Outputs []TensorInfo
	Metadata        Metadata
	Width, Height   int // network input in pixels; 0 when the model has no image input
	// Image is the image input, or nil; NoImage then explains why.
	Image          *ImageInput
	NoImage        error
	MaxBatch       int
	Backend        string // tensorrt, onnxruntime or triton
	BackendVersion string
	// BlocksThread is set if Wait blocks the calling thread until the device is done. Other backends compute in goroutines of their own.
	BlocksThread bool
	Device       string // description of the hardware
	Precision    Precision
	// Reason explains in one sentence why this backend was chosen and why others were rejected.
	Reason string
	// Filter describes the candidates that the engine lists on its device instead of returning the outputs of images; nil if it returns the
	// outputs.
	Filter *Filter
}

// SetImage sets the image input and the batch that it fixes. It returns an error if the largest batch would need too much memory.
func (m *Model) SetImage(img *ImageInput) error {
	m.Image = img
	m.Width = img.Width
	m.Height = img.Height
	if img.Batch > 0 {
		m.MaxBatch = img.Batch
	}
	if err := img.CheckBatch(m.MaxBatch); err != nil {
		return &Error{Kind: ErrUnsupported, Err: err}
	}
	return nil
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

// The supported providers; the zero value means the CPU.
const (
	CPU  Provider = "cpu"
	CUDA Provider = "cuda"
)

// Options configures the opening of a model by a backend. The zero value of each field means the backend's default.
type Options struct {
	// Path is the model's file name, for messages; Bytes is the ONNX file or the engine plan itself.
	Path  string
	Bytes []byte
	// Metadata overrides the file's metadata in each field that is set.
	Metadata  Metadata
	Precision Precision
	Provider  Provider
	Device    int  // GPU number
	Threads   int  // CPU threads of one request
	Spin      bool // CPU threads wait for work in a busy loop: a little faster alone, much slower beside other processes
	Slots     int  // requests in flight; 0: one on a CPU, which gains little from a second that waits, else two
	MaxBatch  int  // default 1
	// Frugal allows a backend to use a smaller batch than MaxBatch if larger ones are no faster, which saves memory and waiting.
	Frugal bool
	// Width and Height set the sides of an image input that leaves them open; 0 derives them from Sources.
	Width, Height int
	// Sources are the known sizes of the source images: see Sides.
	Sources []Size
	// Shapes are the shapes of inputs with open dimensions other than the batch, which TensorRT builds a plan for. Other backends accept
	// any shape.
	Shapes []TensorInfo
	// Filter locates the boxes in a model's outputs so that a backend with a device can list those above a threshold there. It is called
	// once the output shapes are known. If it is nil or returns nil, the host decodes. Backends without a device do not call it.
	Filter func(Model) *Filter
	// Library is the shared library to load instead of searching.
	Library string
	// Plugins are shared objects with additional operators. Only TensorRT uses them.
	Plugins []string
	// Remote configures backends that run the model on a server.
	Remote Remote
}
