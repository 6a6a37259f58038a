package report

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/edge-infer/edge-infer/mqtt/payload"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/zone"
)

// Maps converts segmentation and depth maps to payloads. It reuses its buffers from frame to frame and must be used by one goroutine at a
// time.
type Maps struct {
	// Side is the number of cells of the longer side of the grid in messages; 0 for no grid.
	Side int
	// Unit is the unit of depths, Relative if empty.
	Unit string

	message payload.Map
	shares  []payload.Share
	areas   []payload.Area
	counts  []byte
	runs    postprocess.Runs
	levels  []byte
	cells   []int // index into the map by cell of the grid; -1 for none
}

// minShare is the least share that rounds to 0.001, the resolution of messages.
const minShare = 0.0005

// Of converts a map and its statistics for an image of this size. The result is valid until the next call.
func (d *Maps) Of(m *postprocess.DenseMap, stats *zone.MapStats, labels []string, width, height int) *payload.Map {
	d.shares = d.shares[:0]
	to := &d.message
	to.Unit, to.Zones = "", to.Zones[:0]
	if m.Depths != nil {
		to.Unit = cmp.Or(d.Unit, Relative)
	}
	to.Whole = d.region("", stats.Image(), labels)
	for i := range stats.Config.Zones {
		to.Zones = append(to.Zones, d.region(stats.Config.Zones[i].Name, stats.Zone(i), labels))
	}
	to.Grid = payload.Grid{}
	if d.Side > 0 {
		d.grid(m, stats.Image(), labels, width, height)
	}
	return to
}

// The units of depths.
const (
	Relative = "relative" // without a scale
	Metres   = "m"
)

func (d *Maps) region(name string, r *postprocess.PixelStats, labels []string) payload.Region {
	first := len(d.shares)
	for class, share := range r.Shares {
		if share >= minShare {
			d.shares = append(d.shares, payload.Share{Label: postprocess.Label(labels, class), Class: class, Share: float64(share)})
		}
	}
	shares := slices.Clip(d.shares[first:])
	slices.SortStableFunc(shares, func(a, b payload.Share) int { return cmp.Compare(b.Share, a.Share) })
	return payload.Region{
		Name: name, Shares: shares, Known: r.Known > 0, Low: float64(r.Low), Median: float64(r.Median), High: float64(r.High),
	}
}

// grid fills the grid of d.message with the map's values at the centres of the cells.
func (d *Maps) grid(m *postprocess.DenseMap, whole *postprocess.PixelStats, labels []string, width, height int) {
	g := &d.message.Grid
	g.Width, g.Height = d.sampleGrid(m, d.Side, width, height)
	if m.Depths != nil {
		g.Low, g.High = float64(whole.Low), float64(whole.High)
		d.levels = d.depths(d.levels[:0], m, whole)
		g.Levels = d.levels
		return
	}
	d.areas, d.counts = d.areas[:0], d.counts[:0]
	for class, share := range whole.Shares {
		if share == 0 {
			continue
		}
		d.runs = d.runs[:0]
		length, inside := uint32(0), false
		for x := range g.Width { // column by column, as COCO's run-length encoding requires
			for y := range g.Height {
				cell := d.cells[y*g.Width+x]
				if is := cell >= 0 && int(m.Classes[cell]) == class; is != inside {
					d.runs, length, inside = append(d.runs, length), 0, is
				}
				length++
			}
		}
		d.runs = append(d.runs, length)
		if len(d.runs) == 1 && !inside { // too small for the grid
			continue
		}
		first := len(d.counts)
		d.counts = d.runs.AppendCounts(d.counts)
		d.areas = append(d.areas, payload.Area{Label: postprocess.Label(labels, class), Class: class, Counts: slices.Clip(d.counts[first:])})
	}
	g.Classes = d.areas
}

// sampleGrid computes the map index of each cell of the grid.
func (d *Maps) sampleGrid(m *postprocess.DenseMap, side, width, height int) (columns, rows int) {
	columns, rows = Grid(side, width, height)
	d.cells = d.cells[:0]
	for y := range rows {
		for x := range columns {
			x, y := (2*x+1)*width/(2*columns), (2*y+1)*height/(2*rows)
			cell := -1
			if m.Contains(x, y) {
				column, row := m.CellAt(x, y)
				cell = row*m.Width + column
			}
			d.cells = append(d.cells, cell)
		}
	}
	return columns, rows
}

// depths appends the depth levels of the cells.
func (d *Maps) depths(dst []byte, m *postprocess.DenseMap, whole *postprocess.PixelStats) []byte {
	for _, cell := range d.cells {
		level := uint8(0)
		if cell >= 0 {
			level = Level(m.Depths[cell], whole.Low, whole.High)
		}
		dst = append(dst, level)
	}
	return dst
}

// Cells appends the map of an image of this size to dst as a grid whose longer side has side cells: class numbers, postprocess.NoClass for
// none, or depth levels.
func (d *Maps) Cells(dst []byte, m *postprocess.DenseMap, stats *zone.MapStats, side, width, height int) (cells []byte, columns, rows int) {
	columns, rows = d.sampleGrid(m, side, width, height)
	if m.Depths != nil {
		return d.depths(dst, m, stats.Image()), columns, rows
	}
	for _, cell := range d.cells {
		class := uint8(postprocess.NoClass)
		if cell >= 0 {
			class = m.Classes[cell]
		}
		dst = append(dst, class)
	}
	return dst, columns, rows
}

// Grid returns the size of a grid whose longer side has side cells, for an image of this size.
func Grid(side, width, height int) (columns, rows int) {
	longer := max(width, height, 1)
	return max(1, (side*width+longer/2)/longer), max(1, (side*height+longer/2)/longer)
}

// Level maps a depth between low and high to 1..255; 0 for NaN and infinity.
func Level(depth, low, high float32) uint8 {
	switch {
	case depth-depth != 0:
		return 0
	case !(high > low):
		return 1
	}
	return uint8(1.5 + 254*min(max((depth-low)/(high-low), 0), 1))
}

// AppendMap appends the shares or depths of a whole image, as "road 0.412, car 0.031" or "0.4 to 12.3, median 3.1 m".
func AppendMap(line []byte, m *payload.Map) []byte {
	if m.Unit != "" {
		if !m.Whole.Known {
			return append(line, "no depth"...)
		}
		line = append(strconv.AppendFloat(line, m.Whole.Low, 'g', 4, 32), " to "...)
		line = append(strconv.AppendFloat(line, m.Whole.High, 'g', 4, 32), ", median "...)
		line = append(strconv.AppendFloat(line, m.Whole.Median, 'g', 4, 32), ' ')
		return append(line, m.Unit...)
	}
	if len(m.Whole.Shares) == 0 {
		return append(line, "nothing"...)
	}
	for i := range m.Whole.Shares {
		if i > 0 {
			line = append(line, ", "...)
		}
		line = append(append(line, m.Whole.Shares[i].Label...), ' ')
		line = strconv.AppendFloat(line, m.Whole.Shares[i].Share, 'f', 3, 64)
	}
	return line
}
