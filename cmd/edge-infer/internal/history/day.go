package history

import (
	"encoding/json"
	"math"
	"time"
)

// The heat map's cells lie over the whole image, row by row.
const (
	Columns = 64
	Rows    = 36
)

// Day holds the counts of one camera for one day of the local calendar.
type Day struct {
	Camera string          `json:"camera"`
	Day    string          `json:"day"`   // as in 2026-11-22
	Hours  map[int]*Counts `json:"hours"` // by hour of the day; those in which nothing was counted are left out
	Heat   *Heat           `json:"heat"`
}

// Counts are the counts of some period.
type Counts struct {
	Objects map[string]int   `json:"objects"` // that came, by label
	Zones   map[string]*Zone `json:"zones"`
	Lines   map[string]*Line `json:"lines"`
	Way     Way              `json:"way"`
}

// Zone holds the counts of a zone.
type Zone struct {
	Entered int     `json:"entered"`
	Visits  int     `json:"visits"`  // stays that are over
	Dwell   float64 `json:"dwell_s"` // of all of these together, in seconds
}

// Line is how many have crossed a line.
type Line struct {
	In  int `json:"in"`
	Out int `json:"out"`
}

// Way sums up the movement of ended objects; only with a calibrated ground plane.
type Way struct {
	Objects  int     `json:"objects"`
	Distance float64 `json:"distance_m"` // of all together, in metres
	Time     float64 `json:"time_s"`     // that they were there, together
}

// Heat is the number of seconds that objects were in each cell of the image, by the middle of their lower edge. Two objects in one cell
// count twice.
type Heat [Columns * Rows]float32

// MarshalJSON writes hundredths of a second, which are as exact as frames are.
func (h *Heat) MarshalJSON() ([]byte, error) {
	rounded := make([]float64, len(h))
	for i, seconds := range h {
		rounded[i] = math.Round(100*float64(seconds)) / 100
	}
	return json.Marshal(rounded)
}

// NewDay returns a day without counts.
func NewDay(camera, day string) *Day {
	return &Day{Camera: camera, Day: day, Hours: map[int]*Counts{}, Heat: new(Heat)}
}

// NewCounts returns counts of nothing.
func NewCounts() *Counts {
	return &Counts{Objects: map[string]int{}, Zones: map[string]*Zone{}, Lines: map[string]*Line{}}
}

// Hour returns the counts of an hour, adding them if necessary.
func (d *Day) Hour(hour int) *Counts {
	c := d.Hours[hour]
	if c == nil {
		c = NewCounts()
		d.Hours[hour] = c
	}
	return c
}

// Entry returns an entry of a map, adding it if necessary.
func Entry[T any](all map[string]*T, name string) *T {
	one := all[name]
	if one == nil {
		one = new(T)
		all[name] = one
	}
	return one
}

// Add adds the seconds of another part of the same day.
func (h *Heat) Add(more *Heat) {
	for i, seconds := range more {
		h[i] += seconds
	}
}

// Add adds other counts of the same period.
func (c *Counts) Add(more *Counts) {
	for label, n := range more.Objects {
		c.Objects[label] += n
	}
	for name, z := range more.Zones {
		to := Entry(c.Zones, name)
		to.Entered, to.Visits, to.Dwell = to.Entered+z.Entered, to.Visits+z.Visits, to.Dwell+z.Dwell
	}
	for name, l := range more.Lines {
		to := Entry(c.Lines, name)
		to.In, to.Out = to.In+l.In, to.Out+l.Out
	}
	to, way := &c.Way, more.Way
	to.Objects, to.Distance, to.Time = to.Objects+way.Objects, to.Distance+way.Distance, to.Time+way.Time
}

// Minute holds the counts of one camera for one minute.
type Minute struct {
	Camera string
	Minute int64 // since 1970
	Counts *Counts
}

// DayHeat is a part of the heat map of one camera for one day.
type DayHeat struct {
	Camera, Day string
	Heat        *Heat
}

// DayOf returns the day of the local calendar that a time is in. Days sort by date.
func DayOf(t time.Time) string { return t.Local().Format(time.DateOnly) }
