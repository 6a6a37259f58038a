package accuracy

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/plot"
)

// listed is the largest number of classes that are all named beside their curves. Of more, as many with the lowest values are.
const listed = 16

// WritePlots draws precision and recall, F1 over confidence and the confusion matrix into v.Plots, if set.
func (v *Validate) WritePlots(r *Report) error {
	if v.Plots == "" {
		return nil
	}
	if r.Curves == nil || r.Confusion == nil {
		return errors.New("--plots: nothing to draw, curves and confusion need labelled objects")
	}
	subtitle := fmt.Sprintf("%s, %s %s, %d images", filepath.Base(r.Model), r.Backend, r.Precision, r.Images)
	return plot.Write(v.Plots, []plot.Figure{
		{Name: "precision-recall", Drawing: r.Curves.precisionRecall(subtitle)},
		{Name: "f1", Drawing: r.Curves.f1(subtitle)},
		{Name: "confusion", Drawing: r.Confusion.matrix(subtitle)},
	})
}

func (c *Curves) precisionRecall(subtitle string) *plot.Chart {
	chart := &plot.Chart{
		Title: "Precision and recall by class", Subtitle: subtitle + ", IoU 0.5",
		X: plot.Values("recall", 1), Y: plot.Values("precision", 1), Columns: []string{"AP50"},
	}
	fill(chart, c.PrecisionRecall, func(values []float64) (float64, []string) {
		area := 0.0
		for _, precision := range values {
			area += precision / float64(len(values))
		}
		return area, []string{fmt.Sprintf("%.3f", area)}
	})
	return chart
}

func (c *Curves) f1(subtitle string) *plot.Chart {
	chart := &plot.Chart{
		Title: "F1 over confidence", Subtitle: subtitle + ", IoU 0.5",
		X: plot.Values("confidence", 1), Y: plot.Values("F1", 1), Columns: []string{"best F1", "at confidence"},
	}
	fill(chart, c.F1, func(values []float64) (float64, []string) {
		best := slices.Max(values)
		at := float64(slices.Index(values, best)) / (steps - 1)
		return best, []string{fmt.Sprintf("%.3f", best), fmt.Sprintf("%.2f", at)}
	})
	return chart
}

// fill adds the curves, the mean last and on top. summary returns what classes are ordered by, and the values of the table.
func fill(chart *plot.Chart, curves []Curve, summary func([]float64) (float64, []string)) {
	steps := unitSteps()
	classes := curves[1:]
	order := make([]float64, len(classes))
	for i, curve := range classes {
		order[i], _ = summary(curve.Values)
	}
	limit := 2.0 // above all values
	if len(classes) > listed {
		limit = slices.Sorted(slices.Values(order))[listed]
		chart.Note = "grey: classes that are not listed, all of them with higher values"
	}
	for i, curve := range classes {
		line := plot.Line{X: steps, Y: curve.Values}
		if order[i] < limit {
			line.Name = curve.Label
			line.Color = named(chart.Lines)
			_, line.Values = summary(curve.Values)
		}
		chart.Lines = append(chart.Lines, line)
	}
	slices.SortStableFunc(chart.Lines, func(a, b plot.Line) int { return cmp.Compare(min(len(a.Name), 1), min(len(b.Name), 1)) })
	mean := plot.Line{Name: "mean of all classes", X: steps, Y: curves[0].Values, Bold: true}
	_, mean.Values = summary(curves[0].Values)
	chart.Lines = append(chart.Lines, mean)
}

func named(lines []plot.Line) (count int) {
	for i := range lines {
		if lines[i].Name != "" {
			count++
		}
	}
	return count
}

// unitSteps returns the positions of a curve's values.
func unitSteps() []float64 {
	x := make([]float64, steps)
	for i := range x {
		x[i] = float64(i) / (steps - 1)
	}
	return x
}

func (c *Confusion) matrix(subtitle string) *plot.Matrix {
	return &plot.Matrix{
		Title:    "Confusion matrix",
		Subtitle: fmt.Sprintf("%s, confidence %.2f, IoU %.1f; colour: share of the row", subtitle, c.Confidence, c.IoU),
		Rows:     "labelled as", Columns: "detected as",
		Names: append(slices.Clone(c.Labels), "background"), Counts: c.Counts,
	}
}
