package quantize

import (
	"fmt"
	"image/color"
	"io"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Curve is precision over recall of one engine, both 0 to 1.
type Curve struct {
	Name              string
	Recall, Precision []float64
}

// ScorePair is the score of one box from both engines.
type ScorePair struct{ Reference, Candidate float32 }

// blue and orange can be told apart by colour-blind readers.
var seriesColours = []color.Color{color.RGBA{R: 0, G: 114, B: 178, A: 255}, color.RGBA{R: 213, G: 94, B: 0, A: 255}, color.RGBA{R: 0, G: 158, B: 115, A: 255}}

// WritePlot draws the agreement of two engines as SVG: precision over recall on the left where there are curves, the candidate's scores over the
// reference's on the right.
func WritePlot(out io.Writer, title string, curves []Curve, scores []ScorePair) error {
	var panels []*plot.Plot
	if len(curves) > 0 {
		p, err := precisionRecall(title, curves)
		if err != nil {
			return fmt.Errorf("plot precision and recall: %w", err)
		}
		panels = append(panels, p)
	}
	p, err := agreement(title, scores)
	if err != nil {
		return fmt.Errorf("plot scores: %w", err)
	}
	panels = append(panels, p)
	canvas := vgsvg.New(vg.Length(len(panels))*12*vg.Centimeter, 12*vg.Centimeter)
	const pad = 0.3 * vg.Centimeter
	tiles := draw.Tiles{Rows: 1, Cols: len(panels), PadX: pad, PadTop: pad, PadBottom: pad, PadLeft: pad, PadRight: pad}
	for i, c := range plot.Align([][]*plot.Plot{panels}, tiles, draw.New(canvas))[0] {
		panels[i].Draw(c)
	}
	if _, err := canvas.WriteTo(out); err != nil {
		return fmt.Errorf("write plot: %w", err)
	}
	return nil
}

// square is an empty plot of 0 to 1 on both axes.
func square(title, x, y string) *plot.Plot {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, x, y
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, 1, 0, 1
	p.Add(plotter.NewGrid())
	return p
}

func precisionRecall(title string, curves []Curve) (*plot.Plot, error) {
	p := square(title, "recall", "precision at IoU 0.5")
	p.Legend.Left = true
	for i, c := range curves {
		points := make(plotter.XYs, len(c.Recall))
		for k := range points {
			points[k] = plotter.XY{X: c.Recall[k], Y: c.Precision[k]}
		}
		line, err := plotter.NewLine(points)
		if err != nil {
			return nil, err
		}
		line.Color, line.Width = seriesColours[i%len(seriesColours)], vg.Points(1.5)
		if i > 0 {
			line.Dashes = []vg.Length{vg.Points(4), vg.Points(2)}
		}
		p.Add(line)
		p.Legend.Add(c.Name, line)
	}
	return p, nil
}

// maxPoints bounds the scores that are drawn; more would hide each other and make a file of megabytes.
const maxPoints = 2000

func agreement(title string, scores []ScorePair) (*plot.Plot, error) {
	p := square(title, "score of the reference", "score of the candidate")
	diagonal, err := plotter.NewLine(plotter.XYs{{X: 0, Y: 0}, {X: 1, Y: 1}})
	if err != nil {
		return nil, err
	}
	diagonal.Color = color.Gray{Y: 128}
	p.Add(diagonal)
	if len(scores) == 0 {
		return p, nil
	}
	every := (len(scores) + maxPoints - 1) / maxPoints
	var points plotter.XYs
	for i := 0; i < len(scores); i += every {
		points = append(points, plotter.XY{X: float64(scores[i].Reference), Y: float64(scores[i].Candidate)})
	}
	scatter, err := plotter.NewScatter(points)
	if err != nil {
		return nil, err
	}
	scatter.Color, scatter.Radius, scatter.Shape = seriesColours[0], vg.Points(1.2), draw.CircleGlyph{}
	p.Add(scatter)
	return p, nil
}
