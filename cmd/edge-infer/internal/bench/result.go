package bench

import (
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/edge-infer/edge-infer/engine"
)

// Result is what one run came to. Latencies run from the frame's arrival to the message's hand-over.
type Result struct {
	Backend   string           `json:"backend"`
	Version   string           `json:"version"`
	Device    string           `json:"device"`
	Precision engine.Precision `json:"precision"`
	Batch     int              `json:"batch"`
	Cameras   int              `json:"cameras"`
	Filled    float64          `json:"pictures_per_request"` // the mean, of Batch at most
	Frames    uint64           `json:"frames"`
	Lost      uint64           `json:"lost"` // frames of which nothing came, from the start
	FPS       float64          `json:"fps"`
	P50       float64          `json:"latency_p50_ms"`
	P99       float64          `json:"latency_p99_ms"`
	P999      float64          `json:"latency_p999_ms"`
	Max       float64          `json:"latency_max_ms"`
	Stages    Stages           `json:"stages"`
	CPU       float64          `json:"cpu_us_per_frame"`
	Fairness  float64          `json:"fairness"` // slowest camera's frames over the fastest's
	Skipped   uint64           `json:"late"`     // frames that a newer one displaced

	reason error // why the last one was lost
}

// Results are those of one command, a run each.
type Results []Result

// Err says how many frames were lost, and why; nil when none was.
func (all Results) Err() error {
	var errs []error
	for _, r := range all {
		if r.Lost > 0 {
			errs = append(errs, fmt.Errorf("bench: batch %d: %d frames were lost, the figures count the others: %w", r.Batch, r.Lost, r.reason))
		}
	}
	return errors.Join(errs...)
}

// Print writes the results for a person.
func (all Results) Print(out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(table, "%s %s on %s, %s\n", all[0].Backend, all[0].Version, all[0].Device, all[0].Precision)
	fmt.Fprintln(table, "batch\tcameras\tfilled\tfps\tp50 ms\tp99 ms\tp99.9 ms\tmax ms\tCPU us/frame\tfairness\tlate\t")
	for _, r := range all {
		fmt.Fprintf(table, "%d\t%d\t%.1f\t%.1f\t%.3f\t%.3f\t%.3f\t%.3f\t%.0f\t%.3f\t%d\t\n",
			r.Batch, r.Cameras, r.Filled, r.FPS, r.P50, r.P99, r.P999, r.Max, r.CPU, r.Fairness, r.Skipped)
	}
	return table.Flush()
}
