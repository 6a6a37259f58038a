package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/auto"
	"github.com/edge-infer/edge-infer/engine/tensorrt"
)

// profileRuns is how many runs bench --layers takes the mean of.
const profileRuns = 50

// layerProfile is what bench --layers finds: where a request's time goes.
type layerProfile struct {
	Version   string           `json:"version"` // of TensorRT
	Device    string           `json:"device"`
	Precision engine.Precision `json:"precision"`
	Batch     int              `json:"batch"`
	Total     float64          `json:"total_us"`
	Layers    []layerLine      `json:"layers"` // in the order of execution
	// Placement counts the layers and their time by device and precision, like GPU int8.
	Placement map[string]*placed `json:"placement"`
}

type layerLine struct {
	tensorrt.Layer
	Mean  float64 `json:"mean_us"`
	Share float64 `json:"share"`
}

type placed struct {
	Layers int     `json:"layers"`
	Mean   float64 `json:"mean_us"`
	Share  float64 `json:"share"`
}

// profile opens the model on TensorRT and times its layers on one batch of the demo belt.
func (b *bench) profile(ctx context.Context, batch int) (*layerProfile, error) {
	c := *b.config
	switch c.Engine.Backend {
	case autoEngine:
		c.Engine.Backend = tensorrt.Name
	case tensorrt.Name:
	default:
		return nil, usagef("--layers: only TensorRT tells its layers' times, not %s", c.Engine.Backend)
	}
	options, err := modelOptions(&c, batch, c.Detect.Confidence)
	if err != nil {
		return nil, err
	}
	options.MaxBatch, options.Slots = batch, 1
	opened, err := openEngine(ctx, &c, options, newLogger(b.stderr, c.Log), b.stderr)
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	e := auto.Unwrap(opened).(*tensorrt.Engine)
	pictures, err := b.draw(e)
	if err != nil {
		return nil, err
	}
	images := make([]engine.Image, batch)
	for i := range images {
		images[i] = engine.Image{
			Data: pictures[i%len(pictures)], Width: b.width, Height: b.height, Stride: capture.BGR.RowBytes(b.width), Format: engine.BGR,
		}
	}
	if err := e.Submit(0, images); err != nil {
		return nil, err
	}
	if _, err := e.Wait(0); err != nil {
		return nil, err
	}
	times, err := e.Profile(0, profileRuns)
	if err != nil {
		return nil, err
	}
	layers, err := e.Placement()
	if err != nil {
		return nil, err
	}
	model := e.Model()
	p := &layerProfile{Version: model.BackendVersion, Device: model.Device, Precision: model.Precision, Batch: batch}
	p.add(times, layers)
	return p, nil
}

// printProfiles profiles each batch size.
func (b *bench) printProfiles(ctx context.Context, stdout io.Writer, asJSON bool) error {
	var profiles []*layerProfile
	for _, batch := range b.batches {
		p, err := b.profile(ctx, batch)
		if err != nil {
			return err
		}
		profiles = append(profiles, p)
	}
	if asJSON {
		return json.NewEncoder(stdout).Encode(map[string]any{"v": 1, "profiles": profiles})
	}
	for _, p := range profiles {
		if err := p.print(stdout); err != nil {
			return err
		}
	}
	return nil
}

// add joins times with what the layers are, by name. Layers of one name come in the same order in both lists.
func (p *layerProfile) add(times []tensorrt.LayerTime, layers []tensorrt.Layer) {
	p.Placement = map[string]*placed{}
	var total time.Duration
	for _, t := range times {
		total += t.Time
	}
	p.Total = microseconds(total)
	share := func(us float64) float64 { return us / max(p.Total, 1e-9) }
	left := slices.Clone(layers)
	for _, t := range times {
		line := layerLine{Layer: tensorrt.Layer{Name: t.Layer, Device: "GPU"}, Mean: microseconds(t.Time)}
		if at := slices.IndexFunc(left, func(l tensorrt.Layer) bool { return l.Name == t.Layer }); at >= 0 {
			line.Layer = left[at]
			left = slices.Delete(left, at, at+1)
		}
		line.Share = share(line.Mean)
		p.Layers = append(p.Layers, line)
		where := strings.TrimSpace(line.Device + " " + cmp.Or(line.Precision, "unknown"))
		if p.Placement[where] == nil {
			p.Placement[where] = &placed{}
		}
		p.Placement[where].Layers++
		p.Placement[where].Mean += line.Mean
	}
	for _, g := range p.Placement {
		g.Share = share(g.Mean)
	}
}

func microseconds(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// print writes the slowest layers first, then how many run where and in which precision.
func (p *layerProfile) print(out io.Writer) error {
	fmt.Fprintf(out, "tensorrt %s on %s, %s, batch %d: %d layers, %.1f us layer by layer\n", p.Version, p.Device, p.Precision, p.Batch, len(p.Layers), p.Total)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "mean us\tshare\tdevice\tprecision\tkind\tlayer")
	sorted := slices.SortedStableFunc(slices.Values(p.Layers), func(a, b layerLine) int { return cmp.Compare(b.Mean, a.Mean) })
	for _, l := range sorted {
		fmt.Fprintf(table, "%.1f\t%.1f %%\t%s\t%s\t%s\t%s\n", l.Mean, 100*l.Share, l.Device, cmp.Or(l.Precision, "-"), cmp.Or(l.Kind, "-"), l.Name)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, where := range slices.Sorted(maps.Keys(p.Placement)) {
		g := p.Placement[where]
		if _, err := fmt.Fprintf(out, "%s: %d layers, %.1f us, %.1f %%\n", where, g.Layers, g.Mean, 100*g.Share); err != nil {
			return err
		}
	}
	return nil
}
