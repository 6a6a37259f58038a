package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/edge-infer/edge-infer/engine"
)

// Report is the document. schema.json describes it.
type Report struct {
	Version int       `json:"v"`
	Program string    `json:"program,omitempty"` // output of edge-infer --version
	Time    time.Time `json:"time"`              // start of the benchmark
	Machine Machine   `json:"machine"`
	Load    Load      `json:"load"`
	Results []Result  `json:"results"`
}

// Machine describes the machine.
type Machine struct {
	System    string `json:"system"` // operating system and architecture
	Processor string `json:"processor,omitempty"`
	CPUs      int    `json:"cpus"`
	Memory    int64  `json:"memory_bytes,omitempty"`
	Governor  string `json:"governor,omitempty"` // CPU frequency governor
	PowerMode string `json:"power_mode,omitempty"`
}

// Load is the CPU load of other programs as a share of all CPUs, nil if unknown.
type Load struct {
	Before  *float64 `json:"before"`
	After   *float64 `json:"after"`
	Average float64  `json:"average"` // load average of the last minute
	Waited  float64  `json:"waited_s,omitempty"`
}

// What is the measured part.
type What string

// Engine is the inference time on the device; Transfers the time from inputs in memory to detections or outputs in memory; Loop the frame
// loop with tracking and messages.
const (
	Engine    What = "engine"
	Transfers What = "transfers"
	Loop      What = "loop"
)

// Drive is the timing of requests.
type Drive string

// Closed sends a request when the last is done; FlatOut as fast as possible; Paced at a rate, with latency measured from the time due.
const (
	Closed  Drive = "closed"
	FlatOut Drive = "flat-out"
	Paced   Drive = "paced"
)

// Result is the result of one run. Latencies are in milliseconds: of a request from its submission, of a frame from its arrival to the
// message's hand-over, of a paced request from the time due.
type Result struct {
	What      What             `json:"what"`
	Drive     Drive            `json:"drive"`
	Engine    string           `json:"engine"` // as given
	Model     string           `json:"model"`
	Backend   string           `json:"backend"`
	Version   string           `json:"version"`
	Device    string           `json:"device"`
	Precision engine.Precision `json:"precision"`
	Batch     int              `json:"batch"`
	Rate      float64          `json:"rate,omitempty"` // images due per second
	Cameras   int              `json:"cameras,omitempty"`
	Filled    float64          `json:"images_per_request"` // mean, at most Batch
	Seconds   float64          `json:"seconds"`
	Frames    uint64           `json:"frames"`
	Lost      uint64           `json:"lost"` // frames without a result, since the start
	Skipped   uint64           `json:"late"` // frames replaced by newer ones
	FPS       float64          `json:"fps"`
	Latency
	Stages   *Stages  `json:"stages,omitempty"`
	Clocks   []Clock  `json:"clocks,omitempty"` // stages of the frame loop, in order
	CPU      float64  `json:"cpu_us_per_frame"`
	Fairness *float64 `json:"fairness,omitempty"` // frames of the slowest / fastest camera
	Usage
	Others *float64 `json:"others_busy"` // share of all CPUs used by other programs
	// SpeedUp is FPS relative to the last of several engines, Agreement the agreement of the detections with it.
	SpeedUp   float64    `json:"speed_up,omitempty"`
	Agreement *Agreement `json:"agreement,omitempty"`

	Reason error `json:"-"` // of the last lost frame
}

// Latency is a distribution in milliseconds.
type Latency struct {
	Mean float64 `json:"latency_mean_ms"`
	P50  float64 `json:"latency_p50_ms"`
	P90  float64 `json:"latency_p90_ms"`
	P95  float64 `json:"latency_p95_ms"`
	P99  float64 `json:"latency_p99_ms"`
	P999 float64 `json:"latency_p999_ms"`
	Max  float64 `json:"latency_max_ms"`
	// Curve has the latency at rising percentiles, denser towards 100.
	Curve []Point `json:"latency_curve"`
}

// Point is a percentile of the latency.
type Point struct {
	Percentile float64 `json:"percentile"`
	Latency    float64 `json:"ms"`
}

// Stages holds medians in milliseconds: from arrival to submission, from there to the end of inference, from there to the message's
// hand-over.
type Stages struct {
	Submit  float64 `json:"submit_p50_ms"`
	Network float64 `json:"network_p50_ms"`
	Publish float64 `json:"publish_p50_ms"`
}

// Clock is the duration of one stage in milliseconds. Frame stages are counted per frame, engine stages per request, and acknowledgements
// per message of QoS 1.
type Clock struct {
	Stage string  `json:"stage"`
	Count uint64  `json:"count"`
	P50   float64 `json:"p50_ms"`
	P99   float64 `json:"p99_ms"`
	P999  float64 `json:"p999_ms"`
	Max   float64 `json:"max_ms"`
}

// Usage holds the resources of a run; unknown values are nil.
type Usage struct {
	Allocations float64 `json:"allocations_per_frame"` // Go heap, including MQTT client and embedded broker
	// Memory is the peak resident memory since the network was opened, without the images of the benchmark.
	Memory int64 `json:"memory_peak_bytes"`
	// GPUMemory is the peak increase of GPU memory since before the network was opened.
	GPUMemory   *int64   `json:"gpu_memory_peak_bytes,omitempty"`
	Watts       *float64 `json:"watts,omitempty"` // mean of the sum of all rails or GPUs
	Temperature *float64 `json:"temperature_c,omitempty"`
	Throttled   []string `json:"throttled,omitempty"`
}

// Agreement compares the outputs of two engines on the same input.
type Agreement struct {
	With   string `json:"with"`
	Images int    `json:"images,omitempty"`
	// Rate is the share of boxes with a match of the same class. Nil for networks without image input.
	Rate  *float64 `json:"rate,omitempty"`
	Drift float64  `json:"score_drift_max"`
	// Difference is the largest absolute difference of the outputs, Largest the largest absolute value, for networks without image input.
	Difference *float64 `json:"difference_max,omitempty"`
	Largest    *float64 `json:"largest,omitempty"`
}

// Err returns an error for runs with lost frames and for runs without frames.
func (r *Report) Err() error {
	var errs []error
	for _, one := range r.Results {
		if one.Lost > 0 {
			errs = append(errs, fmt.Errorf("bench: batch %d: %d frames were lost and are not part of the figures: %w",
				one.Batch, one.Lost, one.Reason))
		} else if one.Frames == 0 {
			errs = append(errs, fmt.Errorf("bench: batch %d: no frame was completed in %.1f s (use a longer --duration)",
				one.Batch, one.Seconds))
		}
	}
	return errors.Join(errs...)
}

// Name identifies the run.
func (r *Result) Name() string {
	return fmt.Sprintf("%s, %s, %s, %s, batch %d", r.Engine, r.Precision, r.What, r.Drive, r.Batch)
}

// ParseReport reads and validates a document.
func ParseReport(data []byte) (*Report, error) {
	var r Report
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, fmt.Errorf("not a document of edge-infer bench --output: %w", err)
	}
	if r.Version != 1 || len(r.Results) == 0 {
		return nil, fmt.Errorf("not a document of edge-infer bench --output: version %d with %d results", r.Version, len(r.Results))
	}
	for i := range r.Results {
		if r.Results[i].What == "" {
			return nil, fmt.Errorf("not a document of edge-infer bench --output: result %d has no \"what\"", i+1)
		}
	}
	return &r, nil
}
