package infer

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"text/tabwriter"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/engine"
)

// Differences say how far the outputs of two engines are apart.
type Differences struct {
	Version   int          `json:"v"`
	Model     string       `json:"model"`
	Backend   string       `json:"backend"`
	Reference string       `json:"reference"`
	Outputs   []Difference `json:"outputs"`
}

// Difference is that of one output of float32.
type Difference struct {
	Name  string  `json:"name"`
	Shape []int64 `json:"shape"`
	Max   float64 `json:"max_error"`
	Mean  float64 `json:"mean_error"`
	// PSNR is the peak signal-to-noise ratio in dB, the peak being the reference's range; absent when there is no difference.
	PSNR *float64 `json:"psnr_db,omitempty"`
}

// Against runs the model twice, the second time as that configuration has it, and compares the outputs.
func (r *Tensors) Against(ctx context.Context, reference *config.Config) (*Differences, error) {
	all := &Differences{Version: 1}
	var seen []engine.Tensor
	err := r.compute(ctx, func(model *engine.Model, result *engine.Result) error {
		all.Model, all.Backend = model.Path, model.Backend
		for i := range result.Outputs {
			out := result.Outputs[i]
			out.Shape, out.Data = slices.Clone(out.Shape), slices.Clone(out.Data)
			seen = append(seen, out)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	other := *r
	other.Config = reference
	err = other.compute(ctx, func(model *engine.Model, result *engine.Result) error {
		all.Reference = model.Backend
		for i := range seen {
			at := slices.IndexFunc(result.Outputs, func(out engine.Tensor) bool { return out.Name == seen[i].Name })
			if at < 0 || !slices.Equal(seen[i].Shape, result.Outputs[at].Shape) {
				return fmt.Errorf("output %q %v is none of the reference's", seen[i].Name, seen[i].Shape)
			}
			a, b := seen[i].Float32s(), result.Outputs[at].Float32s()
			if a == nil || b == nil {
				return fmt.Errorf("output %q is %v, float32 is compared", seen[i].Name, seen[i].Type)
			}
			all.Outputs = append(all.Outputs, difference(seen[i].Name, seen[i].Shape, a, b))
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reference: %w", err)
	}
	return all, nil
}

func difference(name string, shape []int64, seen, reference []float32) Difference {
	d := Difference{Name: name, Shape: shape}
	low, high, squares := math.Inf(1), math.Inf(-1), 0.0
	for i, want := range reference {
		same, finite := seen[i] == want || seen[i] != seen[i] && want != want, !math.IsInf(float64(want), 0) && want == want
		if finite {
			low, high = min(low, float64(want)), max(high, float64(want))
		}
		if same {
			continue
		}
		// What one has as a number and the other has not is as far away as numbers can be.
		away := math.Abs(float64(seen[i]) - float64(want))
		if math.IsNaN(away) || math.IsInf(away, 0) {
			away = math.MaxFloat32
		}
		d.Max = max(d.Max, away)
		d.Mean += away / float64(len(reference))
		squares += away * away / float64(len(reference))
	}
	if squares > 0 && high > low {
		ratio := 20*math.Log10(high-low) - 10*math.Log10(squares)
		d.PSNR = &ratio
	}
	return d
}

// Print writes the differences for a person.
func (d *Differences) Print(out io.Writer) error {
	fmt.Fprintf(out, "%s on %s against %s\n", d.Model, d.Backend, d.Reference)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "output\tshape\tmax error\tmean error\tPSNR")
	for _, o := range d.Outputs {
		psnr := "no difference"
		if o.PSNR != nil {
			psnr = fmt.Sprintf("%.1f dB", *o.PSNR)
		}
		fmt.Fprintf(table, "%s\t%s\t%.3g\t%.3g\t%s\n", o.Name, shapeText(o.Shape), o.Max, o.Mean, psnr)
	}
	return table.Flush()
}
