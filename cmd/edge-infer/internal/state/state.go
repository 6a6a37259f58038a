// Package state is what a run is at one moment. Everything that the daemon reports, over MQTT, on the page, as metrics, on the terminal and
// as JSON, is a function of a State; only its builder asks the parts of the run.
package state

import (
	"time"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/record"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/samples"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/site"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/stage"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/store"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/telemetry"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/update"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/upload"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/verify"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/webhook"
	"github.com/edge-infer/edge-infer/engine/quantize"
	"github.com/edge-infer/edge-infer/mqtt"
	"github.com/edge-infer/edge-infer/mqtt/broker"
	"github.com/edge-infer/edge-infer/postprocess/predict"
	"github.com/edge-infer/edge-infer/postprocess/predict/cascade"
	"github.com/edge-infer/edge-infer/postprocess/zone"
)

// State is a run at one moment. Nobody changes it, or what it refers to, once it is built. Counters run from the start.
type State struct {
	Device  string
	Version string
	Started time.Time
	Runtime Runtime
	// Opening is what the run is waiting for at the start. While it is set, only Model.Path and Outputs are known besides the fields above.
	Opening string

	// Model is that of the first network that is open, with the names of all devices.
	Model    predict.Model
	Accuracy *quantize.Verdict // on Model; nil if it was not compared with the FP32 model
	Upgrade  Upgrade
	Groups   []Group
	Cameras  []Camera // in the configured order

	FirstFrame  time.Duration // from the start to the first inferred frame; 0 before
	Inference   time.Duration // moving average of an inference, of the slowest device
	FrameMemory int64         // bytes of the devices' memory that cameras hold
	Stages      []stage.Summary
	// RecentStages are the stages since the previous State that has them.
	RecentStages []stage.Summary
	Servers      *Servers // nil if the network runs on this machine
	Secondary    []cascade.Stats
	HangRestart  time.Time // the earliest restart because of calls into networks that have not returned

	Sensors  *telemetry.Reading // nil before the first reading
	Slowdown int                // factor of every camera's interval, because the machine is hot; 1 at full speed
	Reload   *Reload            // the last one; nil before the first
	Update   *update.Status     // of models; nil where none are installed from a source
	Restarts int                // in place, since the service started
	Watchdog time.Duration      // until the loop that is furthest behind would miss the watchdog
	Outputs  Outputs
}

// Runtime is how the process uses its machine.
type Runtime struct {
	Processors  int    // GOMAXPROCS
	GC          int    // GOGC, below 0 for off
	MemoryLimit int64  // of what Go holds, in bytes; 0 for none
	LimitText   string // the same in words, with the reason
	Capture     string // scheduling of the capture threads
}

// Upgrade describes the engine plan that is being built while another backend serves.
type Upgrade struct {
	Text   string // empty for none
	Failed bool   // it waits after a failure
}

// Reload is how a reload of the configuration has ended.
type Reload struct {
	At  time.Time
	Err error // why the configuration before is still in force
}

// Group is a camera group.
type Group struct {
	Cameras     []string // that it was opened with
	Description string   // model with its tiles and augmentations
	Model       predict.Model
	Waits       bool // the network is not open yet
}

// Camera is a camera with what it runs by.
type Camera struct {
	Site    site.Camera
	Leaving bool // it is being removed
	Capture capture.Stats
	// Totals count since the camera was added. Recent has rates since the previous State that has them; nil without.
	Totals pipeline.CameraStats
	Recent *pipeline.CameraStats

	Hardware  string         // that computes its frames
	Model     *predict.Model // nil if no network takes its frames
	ModelText string         // Model, its tiles and augmentations; empty if all cameras have the same
	NoClasses string         // why nothing is reported: its network has none of the classes; empty if it has

	Tracked   bool
	Analytics zone.Config // in force; empty if the camera is neither tracked nor has a map
	Seen      []string    // labels that were counted often enough for an entity
}

// Outputs is the state of the outputs; nil fields are not configured.
type Outputs struct {
	Page         string // address of the page, empty without one
	MQTT         *mqtt.Health
	Embedded     *broker.Stats
	Store        *store.Stats
	Clips        *record.Status
	Samples      *samples.Status // frames for labelling
	Webhooks     []webhook.Status
	Verify       *verify.Status
	Upload       *upload.Status
	Certificates []Certificate
	LinesDropped uint64 // JSON lines that were not written because their reader was slow
}

// Certificate is a configured certificate.
type Certificate struct {
	Use     string // page, mqtt, or mqtt authority
	Expires time.Time
}
