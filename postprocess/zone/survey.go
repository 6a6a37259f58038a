package zone

import (
	"math"

	"github.com/edge-infer/edge-infer/postprocess"
)

// MapStats says what a network's map shows in each zone of a camera. The zero value is ready; once it has seen a map of a size it allocates
// nothing for others of that size.
type MapStats struct {
	// Config has the zones; what else it says is of objects.
	Config Config
	// Labels are the classes' names, for networks that tell classes; Depth says that the network's maps are of depths.
	Labels []string
	Depth  bool

	stats         []postprocess.PixelStats // of the whole image, then of each zone
	spans         [][]postprocess.Span     // by reading
	width, height int                      // of the image that parts are for
	grid          postprocess.DenseMap     // that parts are of, without its cells
}

// Measure reads the map of an image of that size.
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

// assignCells finds the cells of each zone: those whose centres lie inside.
func (s *MapStats) assignCells() {
	zones := s.Config.Zones
	s.stats, s.spans = make([]postprocess.PixelStats, 1+len(zones)), make([][]postprocess.Span, 1+len(zones))
	s.spans[0] = s.grid.AppendSpans(nil)
	var crossings []float64
	for i := range zones {
		outline := s.Config.scaled(zones[i].Points, float64(s.width), float64(s.height))
		turned := make(polygon, len(outline)) // crossings are along upright lines
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

// firstColumn is the first one whose centre does not lie left of a place on the image.
func (s *MapStats) firstColumn(x float64) int {
	column := math.Ceil((x-0.5)*float64(s.grid.StepX) + float64(s.grid.X))
	return int(min(max(column, 0), float64(s.grid.Width)))
}

// Image is what the map shows altogether; nil before the first Take. It and those of zones are valid until the next Take.
func (s *MapStats) Image() *postprocess.PixelStats {
	if len(s.stats) == 0 {
		return nil
	}
	return &s.stats[0]
}

// Zone is what the map shows in a zone of the configuration, by its number; nil before the first Take.
func (s *MapStats) Zone(number int) *postprocess.PixelStats {
	if len(s.stats) == 0 {
		return nil
	}
	return &s.stats[1+number]
}
