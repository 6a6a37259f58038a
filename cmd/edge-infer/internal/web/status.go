package web

import (
	"net/http"
	"sync"
	"time"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/access"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/samples"
	clocks "github.com/edge-infer/edge-infer/cmd/edge-infer/internal/stage"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/store"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/update"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/upload"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/verify"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/webhook"
	"github.com/edge-infer/edge-infer/postprocess/zone"
)

// Source provides the status. Status is called from any goroutine, a few times a second at most, and must not block the frame loop.
type Source interface {
	Status() Status
}

// Status is the state of a run. Counters run from the start.
type Status struct {
	Device  string    `json:"device"`
	Version string    `json:"version"`
	Started time.Time `json:"started"`
	Engine  Engine    `json:"engine"`
	Cameras []Camera  `json:"cameras"`
	// FrameMemory is the engine memory held by cameras in bytes.
	FrameMemory int64 `json:"frame_memory"`
	// Stages are the latencies by stage since the start.
	Stages []Stage `json:"stages"`
	// Readings are the sensor values of the machine, in display order.
	Readings []Reading `json:"readings"`
	// Queues are the MQTT queues, empty if MQTT is off. Broker describes the connection.
	Queues []Queue `json:"queues"`
	Broker string  `json:"broker"`
	Reload Reload  `json:"reload"`
	// Servers is nil if the network runs on this machine.
	Servers *Servers `json:"servers,omitempty"`

	// EventStore is nil if events are not stored.
	EventStore *store.Stats `json:"event_store,omitempty"`

	// Secondary are the networks that classify tracked objects.
	Secondary []SecondaryNetwork `json:"secondary,omitempty"`

	Operation Operation        `json:"operation"`
	Clips     *Clips           `json:"clips,omitempty"`  // nil where none are recorded
	Upload    *upload.Status   `json:"upload,omitempty"` // nil without a server
	Webhooks  []webhook.Status `json:"webhooks,omitempty"`
	Verify    *verify.Status   `json:"verify,omitempty"`  // nil without a service
	Update    *update.Status   `json:"update,omitempty"`  // of models; nil where none are installed from a source
	Samples   *samples.Status  `json:"samples,omitempty"` // frames for labelling; nil where none are kept
	Runtime   Runtime          `json:"runtime"`
	// Opening describes what the run is waiting for at the start; empty once it processes frames.
	Opening string `json:"opening,omitempty"`
}

// SecondaryNetwork is the state of a network that classifies tracked objects. Counters run from the start.
type SecondaryNetwork struct {
	Name   string `json:"name"`
	Crops  uint64 `json:"crops"`           // classified
	Failed uint64 `json:"failed"`          // crops without a valid result
	Missed uint64 `json:"missed"`          // crops that were due and not taken, because the network was not free
	Hangs  bool   `json:"hangs"`           // there has been no result for ten seconds
	Slow   bool   `json:"slow"`            // it misses crops
	Error  string `json:"error,omitempty"` // why the newest request failed; empty after one that did not
	// Last is the time of the newest result; zero for none.
	Last time.Time `json:"last_result,omitzero"`
}

// Reload is the result of the last reload of the configuration.
type Reload struct {
	At    time.Time `json:"at,omitzero"`     // zero before the first reload
	Error string    `json:"error,omitempty"` // why it was rejected
}

// Runtime holds the settings of the process.
type Runtime struct {
	Processors  int    `json:"processors"` // GOMAXPROCS
	GC          int    `json:"gc_percent"` // below 0 for off
	MemoryLimit string `json:"memory_limit"`
	Capture     string `json:"capture"` // scheduling of capture threads
}

// Engine describes the inference engine.
type Engine struct {
	Backend   string   `json:"backend"`
	Version   string   `json:"version"`
	Reason    string   `json:"reason"` // why this backend was chosen
	Device    string   `json:"device"`
	Model     string   `json:"model"`
	Task      string   `json:"task"`
	Head      string   `json:"head"` // the recognised head, and why
	Precision string   `json:"precision"`
	Accuracy  string   `json:"accuracy"` // compared with the FP32 model, empty if not measured
	Width     int      `json:"width"`    // input width in pixels
	Height    int      `json:"height"`
	MaxBatch  int      `json:"max_batch"`
	Labels    []string `json:"labels"`
	// Inference is the moving average of the inference time.
	Inference time.Duration `json:"-"`
	// Progress describes the engine plan being built, empty for none.
	Progress string `json:"progress"`
}

// Camera is one camera's part of Status.
type Camera struct {
	Capture  capture.Stats        `json:"capture"`
	Pipeline pipeline.CameraStats `json:"pipeline"`
	// Silence is the allowed time without an image.
	Silence time.Duration `json:"-"`
	// Analytics are the zones and lines in force; Tracked is set if tracking is enabled.
	Analytics zone.Config `json:"analytics"`
	Tracked   bool        `json:"tracked"`
	Settings  Settings    `json:"settings"`
	Hardware  string      `json:"hardware"`        // device of the network
	Model     string      `json:"model,omitempty"` // and its preprocessing, if cameras differ
	// Labels and Points are the class and keypoint names of the camera's network.
	Labels []string `json:"labels"`
	Points []string `json:"keypoints,omitempty"`
}

// Stage is the latency of one processing stage.
type Stage struct {
	clocks.Summary `json:"-"`

	Name string  `json:"name"`
	P50  float64 `json:"p50_ms"`
	P99  float64 `json:"p99_ms"`
}

// Stages converts summaries for Status.
func Stages(all []clocks.Summary) []Stage {
	stages := make([]Stage, 0, len(all))
	for _, s := range all {
		stages = append(stages, Stage{s, s.Stage.String(), s.P50.Seconds() * 1000, s.P99.Seconds() * 1000})
	}
	return stages
}

// Reading is a sensor value.
type Reading struct {
	Kind  string  `json:"kind"` // temperature, power, load, clock, over-current or throttled
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"` // celsius, watts, ratio, hertz, events, or now for throttling
}

// Queue counts one kind of message by outcome: Offered = Delivered + Superseded + Dropped + Queued.
type Queue struct {
	Name       string `json:"name"`
	Offered    uint64 `json:"offered"`
	Delivered  uint64 `json:"delivered"`
	Superseded uint64 `json:"superseded"`
	Dropped    uint64 `json:"dropped"`
	Queued     uint64 `json:"queued"`
}

// pageStatus is Status with fields for the page.
type pageStatus struct {
	Status
	Now         time.Time  `json:"now"`
	InferenceMS float64    `json:"inference_ms"`
	BoundsMS    []float64  `json:"bounds_ms"`
	Latencies   [][]uint64 `json:"latencies"`            // by camera and bucket
	Editable    bool       `json:"editable"`             // zones can be saved
	EditProblem string     `json:"uneditable,omitempty"` // why zones cannot be saved
	Login       bool       `json:"login"`
	Stored      bool       `json:"stored"` // events are stored
	ImageRate   int        `json:"image_rate"`
}

// statusAge is the maximum age of a cached status, which bounds the load of requests.
const statusAge = 400 * time.Millisecond

// cachedStatus holds the latest status.
type cachedStatus struct {
	mutex  sync.Mutex
	status Status
	at     time.Time
}

func (c *cachedStatus) forget() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.at = time.Time{}
}

// status returns the current or a recently cached status, which must not be modified.
func (s *Server) status() Status {
	s.recent.mutex.Lock()
	defer s.recent.mutex.Unlock()
	if now := time.Now(); now.Sub(s.recent.at) >= statusAge {
		s.recent.status, s.recent.at = s.Source.Status(), now
	}
	return s.recent.status
}

func (s *Server) serveStatus(w http.ResponseWriter, r *http.Request) {
	uneditable := s.editProblem(time.Now())
	if s.access.Role(r) < access.RoleControl {
		uneditable = "your token has the role view; zones are changed with one of the role control"
	}
	status := pageStatus{
		Status: s.status(), Now: time.Now(), Editable: uneditable == "", EditProblem: uneditable, Login: s.access.Required(),
		Stored: s.Events != nil, ImageRate: s.FrameRate,
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

// names returns the class and keypoint names of a camera's network.
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
