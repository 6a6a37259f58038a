package zone

import (
	"math"

	"github.com/edge-infer/edge-infer/postprocess"
)

// MapStats computes the statistics of a network's segmentation or depth map for the whole image and each zone of a camera. The zero value
// is ready; it allocates nothing more for maps of the same size.
type MapStats struct {
	// Config provides the zones.
	Config Config
	// Labels are the class names of segmentation maps; Depth selects depth maps.
	Labels []string
	Depth  bool

	stats         []postprocess.PixelStats // of the whole image, then of each zone
	spans         [][]postprocess.Span     // cells of each of stats
	width, height int                      // image size of spans
	grid          postprocess.DenseMap     // grid of spans, without its cells
}

// Measure computes the statistics of the map of an image of the given size.
func (s *MapStats) Measure(m *postprocess.DenseMap, width, height int) {
	grid := *m
	grid.Classes, grid.Depths = nil, nil
	if s.spans == nil || width != s.width || height != s.height || !sameGrid(&grid, &s.grid) {
		s.width, s.height, s.grid = width, height, grid
		s.assignCells()
	}
	for i := range s.stats {
		s.stats[i].Measure(m, s.spans[i])
	}
}

func sameGrid(a, b *postprocess.DenseMap) bool {
	return a.Width == b.Width && a.Height == b.Height && a.X == b.X && a.Y == b.Y && a.StepX == b.StepX && a.StepY == b.StepY
}

// assignCells finds the cells of each zone: those whose centres are inside.
func (s *MapStats) assignCells() {
	zones := s.Config.Zones
	s.stats, s.spans = make([]postprocess.PixelStats, 1+len(zones)), make([][]postprocess.Span, 1+len(zones))
	s.spans[0] = s.grid.AppendSpans(nil)
	var crossings []float64
	for i := range zones {
		outline := s.Config.scaled(zones[i].Points, float64(s.width), float64(s.height))
		turned := make(polygon, len(outline)) // transposed, because crossings uses vertical lines
		for j, p := range outline {
			turned[j] = Point{X: p.Y, Y: p.X}
		}
		for row := range s.grid.Height {
			_, y := s.grid.Centre(0, row)
			crossings = turned.crossings(crossings[:0], float64(y))
			for j := 0; j+1 < len(crossings); j += 2 {
				from, to := s.firstColumn(crossings[j]), s.firstColumn(crossings[j+1])
				if from < to {
					s.spans[1+i] = append(s.spans[1+i], postprocess.Span{From: row*s.grid.Width + from, To: row*s.grid.Width + to})
				}
			}
		}
	}
}

// firstColumn returns the first column whose centre is not left of x.
func (s *MapStats) firstColumn(x float64) int {
	column := math.Ceil((x-0.5)*float64(s.grid.StepX) + float64(s.grid.X))
	return int(min(max(column, 0), float64(s.grid.Width)))
}

// Image returns the statistics of the whole map, nil before the first Measure. It is valid until the next Measure, as are those of zones.
func (s *MapStats) Image() *postprocess.PixelStats {
	if len(s.stats) == 0 {
		return nil
	}
	return &s.stats[0]
}

// Zone returns the statistics of a zone by its index in the configuration, nil before the first Measure.
func (s *MapStats) Zone(number int) *postprocess.PixelStats {
	if len(s.stats) == 0 {
		return nil
	}
	return &s.stats[1+number]
}
