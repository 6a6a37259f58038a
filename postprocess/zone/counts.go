package zone

import "time"

// Counter identifies what is counted.
type Counter string

// The counters.
const (
	Present  Counter = "present"  // objects on the image, by label
	Occupied Counter = "occupied" // objects in a zone, by label
	Entered  Counter = "entered"  // entries into a zone since the last reset, by label
	Inward   Counter = "in"       // crossings of a line since the last reset, by label
	Outward  Counter = "out"
)

// Change is a new value of a counter.
type Change struct {
	Counter Counter
	Index   int // zone or line in the configuration, -1 for Present
	Class   int
	Value   int
}

// ZoneCount holds the counts of a zone. Slices are by class.
type ZoneCount struct {
	Occupied, Entered []int
	// Visits is the number of completed stays, Dwell their total duration.
	Visits int
	Dwell  time.Duration
}

// LineCount holds the counts of a line by class.
type LineCount struct{ In, Out []int }

// maxUnreported is how long an object is present without a reported detection, as long as the tracker keeps a lost track. Time without
// Updates, when nothing moves, counts as maxUpdateStep.
const (
	maxUnreported = time.Second
	maxUpdateStep = 250 * time.Millisecond
)

// counts keeps the current and the last reported values, one row per counter.
type counts struct {
	classes, zones, lines int
	current, reported     []int
	visits                []int
	dwell                 []time.Duration
}

func (c *counts) open(classes, zones, lines int) {
	*c = counts{classes: classes, zones: zones, lines: lines}
	rows := 1 + 2*zones + 2*lines
	c.current, c.reported = make([]int, rows*classes), make([]int, rows*classes)
	c.visits, c.dwell = make([]int, zones), make([]time.Duration, zones)
}

// The rows: present, then occupied and entered of each zone, then in and out of each line.
func (c *counts) row(i int) []int    { return c.current[i*c.classes : (i+1)*c.classes] }
func (c *counts) occupied(z int) int { return 1 + 2*z }
func (c *counts) inward(l int) int   { return 1 + 2*c.zones + 2*l }

func (c *counts) add(row, class int) {
	if class < 0 || class >= maxUnnamed {
		return
	}
	if class >= c.classes {
		c.grow(class + 1)
	}
	c.current[row*c.classes+class]++
}

// maxUnnamed bounds the class numbers beyond the labels that are counted.
const maxUnnamed = 1 << 12

// grow makes room for more classes than there are labels.
func (c *counts) grow(classes int) {
	more := func(old []int) []int {
		wide := make([]int, (1+2*c.zones+2*c.lines)*classes)
		for row := range 1 + 2*c.zones + 2*c.lines {
			copy(wide[row*classes:], old[row*c.classes:(row+1)*c.classes])
		}
		return wide
	}
	c.current, c.reported = more(c.current), more(c.reported)
	c.classes = classes
}

func (c *counts) enter(zone, class int) { c.add(c.occupied(zone)+1, class) }

func (c *counts) leave(zone int, dwell time.Duration) {
	c.visits[zone]++
	c.dwell[zone] += dwell
}

func (c *counts) cross(line, class int, direction Direction) {
	row := c.inward(line)
	if direction == Out {
		row++
	}
	c.add(row, class)
}

// reset resets the cumulative counters, not the numbers of present objects.
func (c *counts) reset() {
	for z := range c.zones {
		clear(c.row(c.occupied(z) + 1))
	}
	for l := range c.lines {
		clear(c.row(c.inward(l)))
		clear(c.row(c.inward(l) + 1))
	}
	clear(c.visits)
	clear(c.dwell)
}

// report recounts the present objects, because classes may have changed, and lists the counters that differ from the last report.
func (c *counts) report(a *Analytics) {
	clear(c.row(0))
	for z := range c.zones {
		clear(c.row(c.occupied(z)))
	}
	for _, o := range a.objects {
		// An object that is not reported counts for a while: it is occluded, and the number would flicker. Weak boxes, which may keep
		// its track alive for longer, do not count.
		if !o.announced || o.unreported > maxUnreported || o.Score < a.Confidence {
			continue
		}
		c.add(0, o.Class)
		for _, z := range o.Zones {
			c.add(c.occupied(z), o.Class)
		}
	}
	for i, value := range c.current {
		if value == c.reported[i] {
			continue
		}
		c.reported[i] = value
		row, class := i/c.classes, i%c.classes
		change := Change{Counter: Present, Index: -1, Class: class, Value: value}
		switch at := row - 1; {
		case at < 0:
		case at < 2*c.zones:
			change.Counter, change.Index = [...]Counter{Occupied, Entered}[at%2], at/2
		default:
			at -= 2 * c.zones
			change.Counter, change.Index = [...]Counter{Inward, Outward}[at%2], at/2
		}
		a.result.Changes = append(a.result.Changes, change)
	}
}

// Reset resets line and entry counts; the next Update reports the change.
func (a *Analytics) Reset() { a.counts.reset() }

// Present returns the number of present objects by class. The slice is valid until the next Update, as are those of Zone and Line.
func (a *Analytics) Present() []int { return a.counts.row(0) }

// Zone returns the counts of a zone by its index in the configuration.
func (a *Analytics) Zone(zone int) ZoneCount {
	row := a.counts.occupied(zone)
	return ZoneCount{Occupied: a.counts.row(row), Entered: a.counts.row(row + 1), Visits: a.counts.visits[zone], Dwell: a.counts.dwell[zone]}
}

// Line returns the counts of a line by its index in the configuration.
func (a *Analytics) Line(line int) LineCount {
	row := a.counts.inward(line)
	return LineCount{In: a.counts.row(row), Out: a.counts.row(row + 1)}
}
