package zone

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/edge-infer/edge-infer/postprocess"
)

// Analytics follows the tracks of one camera. Set the fields, call Open, then Update once per frame in order of time and Finish at the end,
// from one goroutine. It allocates nothing once it has seen the largest number of objects.
type Analytics struct {
	Config    Config
	Labels    []string // the model's, by class
	Keypoints []string // names of the model's keypoints
	// Width and Height are the source image's in pixels.
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
	byFeet  bool // a zone or line asks for them
	runs    postprocess.Runs

	cut       [2]polygon
	crossings []float64
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
	stays     []stay
	sides     []side
	home      Point // where it stands still
	homeSide  float64
	groundAt  time.Time // when it last moved
	measured  time.Time
	ground    Point // in metres, and on the image: where it was when it last moved
	foot      Point
	seconds   float64
	feet      Point
}

// Open checks the configuration and starts over with counts of 0.
func (a *Analytics) Open() error {
	if err := a.Config.Validate(Names{a.Labels, a.Keypoints}); err != nil {
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

// Resize goes on with images of another size, as after a camera changed its mode. Counts and objects stay; call it between two Updates.
func (a *Analytics) Resize(width, height int) error {
	before := [2]int{a.Width, a.Height}
	a.Width, a.Height = width, height
	if err := a.place(); err != nil {
		a.Width, a.Height = before[0], before[1]
		return fmt.Errorf("resize analytics: %w", err)
	}
	// Where objects were on the old image says nothing about the new one.
	for _, o := range a.objects {
		for i := range o.sides {
			o.sides[i] = side{counted: o.sides[i].counted, pending: o.sides[i].pending}
		}
		o.Path, o.homeSide, o.groundAt = o.Path[:0], 0, time.Time{}
	}
	return nil
}

// anchored is the anchor of a zone or line.
func (a *Analytics) anchored(own, usual Anchor) Anchor {
	a.byFeet = a.byFeet || own == Feet
	return orElse(own, usual)
}

// place puts the configured shapes on the image.
func (a *Analytics) place() error {
	if a.Width < 1 || a.Height < 1 {
		return fmt.Errorf("image of %dx%d", a.Width, a.Height)
	}
	c, width, height := &a.Config, float64(a.Width), float64(a.Height)
	a.plane = nil
	if c.Ground != nil {
		plane, err := c.Ground.plane(c.scaled(c.Ground.Points, width, height))
		if err != nil {
			return fmt.Errorf("ground: %w", err)
		}
		a.plane = plane
	}
	a.zones, a.lines, a.masks, a.byFeet = nil, nil, nil, false
	for i := range c.Zones {
		z := &c.Zones[i]
		outline := c.scaled(z.Points, width, height)
		a.zones = append(a.zones, area{
			outline: outline, bounds: outline.bounds(), anchor: a.anchored(z.Anchor, Bottom), share: z.Share, classes: classSet(z.Labels, a.Labels),
			inertia: orElse(z.Inertia, DefaultInertia), minTime: z.MinTime, loiter: z.Loiter,
		})
	}
	for i := range c.Lines {
		l := &c.Lines[i]
		ends := c.scaled([]Point{l.From, l.To}, width, height)
		length := ends[0].distance(ends[1])
		along := ends[1].minus(ends[0])
		a.lines = append(a.lines, gate{
			from: ends[0], along: Point{along.X / length, along.Y / length}, length: length, anchor: a.anchored(l.Anchor, Centre),
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
		case track.Matched() && track.State != postprocess.Ended:
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
			stays:  make([]stay, len(a.zones)),
			sides:  make([]side, len(a.lines)),
		})
	}
	o := a.spare[len(a.spare)-1]
	a.spare = a.spare[:len(a.spare)-1]
	clear(o.stays)
	clear(o.sides)
	*o = record{
		Object: Object{
			Track: track.ID, Start: track.First, StationarySince: track.First, Heading: -1,
			Path: o.Path[:0], Zones: o.Zones[:0], Entered: o.Entered[:0],
		},
		stays: o.stays, sides: o.sides,
	}
	return o
}

// follow takes an object to the present. Only detections say where an object is: a prediction could run past a line or out of a zone.
func (a *Analytics) follow(o *record, track *postprocess.Track, seq uint64, at time.Time) {
	o.VX, o.VY = track.VX, track.VY
	if o.Class != track.Class {
		o.Class, o.dirty = track.Class, true
	}
	if track.Matched() {
		o.Detection, o.LastSeen = track.Detection, at
		if a.byFeet {
			o.feet = a.feet(&track.Detection)
		}
		o.Detail = nil // it belongs to the frame
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
	if track.Matched() {
		for i := range a.zones {
			a.visit(o, i, &track.Detection, seq, at)
		}
		for i := range a.lines {
			a.cross(o, i, &track.Detection, seq, at)
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

// Object is the object of a track, nil for none that is reported. It is valid until the next Update.
func (a *Analytics) Object(track uint64) *Object {
	at, known := slices.BinarySearchFunc(a.objects, track, func(o *record, id uint64) int { return cmp.Compare(o.Track, id) })
	if !known || !a.objects[at].announced {
		return nil
	}
	return &a.objects[at].Object
}

// MarkChanged has an object's next update tell that more is known of it. Nothing happens for one that is not reported.
func (a *Analytics) MarkChanged(track uint64) {
	at, known := slices.BinarySearchFunc(a.objects, track, func(o *record, id uint64) int { return cmp.Compare(o.Track, id) })
	if known {
		a.objects[at].dirty = true
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
		o.home, o.homeSide, o.StationarySince = foot, float64(o.Width()+o.Height())/2, at
		if o.Stationary {
			o.Stationary, o.dirty = false, true
		}
		return
	}
	if !o.Stationary && at.Sub(o.StationarySince) >= a.stillAfter {
		o.Stationary, o.dirty = true, true
	}
}

// measure takes speed, direction and way over steps long enough that the detector's noise does not matter.
func (a *Analytics) measure(o *record, foot Point, at time.Time) {
	const (
		pace  = 500 * time.Millisecond
		still = 2 * time.Second
	)
	if a.plane == nil {
		return
	}
	ground, ok := a.plane.at(foot)
	if !ok || !finite(ground.X) || !finite(ground.Y) {
		return
	}
	if o.groundAt.IsZero() {
		o.ground, o.foot, o.groundAt, o.measured = ground, foot, at, at
		return
	}
	elapsed := at.Sub(o.measured)
	if elapsed < pace {
		return
	}
	o.measured = at
	o.seconds += elapsed.Seconds()
	took := at.Sub(o.groundAt)
	// Boxes tremble: an object is where it was until it has moved a twentieth of its size, or noise would add up to a way.
	switch {
	case o.foot.distance(foot) >= max(1, float64(o.Width()+o.Height())/2/20):
		way := ground.minus(o.ground)
		metres := math.Hypot(way.X, way.Y)
		o.Speed = metres / took.Seconds()
		o.Distance += metres
		o.Heading = math.Mod(math.Atan2(way.Y, way.X)*180/math.Pi+360, 360)
		o.ground, o.foot, o.groundAt = ground, foot, at
	case took >= still:
		o.Speed, o.groundAt = 0, at.Add(-still) // its next step is one of now
	}
	o.MeanSpeed = o.Distance / o.seconds
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
