package accuracy

import "github.com/edge-infer/edge-infer/cmd/edge-infer/internal/plot"

// mostPoints bounds the scores that are drawn; more would hide each other and make a file of megabytes.
const mostPoints = 2000

// panels show how far two networks agree: precision over recall where there are labels, and the scores of one over the other's.
func (c *Comparer) panels() (all []plot.Panel) {
	share := func(label string) plot.Axis { return plot.Axis{Label: label, Min: 0, Max: 1} }
	if curves := c.Curves(); len(curves) > 0 {
		all = append(all, &plot.Chart{Title: "Both engines", X: share("recall"), Y: share("precision at IoU 0.5"), Series: curves})
	}
	diagonal := plot.Series{X: []float64{0, 1}, Y: []float64{0, 1}, Style: plot.Reference}
	return append(all, &plot.Chart{
		Title: "Scores of boxes that both see", X: share("score of the reference"), Y: share("score of the candidate"),
		Series: []plot.Series{thinned(c.Scores()), diagonal},
	})
}

// thinned keeps every so many-th point where there are too many.
func thinned(s plot.Series) plot.Series {
	every := (len(s.X) + mostPoints - 1) / mostPoints
	if every < 2 {
		return s
	}
	few := s
	few.X, few.Y = nil, nil
	for i := 0; i < len(s.X); i += every {
		few.X, few.Y = append(few.X, s.X[i]), append(few.Y, s.Y[i])
	}
	return few
}
