package bench

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/tensorrt"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// profileRuns is the number of runs averaged by bench --layers.
const profileRuns = 50

// Profile holds the time of each layer of a TensorRT engine plan.
type Profile struct {
	Version   string           `json:"version"` // of TensorRT
	Device    string           `json:"device"`
	Precision engine.Precision `json:"precision"`
	Batch     int              `json:"batch"`
	Total     float64          `json:"total_us"`
	Layers    []LayerTime      `json:"layers"` // in the order of execution
	// Placement counts the layers and their time by device and precision, like GPU int8.
	Placement map[string]*Placement `json:"placement"`
}

// LayerTime is a layer with its mean time and its share of the total.
type LayerTime struct {
	tensorrt.Layer
	Mean  float64 `json:"mean_us"`
	Share float64 `json:"share"`
}

// Placement sums the layers on one device with one precision.
type Placement struct {
	Layers int     `json:"layers"`
	Mean   float64 `json:"mean_us"`
	Share  float64 `json:"share"`
}

// profile opens the model on TensorRT and measures its layers on a batch of demo images.
func (b *Bench) profile(ctx context.Context, batch int) (*Profile, error) {
	c := *b.Contenders[0].Config
	switch c.Engine.Backend {
	case config.Auto:
		c.Engine.Backend = tensorrt.Name
	case tensorrt.Name:
	default:
		return nil, config.Usagef("--layers needs TensorRT, not %s", c.Engine.Backend)
	}
	options := b.options(&c, batch)
	options.Slots = 1
	n, err := predict.Open(ctx, options)
	if err != nil {
		return nil, err
	}
	defer n.Close()
	if most := n.Model().MaxBatch; batch > most {
		return nil, fmt.Errorf("--batch %d: the model takes %d images at once", batch, most)
	}
	pixels, err := draw(n, b.Images, b.Width, b.Height)
	if err != nil {
		return nil, err
	}
	images := make([]engine.Image, batch)
	for i := range images {
		images[i] = engine.Image{
			Data: pixels[i%len(pixels)], Width: b.Width, Height: b.Height, Stride: engine.BGR.RowBytes(b.Width), Format: engine.BGR,
		}
	}
	if _, err := predict.Run(n, images...); err != nil { // the profile repeats the last request of the slot
		return nil, err
	}
	e := n.Engine().(*tensorrt.Engine)
	times, err := e.Profile(0, profileRuns)
	if err != nil {
		return nil, err
	}
	layers, err := e.Placement()
	if err != nil {
		return nil, err
	}
	model := n.Model()
	p := &Profile{Version: model.BackendVersion, Device: model.Device, Precision: model.Precision, Batch: batch}
	p.add(times, layers)
	return p, nil
}

// Profiles holds one profile per batch size.
type Profiles []*Profile

// Profile measures the layers for each batch size.
func (b *Bench) Profile(ctx context.Context) (Profiles, error) {
	var all Profiles
	for _, batch := range b.Batches {
		p, err := b.profile(ctx, batch)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// Print writes the profiles as text.
func (all Profiles) Print(out io.Writer) error {
	for _, p := range all {
		if err := p.print(out); err != nil {
			return err
		}
	}
	return nil
}

// add joins times and layers by name. Layers with the same name are in the same order in both lists.
func (p *Profile) add(times []tensorrt.LayerTime, layers []tensorrt.Layer) {
	p.Placement = map[string]*Placement{}
	var total time.Duration
	for _, t := range times {
		total += t.Time
	}
	p.Total = microseconds(total)
	share := func(us float64) float64 { return us / max(p.Total, 1e-9) }
	left := slices.Clone(layers)
	for _, t := range times {
		line := LayerTime{Layer: tensorrt.Layer{Name: t.Layer, Device: "GPU"}, Mean: microseconds(t.Time)}
		if at := slices.IndexFunc(left, func(l tensorrt.Layer) bool { return l.Name == t.Layer }); at >= 0 {
			line.Layer = left[at]
			left = slices.Delete(left, at, at+1)
		}
		line.Share = share(line.Mean)
		p.Layers = append(p.Layers, line)
		where := strings.TrimSpace(line.Device + " " + cmp.Or(line.Precision, "unknown"))
		if p.Placement[where] == nil {
			p.Placement[where] = &Placement{}
		}
		p.Placement[where].Layers++
		p.Placement[where].Mean += line.Mean
	}
	for _, g := range p.Placement {
		g.Share = share(g.Mean)
	}
}

func microseconds(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// print writes the layers, slowest first, then the sums by device and precision.
func (p *Profile) print(out io.Writer) error {
	fmt.Fprintf(out, "tensorrt %s on %s, %s, batch %d: %d layers, %.1f us in total\n",
		p.Version, p.Device, p.Precision, p.Batch, len(p.Layers), p.Total)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "mean us\tshare\tdevice\tprecision\tkind\tlayer")
	sorted := slices.SortedStableFunc(slices.Values(p.Layers), func(a, b LayerTime) int { return cmp.Compare(b.Mean, a.Mean) })
	for _, l := range sorted {
		fmt.Fprintf(table, "%.1f\t%.1f %%\t%s\t%s\t%s\t%s\n",
			l.Mean, 100*l.Share, l.Device, cmp.Or(l.Precision, "-"), cmp.Or(l.Type, "-"), l.Name)
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
