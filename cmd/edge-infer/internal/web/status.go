package web

import (
	"net/http"
	"sync"
	"time"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	clocks "github.com/edge-infer/edge-infer/cmd/edge-infer/internal/stage"
	"github.com/edge-infer/edge-infer/postprocess/zone"
)

// Source says how the run is. Status is called from any goroutine, a few times a second at most, and must not make the frame loop wait.
type Source interface {
	Status() Status
}

// Status is how the run is now. Counters run from the start.
type Status struct {
	Device  string    `json:"device"`
	Version string    `json:"version"`
	Started time.Time `json:"started"`
	Engine  Engine    `json:"engine"`
	Cameras []Camera  `json:"cameras"`
	// FrameMemory is how many bytes of the engines' memory the cameras hold.
	FrameMemory int64 `json:"frame_memory"`
	// Stages are how long each part of a frame's way has taken since the start.
	Stages []Stage `json:"stages"`
	// Readings are the machine's sensors, in the order in which they are shown.
	Readings []Reading `json:"readings"`
	// Queues are where messages wait for the broker; empty when MQTT is off. Broker says how the connection is.
	Queues []Queue `json:"queues"`
	Broker string  `json:"broker"`
	Reload Reload  `json:"reload"`
	// Servers run the network, nil where it runs here.
	Servers *Servers `json:"servers,omitempty"`

	Operation Operation `json:"operation"`
	Runtime   Runtime   `json:"runtime"`
	// Opening says what a run waits for that cannot serve yet; empty for one that serves.
	Opening string `json:"opening,omitempty"`
}

// Reload is what came of reading the configuration again.
type Reload struct {
	At    time.Time `json:"at,omitzero"`     // zero when it has not been read again
	Error string    `json:"error,omitempty"` // why the one before is still in force
}

// Runtime is how the process uses its machine.
type Runtime struct {
	Processors  int    `json:"processors"` // of Go
	GC          int    `json:"gc_percent"` // below 0 for off
	MemoryLimit string `json:"memory_limit"`
	Capture     string `json:"capture"` // how the threads run that wait for live cameras
}

// Engine is what runs the network.
type Engine struct {
	Backend   string   `json:"backend"`
	Version   string   `json:"version"`
	Reason    string   `json:"reason"` // why this backend
	Device    string   `json:"device"`
	Model     string   `json:"model"`
	Task      string   `json:"task"`
	Head      string   `json:"head"` // what the outputs were recognised as, and why
	Precision string   `json:"precision"`
	Accuracy  string   `json:"accuracy"` // what was found against the original in FP32, empty when nothing was
	Width     int      `json:"width"`    // of the network's input in pixels
	Height    int      `json:"height"`
	MaxBatch  int      `json:"max_batch"`
	Labels    []string `json:"labels"`
	// Inference is the smoothed time of a request.
	Inference time.Duration `json:"-"`
	// Progress is the engine plan that is being built, empty for none.
	Progress string `json:"progress"`
}

// Camera is one camera's part of Status.
type Camera struct {
	Capture  capture.Stats        `json:"capture"`
	Pipeline pipeline.CameraStats `json:"pipeline"`
	// Silence is how long it may be without an image.
	Silence time.Duration `json:"-"`
	// Analytics are the zones and lines in force; Tracked says whether there is anything that uses them.
	Analytics zone.Config `json:"analytics"`
	Tracked   bool        `json:"tracked"`
	Hardware  string      `json:"hardware"`        // that the network runs on
	Model     string      `json:"model,omitempty"` // and how it is shown its images, where not all cameras have the same
	// Labels are those of the network that looks at the camera, Points the names of its objects' keypoints.
	Labels []string `json:"labels"`
	Points []string `json:"keypoints,omitempty"`
}

// Stage is one part of a frame's way.
type Stage struct {
	clocks.Summary `json:"-"`

	Name string  `json:"name"`
	P50  float64 `json:"p50_ms"`
	P99  float64 `json:"p99_ms"`
}

// Stages gives summaries the form of Status.
func Stages(all []clocks.Summary) []Stage {
	stages := make([]Stage, 0, len(all))
	for _, s := range all {
		stages = append(stages, Stage{s, s.Stage.String(), s.P50.Seconds() * 1000, s.P99.Seconds() * 1000})
	}
	return stages
}

// Reading is one sensor's value.
type Reading struct {
	Kind  string  `json:"kind"` // temperature, power, load, clock or throttled
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"` // celsius, watts, ratio, hertz, or now for what is throttled
}

// Queue is what became of one kind of message: Offered = Delivered + Superseded + Dropped + Queued.
type Queue struct {
	Name       string `json:"name"`
	Offered    uint64 `json:"offered"`
	Delivered  uint64 `json:"delivered"`
	Superseded uint64 `json:"superseded"`
	Dropped    uint64 `json:"dropped"`
	Queued     uint64 `json:"queued"`
}

// pageStatus is Status with what only the page wants to know.
type pageStatus struct {
	Status
	Now         time.Time  `json:"now"`
	InferenceMS float64    `json:"inference_ms"`
	BoundsMS    []float64  `json:"bounds_ms"`
	Latencies   [][]uint64 `json:"latencies"`            // of each camera, by bucket
	Editable    bool       `json:"editable"`             // zones can be saved
	EditProblem string     `json:"uneditable,omitempty"` // why not
	Login       bool       `json:"login"`
	Snapshots   bool       `json:"snapshots"`
	ImageRate   int        `json:"image_rate"`
}

// statusAge is how old a status may be, so that no number of requests makes the frame loop be asked more often.
const statusAge = 400 * time.Millisecond

// cachedStatus is the latest status.
type cachedStatus struct {
	mutex  sync.Mutex
	status Status
	at     time.Time
}

// status asks the source, or gives what it said a moment ago. Nobody may change what it points to.
func (s *Server) status() Status {
	s.recent.mutex.Lock()
	defer s.recent.mutex.Unlock()
	if now := time.Now(); now.Sub(s.recent.at) >= statusAge {
		s.recent.status, s.recent.at = s.Source.Status(), now
	}
	return s.recent.status
}

func (s *Server) serveStatus(w http.ResponseWriter, _ *http.Request) {
	uneditable := s.editProblem(time.Now())
	status := pageStatus{
		Status: s.status(), Now: time.Now(), Editable: uneditable == "", EditProblem: uneditable, Login: s.access.Required(),
		Snapshots: s.Snapshot != nil, ImageRate: s.FrameRate,
	}
	status.InferenceMS = milliseconds(status.Engine.Inference)
	for i := range status.Cameras {
		latency := &status.Cameras[i].Pipeline.Latency
		if i == 0 {
			for _, bound := range latency.Bounds() {
				status.BoundsMS = append(status.BoundsMS, milliseconds(bound))
			}
		}
		status.Latencies = append(status.Latencies, latency.Counts[:])
	}
	writeJSON(w, http.StatusOK, status)
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// names are those of the network that a camera's images go to.
func (s *Server) names(camera string) (names zone.Names, known bool) {
	status := s.status()
	for i := range status.Cameras {
		if status.Cameras[i].Capture.Name == camera {
			return zone.Names{Labels: status.Cameras[i].Labels, Keypoints: status.Cameras[i].Points}, true
		}
	}
	return zone.Names{}, false
}

// known reports whether there is a camera of that name.
func (s *Server) known(camera string) bool {
	_, known := s.names(camera)
	return known
}
