package zone

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/edge-infer/edge-infer/postprocess"
)

// Analytics follows the tracks of one camera. Set the fields, call Open, then Update once per frame in order of time and Finish at the end,
// from one goroutine. It allocates nothing once it has seen the largest number of objects.
type Analytics struct {
	Config Config
	Labels []string // the model's, by class
	// Width and Height are the source picture's in pixels.
	Width, Height int

	// Set by Open.
	zones      []area
	lines      []gate
	masks      []polygon
	limits     []classLimits
	plane      *plane
	scores     []float32 // by class
	stillAfter time.Duration
	viewEvery  time.Duration
	far        float64 // pixels between two points of a path

	// The goroutine that calls Update.
	objects []*record // sorted by track
	merged  []*record // the other half of the double buffer
	spare   []*record
	ended   []*record
	day     int
	counts  counts
	result  Result
}

// area is a zone on the picture.
type area struct {
	outline polygon
	anchor  Anchor
	classes []bool
	inertia int
	minTime time.Duration
	loiter  time.Duration
}

// gate is a line on the picture.
type gate struct {
	from      Point
	along     Point // unit vector
	length    float64
	anchor    Anchor
	classes   []bool
	direction Direction
	loose     bool
}

// Result is what one frame brought. It is valid until the next call.
type Result struct {
	// Events in the order in which they happened.
	Events []Event
	// Changes are the counters whose value is not the one of the call before; after Open, and after Recount, all that are not 0.
	Changes []Change
	// Snapshots are the objects whose best view is this frame: encode it now, before the frame is gone.
	Snapshots []*Object
}

// record is an object with what analytics alone needs.
type record struct {
	Object
	announced bool
	dirty     bool
	updated   time.Time
	scores    history
	places    []place
	sides     []side
	home      Point // where it stands still
	homeSide  float64
	groundAt  time.Time
	ground    Point
	metres    float64
	seconds   float64
}

// place is an object's relation to a zone.
type place struct {
	inside   bool // after inertia and minimum time
	loitered bool
	agree    int       // detections in a row that differ from inside
	since    time.Time // of the first of them, then of the entry
}

// side is an object's relation to a line.
type side struct {
	sign    int8 // the side it belongs to: 1 right, -1 left, 0 not known yet
	last    int8 // the side of the latest anchor
	counted bool
	pending Direction // crossed before the object was announced
	point   Point     // latest anchor
	crossed bool      // the latest change of sides was between the ends
}

// Open checks the configuration and starts over with counts of 0.
func (a *Analytics) Open() error {
	if err := a.Config.Check(a.Labels); err != nil {
		return fmt.Errorf("open analytics: %w", err)
	}
	if err := a.place(); err != nil {
		return fmt.Errorf("open analytics: %w", err)
	}
	c := &a.Config
	a.scores = make([]float32, len(a.Labels))
	for class, label := range a.Labels {
		score, ok := c.Objects.Score[label]
		if !ok {
			score = c.Objects.Score[""]
		}
		a.scores[class] = score
	}
	a.stillAfter = orElse(c.Objects.StationaryAfter, DefaultStationaryAfter)
	a.viewEvery = orElse(c.Objects.SnapshotEvery, DefaultSnapshotEvery)
	a.objects, a.merged, a.ended, a.spare, a.day = nil, nil, nil, nil, 0
	a.counts.open(len(a.Labels), len(a.zones), len(a.lines))
	return nil
}

// Resize goes on with pictures of another size, as after a camera changed its mode. Counts and objects stay; call it between two Updates.
func (a *Analytics) Resize(width, height int) error {
	before := [2]int{a.Width, a.Height}
	a.Width, a.Height = width, height
	if err := a.place(); err != nil {
		a.Width, a.Height = before[0], before[1]
		return fmt.Errorf("resize analytics: %w", err)
	}
	// Where objects were on the old picture says nothing about the new one.
	for _, o := range a.objects {
		for i := range o.sides {
			o.sides[i] = side{counted: o.sides[i].counted, pending: o.sides[i].pending}
		}
		o.Path, o.homeSide, o.groundAt = o.Path[:0], 0, time.Time{}
	}
	return nil
}

// place puts the configured shapes on the picture.
func (a *Analytics) place() error {
	if a.Width < 1 || a.Height < 1 {
		return fmt.Errorf("picture of %dx%d", a.Width, a.Height)
	}
	c, width, height := &a.Config, float64(a.Width), float64(a.Height)
	a.plane = nil
	if c.Ground != nil {
		plane, err := newPlane(c.scaled(c.Ground.Points, width, height), c.Ground.Width, c.Ground.Length)
		if err != nil {
			return fmt.Errorf("ground: %w", err)
		}
		a.plane = plane
	}
	a.zones, a.lines, a.masks = nil, nil, nil
	for i := range c.Zones {
		z := &c.Zones[i]
		a.zones = append(a.zones, area{
			outline: c.scaled(z.Points, width, height), anchor: orElse(z.Anchor, Bottom), classes: classSet(z.Labels, a.Labels),
			inertia: orElse(z.Inertia, DefaultInertia), minTime: z.MinTime, loiter: z.Loiter,
		})
	}
	for i := range c.Lines {
		l := &c.Lines[i]
		ends := c.scaled([]Point{l.From, l.To}, width, height)
		length := ends[0].distance(ends[1])
		along := ends[1].minus(ends[0])
		a.lines = append(a.lines, gate{
			from: ends[0], along: Point{along.X / length, along.Y / length}, length: length, anchor: orElse(l.Anchor, Centre),
			classes: classSet(l.Labels, a.Labels), direction: orElse(l.Direction, Both), loose: l.Mode == Loose,
		})
	}
	for _, mask := range c.Filter.Masks {
		a.masks = append(a.masks, c.scaled(mask, width, height))
	}
	a.limits = c.Filter.prepare(a.Labels, width, height)
	a.far = math.Hypot(width, height) / 100
	return nil
}

// Update takes the tracks of a frame, sorted by rising id as the tracker returns them; seq and at are the frame's. Tracks that are missing
// are over.
func (a *Analytics) Update(seq uint64, at time.Time, tracks []postprocess.Track) *Result {
	a.begin(at)
	known := a.objects
	a.objects, a.merged = a.merged[:0], known
	// Both lists are sorted by id, so one pass joins them.
	for i := range tracks {
		track := &tracks[i]
		for len(known) > 0 && known[0].Track < track.ID {
			a.finish(known[0], seq, at)
			known = known[1:]
		}
		var o *record
		switch {
		case len(known) > 0 && known[0].Track == track.ID:
			o, known = known[0], known[1:]
			if track.State == postprocess.Ended {
				a.finish(o, seq, at)
				continue
			}
		case track.Seen() && track.State != postprocess.Ended:
			o = a.create(track)
		default:
			continue
		}
		a.follow(o, track, seq, at)
		a.objects = append(a.objects, o)
	}
	for _, o := range known {
		a.finish(o, seq, at)
	}
	a.counts.report(a)
	return &a.result
}

// Finish ends all objects, for the end of a source or of the program.
func (a *Analytics) Finish(seq uint64, at time.Time) *Result {
	a.begin(at)
	for _, o := range a.objects {
		a.finish(o, seq, at)
	}
	clear(a.objects)
	a.objects = a.objects[:0]
	a.counts.report(a)
	return &a.result
}

func (a *Analytics) begin(at time.Time) {
	clear(a.result.Events)
	clear(a.result.Snapshots)
	a.result.Events, a.result.Changes, a.result.Snapshots = a.result.Events[:0], a.result.Changes[:0], a.result.Snapshots[:0]
	a.spare = append(a.spare, a.ended...)
	clear(a.ended)
	a.ended = a.ended[:0]
	if day := at.YearDay() + 1000*at.Year(); day != a.day {
		if a.day != 0 && a.Config.DailyReset {
			a.counts.reset()
		}
		a.day = day
	}
}

func (a *Analytics) create(track *postprocess.Track) *record {
	if len(a.spare) == 0 {
		a.spare = append(a.spare, &record{
			Object: Object{Path: make([]Point, 0, maxPath), Zones: make([]int, 0, len(a.zones)), Entered: make([]int, 0, len(a.zones))},
			places: make([]place, len(a.zones)),
			sides:  make([]side, len(a.lines)),
		})
	}
	o := a.spare[len(a.spare)-1]
	a.spare = a.spare[:len(a.spare)-1]
	clear(o.places)
	clear(o.sides)
	*o = record{
		Object: Object{
			Track: track.ID, Start: track.First, StillSince: track.First,
			Path: o.Path[:0], Zones: o.Zones[:0], Entered: o.Entered[:0],
		},
		places: o.places, sides: o.sides,
	}
	return o
}

// follow takes an object to the present. Only detections say where an object is: a prediction could run past a line or out of a zone.
func (a *Analytics) follow(o *record, track *postprocess.Track, seq uint64, at time.Time) {
	o.VX, o.VY = track.VX, track.VY
	if o.Class != track.Class {
		o.Class, o.dirty = track.Class, true
	}
	if track.Seen() {
		o.Detection, o.Seen = track.Detection, at
		o.scores.add(track.Score)
		o.TopScore, o.MedianScore = max(o.TopScore, track.Score), o.scores.median()
		foot := Bottom.of(track.Box)
		o.walk(foot, a.far)
		a.rest(o, foot, at)
		a.measure(o, foot, at)
	}
	if !o.announced && track.State == postprocess.Active && o.MedianScore >= a.score(o.Class) {
		o.announced, o.dirty, o.updated = true, false, at
		a.event(Event{Kind: New, Seq: seq, Time: at, Object: &o.Object, Zone: -1, Line: -1})
	}
	if track.Seen() {
		for i := range a.zones {
			a.visit(o, i, seq, at)
		}
		for i := range a.lines {
			a.pass(o, i, seq, at)
		}
		a.view(o, seq, at)
	}
	if !o.announced {
		return
	}
	// Changes wait until the last update is half a second old, so that a flickering object does not flood the subscribers.
	const pause = 500 * time.Millisecond
	since := at.Sub(o.updated)
	if (o.dirty && since >= pause) || (a.Config.Objects.Update > 0 && since >= a.Config.Objects.Update) {
		o.dirty, o.updated = false, at
		a.event(Event{Kind: Update, Seq: seq, Time: at, Object: &o.Object, Zone: -1, Line: -1})
	}
}

func (a *Analytics) score(class int) float32 {
	if class < 0 || class >= len(a.scores) {
		return 0
	}
	return a.scores[class]
}

func (a *Analytics) event(e Event) { a.result.Events = append(a.result.Events, e) }

// rest decides whether the object stays in its place: within a tenth of its size around where it stopped.
func (a *Analytics) rest(o *record, foot Point, at time.Time) {
	size := max(float64(o.Width()+o.Height())/2, o.homeSide)
	if o.homeSide == 0 || o.home.distance(foot) > max(0.1*size, 2) {
		o.home, o.homeSide, o.StillSince = foot, float64(o.Width()+o.Height())/2, at
		if o.Stationary {
			o.Stationary, o.dirty = false, true
		}
		return
	}
	if !o.Stationary && at.Sub(o.StillSince) >= a.stillAfter {
		o.Stationary, o.dirty = true, true
	}
}

// measure takes the speed over steps long enough that the detector's noise does not matter.
func (a *Analytics) measure(o *record, foot Point, at time.Time) {
	const pace = 500 * time.Millisecond
	if a.plane == nil {
		return
	}
	ground, ok := a.plane.at(foot)
	if !ok || !finite(ground.X) || !finite(ground.Y) {
		return
	}
	if o.groundAt.IsZero() {
		o.ground, o.groundAt = ground, at
		return
	}
	elapsed := at.Sub(o.groundAt)
	if elapsed < pace {
		return
	}
	metres := o.ground.distance(ground)
	o.Speed = metres / elapsed.Seconds()
	o.metres += metres
	o.seconds += elapsed.Seconds()
	o.MeanSpeed = o.metres / o.seconds
	o.ground, o.groundAt = ground, at
}

// visit updates an object's relation to a zone.
func (a *Analytics) visit(o *record, zone int, seq uint64, at time.Time) {
	z, p := &a.zones[zone], &o.places[zone]
	inside := has(z.classes, o.Class) && z.outline.contains(z.anchor.of(o.Box))
	if inside == p.inside {
		p.agree = 0
	} else {
		p.agree++
		if p.agree == 1 && !p.inside {
			p.since = at
		}
	}
	switch {
	case !p.inside && p.agree >= z.inertia && at.Sub(p.since) >= z.minTime && o.announced:
		p.inside, p.agree, p.loitered = true, 0, false
		o.Zones = append(o.Zones, zone)
		if !slices.Contains(o.Entered, zone) {
			o.Entered = append(o.Entered, zone)
		}
		o.dirty = true
		a.counts.enter(zone, o.Class)
		a.event(Event{Kind: Enter, Seq: seq, Time: at, Object: &o.Object, Zone: zone, Line: -1})
	case p.inside && p.agree >= z.inertia:
		a.leave(o, zone, seq, at)
	}
	if p.inside && !p.loitered && z.loiter > 0 && at.Sub(p.since) >= z.loiter {
		p.loitered, o.dirty = true, true
		a.event(Event{Kind: Loiter, Seq: seq, Time: at, Object: &o.Object, Zone: zone, Line: -1, Dwell: at.Sub(p.since)})
	}
}

func (a *Analytics) leave(o *record, zone int, seq uint64, at time.Time) {
	p := &o.places[zone]
	dwell := o.Seen.Sub(p.since)
	p.inside, p.agree = false, 0
	number := slices.Index(o.Zones, zone)
	o.Zones = slices.Delete(o.Zones, number, number+1)
	o.dirty = true
	a.counts.leave(zone, dwell)
	a.event(Event{Kind: Leave, Seq: seq, Time: at, Object: &o.Object, Zone: zone, Line: -1, Dwell: dwell})
}

// pass updates an object's relation to a line. The object belongs to a side until its anchor is clearly on the other one, so that noise
// around the line counts nothing; where the anchor changed sides decides whether it passed between the ends.
func (a *Analytics) pass(o *record, line int, seq uint64, at time.Time) {
	g, s := &a.lines[line], &o.sides[line]
	anchor := g.anchor.of(o.Box)
	distance := g.along.cross(anchor.minus(g.from)) // right of the line is positive
	sign := int8(0)
	switch {
	case distance > 0:
		sign = 1
	case distance < 0:
		sign = -1
	}
	if s.sign == 0 {
		s.sign, s.last, s.point = sign, sign, anchor
		return
	}
	if sign != 0 && sign != s.last {
		s.crossed = g.between(s.point, anchor, o.Box)
		s.last = sign
	}
	if sign != 0 {
		s.point = anchor
	}
	clearly := max(2, 0.05*float64(min(o.Width(), o.Height())))
	if sign != 0 && sign != s.sign && math.Abs(distance) >= clearly {
		s.sign = sign
		direction := Out
		if sign > 0 {
			direction = In
		}
		if s.crossed && !s.counted && has(g.classes, o.Class) && (g.direction == Both || g.direction == direction) {
			s.counted, s.pending = true, direction
		}
	}
	if s.pending != "" && o.announced {
		direction := s.pending
		s.pending, o.dirty = "", true
		a.counts.cross(line, o.Class, direction)
		a.event(Event{Kind: Cross, Seq: seq, Time: at, Object: &o.Object, Zone: -1, Line: line, Direction: direction})
	}
}

// between reports whether the way from p to q meets the line between its ends, or for a loose line whether the box does.
func (g *gate) between(p, q Point, box postprocess.Box) bool {
	d0, d1 := g.along.cross(p.minus(g.from)), g.along.cross(q.minus(g.from))
	if d0 == d1 {
		return false
	}
	t := d0 / (d0 - d1)
	meet := Point{p.X + t*(q.X-p.X), p.Y + t*(q.Y-p.Y)}
	at := g.along.dot(meet.minus(g.from))
	reach := 0.0
	if g.loose {
		reach = (math.Abs(g.along.X)*float64(box.Width()) + math.Abs(g.along.Y)*float64(box.Height())) / 2
	}
	return at >= -reach && at <= g.length+reach
}

// view chooses the best snapshot: a high score, a large box, and whole rather than cut by the picture's edge.
func (a *Analytics) view(o *record, seq uint64, at time.Time) {
	quality := float64(o.Score) * math.Sqrt(float64(o.Area()))
	const edge = 2
	if o.X1 < edge || o.Y1 < edge || o.X2 > float32(a.Width)-edge || o.Y2 > float32(a.Height)-edge {
		quality /= 2
	}
	// A tenth better is worth another picture.
	const better = 1.1
	if o.announced && quality > better*o.Best.quality && (o.Best.quality == 0 || at.Sub(o.Best.Time) >= a.viewEvery) {
		o.Best = Snapshot{Seq: seq, Time: at, Detection: o.Detection, quality: quality}
		o.dirty = true
		a.result.Snapshots = append(a.result.Snapshots, &o.Object)
	}
}

// finish ends an object. One that was never announced goes without a word.
func (a *Analytics) finish(o *record, seq uint64, at time.Time) {
	if o.announced {
		for len(o.Zones) > 0 {
			a.leave(o, o.Zones[0], seq, at)
		}
		o.Ended = true
		a.event(Event{Kind: End, Seq: seq, Time: at, Object: &o.Object, Zone: -1, Line: -1})
	}
	a.ended = append(a.ended, o)
}
