// Package result is the document that a benchmark writes: what was measured, on what machine, and how busy that was meanwhile.
package result

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
	Program string    `json:"program,omitempty"` // what edge-infer --version says
	Time    time.Time `json:"time"`              // of the beginning
	Machine Machine   `json:"machine"`
	Load    Load      `json:"load"`
	Results []Result  `json:"results"`
}

// Machine is what it was measured on.
type Machine struct {
	System    string `json:"system"` // operating system and architecture
	Processor string `json:"processor,omitempty"`
	CPUs      int    `json:"cpus"`
	Memory    int64  `json:"memory_bytes,omitempty"`
	Governor  string `json:"governor,omitempty"` // of the processor's clock
	PowerMode string `json:"power_mode,omitempty"`
}

// Load is how busy the machine was with other things: the share of all its CPUs, nil where it is not known.
type Load struct {
	Before  *float64 `json:"before"`
	After   *float64 `json:"after"`
	Average float64  `json:"average"` // processes that ran or waited over the minute before
	Waited  float64  `json:"waited_s,omitempty"`
}

// What is measured of a network.
type What string

// The parts: the network's own time on its device; an image, or tensors, in memory until the detections, or outputs, are in memory; the
// frame loop with tracking and messages.
const (
	Engine    What = "engine"
	Transfers What = "transfers"
	Loop      What = "loop"
)

// Drive is how requests come.
type Drive string

// The ways: the next one when the last is done; as fast as they are taken; at a rate, and latency counts from the moment each was due.
const (
	Closed  Drive = "closed"
	FlatOut Drive = "flat-out"
	Paced   Drive = "paced"
)

// Result is what one run came to. Latencies are in milliseconds: of a request from its submission, of a frame from its arrival to the
// message's hand-over, of a paced one from when it was due.
type Result struct {
	What      What             `json:"what"`
	Drive     Drive            `json:"drive"`
	Engine    string           `json:"engine"` // as it was asked for
	Model     string           `json:"model"`
	Backend   string           `json:"backend"`
	Version   string           `json:"version"`
	Device    string           `json:"device"`
	Precision engine.Precision `json:"precision"`
	Batch     int              `json:"batch"`
	Rate      float64          `json:"rate,omitempty"` // images a second that were due
	Cameras   int              `json:"cameras,omitempty"`
	Filled    float64          `json:"images_per_request"` // the mean, of Batch at most
	Seconds   float64          `json:"seconds"`
	Frames    uint64           `json:"frames"`
	Lost      uint64           `json:"lost"` // frames of which nothing came, from the start
	Skipped   uint64           `json:"late"` // frames that a newer one displaced
	FPS       float64          `json:"fps"`
	Latency
	Stages   *Stages  `json:"stages,omitempty"`
	Clocks   []Clock  `json:"clocks,omitempty"` // of the frame loop, in the order of a frame's way
	CPU      float64  `json:"cpu_us_per_frame"`
	Fairness *float64 `json:"fairness,omitempty"` // slowest camera's frames over the fastest's
	Usage
	Others *float64 `json:"others_busy"` // share of all CPUs that other programs used meanwhile
	// SpeedUp is FPS over that of the engine that was named last, Agreement how its detections fit that one's; in runs of several engines.
	SpeedUp   float64    `json:"speed_up,omitempty"`
	Agreement *Agreement `json:"agreement,omitempty"`

	Reason error `json:"-"` // why the last one was lost
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

// Point says that so many percent of the requests took at most so long.
type Point struct {
	Percentile float64 `json:"percentile"`
	Latency    float64 `json:"ms"`
}

// Stages says where the time of a frame goes, as medians in milliseconds: from arrival to submission, to the end of the network, to the
// message's hand-over.
type Stages struct {
	Submit  float64 `json:"submit_p50_ms"`
	Network float64 `json:"network_p50_ms"`
	Publish float64 `json:"publish_p50_ms"`
}

// Clock is what one stage took, in milliseconds. Stages of the frame are counted once a frame, those of the engine once a request, and
// acknowledgements once a message of QoS 1.
type Clock struct {
	Stage string  `json:"stage"`
	Count uint64  `json:"count"`
	P50   float64 `json:"p50_ms"`
	P99   float64 `json:"p99_ms"`
	P999  float64 `json:"p999_ms"`
	Max   float64 `json:"max_ms"`
}

// Usage is what a run took of the machine; what the machine does not tell is nil.
type Usage struct {
	Allocations float64 `json:"allocations_per_frame"` // of Go, the message client's and an embedded broker's among them
	// Memory is the most that the process had in memory since the network was opened, without the images that the benchmark holds.
	Memory int64 `json:"memory_peak_bytes"`
	// GPUMemory is how much more of the device's memory was in use, at most, than before the network was opened.
	GPUMemory   *int64   `json:"gpu_memory_peak_bytes,omitempty"`
	Watts       *float64 `json:"watts,omitempty"` // the mean, of all rails or GPUs that tell
	Temperature *float64 `json:"temperature_c,omitempty"`
	Throttled   []string `json:"throttled,omitempty"`
}

// Agreement says how what one engine finds fits what another does on the same input.
type Agreement struct {
	With   string `json:"with"`
	Images int    `json:"images,omitempty"`
	// Rate is the share of boxes that both report, at the same place with the same class. Nil for networks that take no images.
	Rate  *float64 `json:"rate,omitempty"`
	Drift float64  `json:"score_drift_max"`
	// Difference is the largest one between two numbers of the outputs, and Largest the largest number, of networks that take no images.
	Difference *float64 `json:"difference_max,omitempty"`
	Largest    *float64 `json:"largest,omitempty"`
}

// Err says how many frames were lost, and why, and which runs have no figures at all; nil when there is neither.
func (r *Report) Err() error {
	var errs []error
	for _, one := range r.Results {
		if one.Lost > 0 {
			errs = append(errs, fmt.Errorf("bench: batch %d: %d frames were lost, the figures count the others: %w",
				one.Batch, one.Lost, one.Reason))
		} else if one.Frames == 0 {
			errs = append(errs, fmt.Errorf("bench: batch %d: not one frame was done in %.1f s, so there are no figures (give a longer --duration)",
				one.Batch, one.Seconds))
		}
	}
	return errors.Join(errs...)
}

// Name says which run it is.
func (r *Result) Name() string {
	return fmt.Sprintf("%s, %s, %s, %s, batch %d", r.Engine, r.Precision, r.What, r.Drive, r.Batch)
}

// Parse reads a document.
func Parse(data []byte) (*Report, error) {
	var r Report
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, fmt.Errorf("no document of edge-infer bench --output: %w", err)
	}
	if r.Version != 1 || len(r.Results) == 0 {
		return nil, fmt.Errorf("no document of edge-infer bench --output: version %d with %d results", r.Version, len(r.Results))
	}
	for i := range r.Results {
		if r.Results[i].What == "" {
			return nil, fmt.Errorf("no document of edge-infer bench --output: result %d does not say what was measured", i+1)
		}
	}
	return &r, nil
}
