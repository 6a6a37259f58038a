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

// profileRuns is how many runs bench --layers takes the mean of.
const profileRuns = 50

// Profile is where a request's time goes on TensorRT.
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

// LayerTime is one layer and its part of the time.
type LayerTime struct {
	tensorrt.Layer
	Mean  float64 `json:"mean_us"`
	Share float64 `json:"share"`
}

// Placement is what runs in one place with one precision.
type Placement struct {
	Layers int     `json:"layers"`
	Mean   float64 `json:"mean_us"`
	Share  float64 `json:"share"`
}

// profile opens the model on TensorRT and times its layers on one batch of the demo belt.
func (b *Bench) profile(ctx context.Context, batch int) (*Profile, error) {
	c := *b.Contenders[0].Config
	switch c.Engine.Backend {
	case config.Auto:
		c.Engine.Backend = tensorrt.Name
	case tensorrt.Name:
	default:
		return nil, config.Usagef("--layers: only TensorRT tells its layers' times, not %s", c.Engine.Backend)
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
	if _, err := predict.Run(n, images...); err != nil { // what the slot has run is timed
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

// Profiles are those of one command, a batch size each.
type Profiles []*Profile

// Profile times the layers of each batch size.
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

// Print writes the profiles for a person.
func (all Profiles) Print(out io.Writer) error {
	for _, p := range all {
		if err := p.print(out); err != nil {
			return err
		}
	}
	return nil
}

// add joins times with what the layers are, by name. Layers of one name come in the same order in both lists.
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

// print writes the slowest layers first, then how many run where and in which precision.
func (p *Profile) print(out io.Writer) error {
	fmt.Fprintf(out, "tensorrt %s on %s, %s, batch %d: %d layers, %.1f us layer by layer\n",
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
