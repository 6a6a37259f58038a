package payload

import (
	"encoding/base64"
	"strconv"
)

// Map is a dense result: classes, or depths if Unit is set.
type Map struct {
	Unit  string // of depths
	Whole Region
	Zones []Region
	Grid  Grid
}

// Region is the summary of a map in a part of the image.
type Region struct {
	Name   string  // of the zone
	Shares []Share // of the area, largest first
	// Known means that the depths below are set.
	Known             bool
	Low, Median, High float64
}

// Share is the share of a class in an area.
type Share struct {
	Label string
	Class int
	Share float64 // 0 to 1
}

// Grid is a map reduced to Width x Height cells of equal size that cover the image. It is omitted if it has no cells.
type Grid struct {
	Width, Height int
	Classes       []Area
	// Low and High are the depths that levels 1 and 255 stand for; between them levels are linear, and 0 is a depth that is not known.
	Low, High float64
	Levels    []byte // row after row
}

// Area is where a class is on a grid.
type Area struct {
	Label  string
	Class  int
	Counts []byte // COCO's compressed run-length encoding of the grid
}

// AppendField appends the field with a comma before it: semantic or depth.
func (m *Map) AppendField(buf []byte) []byte {
	if m.Unit != "" {
		return m.appendJSON(append(buf, `,"depth":`...))
	}
	return m.appendJSON(append(buf, `,"semantic":`...))
}

// MarshalJSON is the map as messages have it.
func (m *Map) MarshalJSON() ([]byte, error) { return m.appendJSON(nil), nil }

func (m *Map) appendJSON(buf []byte) []byte {
	buf = append(buf, '{')
	if m.Unit != "" {
		buf = append(buf, `"unit":`...)
		buf = append(AppendString(buf, m.Unit), ',')
	}
	buf = m.Whole.appendJSON(buf, m.Unit != "")
	if len(m.Zones) > 0 {
		buf = append(buf, `,"zones":{`...)
		for i := range m.Zones {
			buf = AppendString(separate(buf, i), m.Zones[i].Name)
			buf = append(m.Zones[i].appendJSON(append(buf, ':', '{'), m.Unit != ""), '}')
		}
		buf = append(buf, '}')
	}
	if m.Grid.Width > 0 {
		buf = m.Grid.appendJSON(append(buf, `,"grid":`...), m.Unit != "")
	}
	return append(buf, '}')
}

// appendJSON appends the fields of an object without its braces. Depths that nothing is known of are null.
func (r *Region) appendJSON(buf []byte, depths bool) []byte {
	if depths {
		for i, v := range [...]float64{r.Low, r.Median, r.High} {
			buf = append(buf, [...]string{`"min":`, `,"median":`, `,"max":`}[i]...)
			if r.Known {
				buf = AppendDecimal(buf, v)
			} else {
				buf = append(buf, `null`...)
			}
		}
		return buf
	}
	buf = append(buf, `"classes":[`...)
	for i := range r.Shares {
		s := &r.Shares[i]
		buf = appendClass(separate(buf, i), s.Label, s.Class)
		buf = append(buf, `,"share":`...)
		buf = append(AppendDecimal(buf, s.Share), '}')
	}
	return append(buf, ']')
}

// appendClass begins an object of a class.
func appendClass(buf []byte, label string, class int) []byte {
	buf = AppendString(append(buf, `{"label":`...), label)
	return strconv.AppendInt(append(buf, `,"class":`...), int64(class), 10)
}

func (g *Grid) appendJSON(buf []byte, depths bool) []byte {
	buf = strconv.AppendInt(append(buf, `{"size":[`...), int64(g.Height), 10)
	buf = strconv.AppendInt(append(buf, ','), int64(g.Width), 10)
	buf = append(buf, ']')
	if depths {
		buf = AppendDecimal(append(buf, `,"low":`...), g.Low)
		buf = AppendDecimal(append(buf, `,"high":`...), g.High)
		buf = append(buf, `,"levels":"`...)
		return append(base64.StdEncoding.AppendEncode(buf, g.Levels), '"', '}')
	}
	buf = append(buf, `,"classes":[`...)
	for i := range g.Classes {
		a := &g.Classes[i]
		buf = appendClass(separate(buf, i), a.Label, a.Class)
		buf = append(appendCounts(append(buf, `,"counts":"`...), a.Counts), '"', '}')
	}
	return append(buf, ']', '}')
}
