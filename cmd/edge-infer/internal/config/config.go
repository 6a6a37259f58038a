// Package config holds the daemon's settings and reads them in the order defaults, YAML file, EDGE_INFER_* environment, flags: a later one
// wins. Every setting is one entry of a table that defines its flag, variable, check and line in the default file.
package config

import (
	"os"
	"strings"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/process"
	"github.com/edge-infer/edge-infer/engine/triton"
	"github.com/edge-infer/edge-infer/postprocess/zone"
)

// Config holds all settings of a run. Default returns the default values.
type Config struct {
	Name      string           `yaml:"name"`
	Cameras   []Camera         `yaml:"cameras"`
	Model     Model            `yaml:"model"`
	Engine    Engine           `yaml:"engine"`
	Remote    Remote           `yaml:"remote"`
	Detect    Detect           `yaml:"detect"`
	Inference Inference        `yaml:"inference"`
	Cascade   []Cascade        `yaml:"cascade"`
	MQTT      MQTT             `yaml:"mqtt"`
	Events    Events           `yaml:"events"`
	Clips     Clips            `yaml:"clips"`
	Webhooks  []Webhook        `yaml:"webhooks"`
	Upload    Upload           `yaml:"upload"`
	Verify    Verify           `yaml:"verify"`
	Bundle    Bundle           `yaml:"bundle"`
	HawkBit   HawkBit          `yaml:"hawkbit"`
	Samples   Samples          `yaml:"samples"`
	Web       Web              `yaml:"web"`
	Motion    Motion           `yaml:"motion"`
	Thermal   Thermal          `yaml:"thermal"`
	Runtime   process.Settings `yaml:"runtime"`
	Log       string           `yaml:"log"`
	LogFormat string           `yaml:"log_format"`
	// State is the directory for the daemon's own files; empty for none. It comes from the service manager or the user's home.
	State string `yaml:"-"`
}

// Camera is one image source.
type Camera struct {
	Name string `yaml:"name"`
	URI  string `yaml:"uri"`
	// Record is the address of another stream of the camera, which is recorded and never decoded; empty to record URI.
	Record string `yaml:"record,omitempty"`
	// Interval runs the network on every n-th captured frame.
	Interval int `yaml:"interval,omitempty"`
	// Rate is the most inferences a second, 0 for every frame.
	Rate float64 `yaml:"rate,omitempty"`
	// Priority is the camera's weight when the network cannot do all; 0 is 1.
	Priority int `yaml:"priority,omitempty"`
	// Deadline is the age above which a frame is dropped; 0 for no limit.
	Deadline time.Duration `yaml:"deadline,omitempty"`
	// ROI is the part of the image that the network is given, all of it when nil.
	ROI *Area `yaml:"roi,omitempty"`
	// Model is the camera's own network, Confidence its reported threshold, Profile the tracker's; Tile and Overlap are as in Inference. Nil,
	// empty or 0 means the value for all cameras.
	Model      *Model   `yaml:"model,omitempty"`
	Confidence float64  `yaml:"confidence,omitempty"`
	Profile    string   `yaml:"profile,omitempty"`
	Tile       *int     `yaml:"tile,omitempty"`
	Overlap    *float64 `yaml:"overlap,omitempty"`
	// Motion holds the camera's own settings; nil for those of all cameras.
	Motion *CameraMotion `yaml:"motion,omitempty"`
	// Stall is how long a camera may be silent before it is opened again.
	Stall time.Duration `yaml:"stall,omitempty"`
	// MaxPixels is how many pixels an image may have, width times height; capture.DefaultMaxPixels when 0.
	MaxPixels int `yaml:"max_pixels,omitempty"`
	// Analytics holds zones, lines and filters.
	Analytics zone.Config `yaml:"analytics,omitempty"`
	// Clips holds the camera's own settings; nil for those of all cameras.
	Clips *CameraClips `yaml:"clips,omitempty"`
	// Privacy configures which parts of the camera's images are pixelated.
	Privacy Privacy `yaml:"privacy,omitempty"`
}

// Model is the network and how its output is read.
type Model struct {
	Path   string `yaml:"path"`
	Labels string `yaml:"labels"`
	Layout string `yaml:"layout"`
	// Preprocess describes the preprocessing if the model does not; see engine.Preprocess.
	Preprocess Preprocess `yaml:"preprocess"`
	// Size is the input size of a model with open height and width; see Sides.
	Size       string `yaml:"imgsz"`
	Activation string `yaml:"activation"`
}

// Engine holds the settings of the backend.
type Engine struct {
	Backend   string `yaml:"backend"`
	Precision string `yaml:"precision"`
	GPU       string `yaml:"gpu"` // see GPUs
	Threads   int    `yaml:"threads"`
	Batch     int    `yaml:"batch"`
	Library   string `yaml:"library"`
	// Plugins are TensorRT's, with operators of the model's own.
	Plugins []string `yaml:"plugins"`
}

// Remote configures requests to inference servers and the fallback if none responds.
type Remote struct {
	Timeout      time.Duration `yaml:"timeout"`
	Fallback     string        `yaml:"fallback"` // Drop or Local
	CA           string        `yaml:"ca"`
	Certificate  string        `yaml:"certificate"`
	Key          string        `yaml:"key"`
	TokenFile    string        `yaml:"token_file"`
	User         string        `yaml:"user"`
	PasswordFile string        `yaml:"password_file"`
	SharedMemory string        `yaml:"shared_memory"` // see triton.ParseSharedMemory
	Wire         string        `yaml:"wire"`          // one of triton.Encodings
	MemoryMB     int           `yaml:"memory_mb"`
	Token        string        `yaml:"-"` // of the environment; a file goes before it, as it does before the password
	Password     string        `yaml:"-"`
}

// Detect is which boxes count.
type Detect struct {
	Confidence    float64  `yaml:"confidence"`
	IoU           float64  `yaml:"iou"`
	MaxDetections int      `yaml:"max_detections"`
	Top           int      `yaml:"top"`
	Classes       []string `yaml:"classes"`
	Track         bool     `yaml:"track"`
	Profile       string   `yaml:"profile"`
	Masks         string   `yaml:"masks"`
	MapSide       int      `yaml:"map_side"`
	DepthUnit     string   `yaml:"depth_unit"`
}

// MQTT is where detections go.
type MQTT struct {
	URL             string   `yaml:"url"`
	User            string   `yaml:"user"`
	PasswordFile    string   `yaml:"password_file"`
	Password        string   `yaml:"-"` // of $EDGE_INFER_MQTT_PASSWORD; a file goes before it
	CA              string   `yaml:"ca"`
	Certificate     string   `yaml:"certificate"`
	Key             string   `yaml:"key"`
	Insecure        bool     `yaml:"insecure"`
	Listen          string   `yaml:"listen"`
	MaxPacket       int      `yaml:"max_packet"`
	Discovery       bool     `yaml:"discovery"`
	DiscoveryLabels []string `yaml:"discovery_labels"`
	Control         bool     `yaml:"control"`
	// CountInterval is the minimum time between two messages of a count, of a line or of a label's snapshot.
	CountInterval time.Duration `yaml:"count_interval"`
	Frigate       string        `yaml:"frigate"`
	DeepStream    string        `yaml:"deepstream"`
	// DeepStreamSchema is DeepStreamMinimal or DeepStreamFull.
	DeepStreamSchema string `yaml:"deepstream_schema"`
	Spool            string `yaml:"spool"`
}

// Events holds the settings of the event store: events, their images and counts over time.
type Events struct {
	Directory string `yaml:"directory"` // or Off
	Days      int    `yaml:"days"`
	MaxMB     int    `yaml:"max_mb"`
}

// Web is the page.
type Web struct {
	Listen       string `yaml:"listen"`
	TokenFile    string `yaml:"token_file"`
	User         string `yaml:"user"`
	PasswordFile string `yaml:"password_file"`
	Certificate  string `yaml:"certificate"`
	Key          string `yaml:"key"`
	FrameRate    int    `yaml:"frame_rate"`
	MemoryMB     int    `yaml:"memory_mb"`
	Profiling    bool   `yaml:"profiling"`
}

// Thermal lowers the rate before the hardware does.
type Thermal struct {
	Margin     float64 `yaml:"margin"` // degrees below a sensor's limit; 0 is off
	Hysteresis float64 `yaml:"hysteresis"`
}

// Names that settings accept besides free text.
const (
	Auto     = "auto"
	Drop     = "drop"
	Local    = "local"
	Off      = "off"
	Embedded = "embedded"

	DeepStreamMinimal = "minimal"
	DeepStreamFull    = "full"
)

// Default returns the built-in values. The device is named after the host.
func Default() *Config {
	return &Config{
		Name:   hostName(),
		Engine: Engine{Backend: Auto, Precision: Auto, GPU: "0", Plugins: []string{}},
		Model:  Model{Layout: Auto, Activation: Auto},
		Remote: Remote{Timeout: 800 * time.Millisecond, Fallback: Drop, SharedMemory: triton.SystemMemory, Wire: triton.Auto, MemoryMB: 256},
		Detect: Detect{
			Confidence:    0.25,
			IoU:           0.45,
			MaxDetections: 300,
			Top:           5,
			Track:         true,
			Profile:       "static",
			Masks:         "polygon",
			DepthUnit:     "relative",
		},
		Inference: DefaultInference(),
		MQTT: MQTT{
			URL: Embedded, Listen: "127.0.0.1:1883", Discovery: true, CountInterval: 10 * time.Second, Control: true,
			DeepStreamSchema: DeepStreamMinimal,
		},
		Events:    Events{Days: 31, MaxMB: 1024},
		Clips:     defaultClips(),
		Upload:    Upload{Clips: true, Snapshots: true},
		Verify:    Verify{Timeout: 2 * time.Second, Cameras: []string{}, Labels: []string{}, Otherwise: Publish},
		Bundle:    Bundle{Keys: []string{}, Every: time.Hour, Trial: 10 * time.Minute, Agreement: 0.5},
		Samples:   Samples{MaxMB: 1024, PerHour: 12},
		Web:       Web{Listen: Off, FrameRate: 12, MemoryMB: 32},
		Motion:    Motion{Sensitivity: defaultSensitivity, MinRate: defaultMinRate},
		Thermal:   Thermal{Hysteresis: 5},
		Runtime:   process.DefaultSettings(),
		Log:       "info",
		LogFormat: Auto,
	}
}

// Brokers is the list of broker addresses; empty when MQTT is off or embedded.
func (m *MQTT) Brokers() []string {
	if m.URL == Off || m.URL == Embedded {
		return nil
	}
	return strings.FieldsFunc(m.URL, func(r rune) bool { return r == ',' || r == ' ' })
}

// hostName is the host's name with what MQTT forbids in a topic level taken out.
func hostName() string {
	name, err := os.Hostname()
	if err != nil || name == "" {
		return "edge"
	}
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("+/# \t", r) || r == 0 {
			return '-'
		}
		return r
	}, name)
}
