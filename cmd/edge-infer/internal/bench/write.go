package bench

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/bench/result"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/plot"
	"github.com/edge-infer/edge-infer/engine/atomicfile"
)

// checkFiles finds out before the work whether its documents can be written.
func (b *Bench) checkFiles() error {
	if b.Output != "" {
		if err := atomicfile.Check(b.Output); err != nil {
			return fmt.Errorf("--output: %w", err)
		}
	}
	for _, path := range b.Plots {
		if err := plot.CheckPath(path); err != nil {
			return config.Usagef("--plot: %v", err)
		}
		if err := atomicfile.Check(path); err != nil {
			return fmt.Errorf("--plot: %w", err)
		}
	}
	return nil
}

// write writes the document and draws the diagrams, where they were asked for.
func (b *Bench) write(r *result.Report) error {
	if b.Output != "" {
		data, err := json.MarshalIndent(r, "", "  ")
		if err != nil {
			return err
		}
		if err := atomicfile.Write(b.Output, append(data, '\n'), 0o644); err != nil {
			return fmt.Errorf("--output: %w", err)
		}
	}
	for _, path := range b.Plots {
		data, err := diagram(r).Encode(path)
		if err == nil {
			err = atomicfile.Write(path, data, 0o644)
		}
		if err != nil {
			return fmt.Errorf("--plot: %w", err)
		}
	}
	return nil
}

// diagram has the latencies by percentile and, where there are several batch sizes, rate and tail over them.
func diagram(r *result.Report) *plot.Figure {
	tails := &plot.Chart{
		Title: "Latency by percentile",
		X:     plot.Axis{Label: "percentile (1: 90th, 2: 99th, 3: 99.9th)"}, Y: plot.Axis{Label: "latency (ms)"},
	}
	rates := &plot.Chart{Title: "Rate by batch", X: plot.Axis{Label: "images in a request"}, Y: plot.Axis{Label: "images a second"}}
	slow := &plot.Chart{Title: "99th percentile by batch", X: plot.Axis{Label: "images in a request"}, Y: plot.Axis{Label: "latency (ms)"}}
	sweeps, batches := map[string]int{}, map[int]bool{}
	for i := range r.Results {
		one := &r.Results[i]
		line := plot.Series{Name: one.Name()}
		for _, p := range one.Curve {
			line.X = append(line.X, -math.Log10(max(1-p.Percentile/100, 1e-9)))
			line.Y = append(line.Y, p.Latency)
		}
		tails.Series = append(tails.Series, line)

		name := fmt.Sprintf("%s, %s, %s, %s", one.Engine, one.Precision, one.What, one.Drive)
		at, known := sweeps[name]
		if !known {
			at = len(rates.Series)
			sweeps[name] = at
			rates.Series = append(rates.Series, plot.Series{Name: name, Style: plot.Marked})
			slow.Series = append(slow.Series, plot.Series{Name: name, Style: plot.Marked})
		}
		batches[one.Batch] = true
		add := func(s *plot.Series, y float64) { s.X, s.Y = append(s.X, float64(one.Batch)), append(s.Y, y) }
		add(&rates.Series[at], one.FPS)
		add(&slow.Series[at], one.P99)
	}
	f := &plot.Figure{Title: r.Results[0].Model, Panels: []plot.Panel{tails}}
	if len(batches) > 1 {
		f.Panels = append(f.Panels, rates, slow)
	}
	return f
}
