package zone

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/edge-infer/edge-infer/postprocess"
)

// Analytics processes the tracks of one camera. Set the fields, call Open, then Update once per frame in order of time and Finish at the
// end, all from one goroutine. It allocates nothing once it has seen the largest number of objects.
type Analytics struct {
	Config    Config
	Labels    []string // class names of the model
	Keypoints []string // keypoint names of the model
	// Width and Height are the size of the source image in pixels.
	Width, Height int
	// Confidence is the lowest score of a reported detection; it may change between two Updates. Weaker detections keep an object's track
	// alive and update its velocity. They do not move the object, count it or cause events.
	Confidence float32

	// Set by Open.
	zones           []area
	lines           []countingLine
	masks           []polygon
	limits          []classLimits
	plane           *plane
	scores          []float32 // minimum median score by class
	stationaryAfter time.Duration
	snapshotEvery   time.Duration
	pathStep        float64 // minimum distance between two points of a path in pixels

	// Used by the goroutine that calls Update.
	objects  []*objectState // sorted by track
	merged   []*objectState // second half of the double buffer
	free     []*objectState
	ended    []*objectState
	last     time.Time // of the latest Update
	day      int
	counts   counts
	result   Result
	needFeet bool // a zone or line uses the anchor Feet
	runs     postprocess.Runs

	clipped   [2]polygon
	crossings []float64
}

// Result is the outcome of one frame. It is valid until the next call.
type Result struct {
	// Events are in order of occurrence.
	Events []Event
	// Changes lists the counters that differ from the previous call; after Open, all that are not 0.
	Changes []Change
	// Snapshots lists the objects whose best view is this frame, to be encoded while the frame is available.
	Snapshots []*Object
}

// objectState is an object with the private state of Analytics.
type objectState struct {
	Object
	announced       bool
	changed         bool
	unreported      time.Duration // time of the Updates since the latest reported detection
	whole           wholeSize
	lastUpdate      time.Time
	scores          history
	stays           []stay
	sides           []side
	restPoint       Point // where it stopped
	restSize        float64
	groundTime      time.Time // time of groundPoint and groundPixel
	measured        time.Time
	groundPoint     Point // position when it last moved, in metres and on the image
	groundPixel     Point
	measuredSeconds float64
	feet            Point
}

// Open validates the configuration and starts with counts of 0.
func (a *Analytics) Open() error {
	if err := a.Config.Validate(Names{a.Labels, a.Keypoints}); err != nil {
		return fmt.Errorf("open analytics: %w", err)
	}
	if err := a.layOut(); err != nil {
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
	a.stationaryAfter = cmp.Or(c.Objects.StationaryAfter, DefaultStationaryAfter)
	a.snapshotEvery = cmp.Or(c.Objects.SnapshotEvery, DefaultSnapshotEvery)
	a.objects = nil
	a.merged = nil
	a.ended = nil
	a.free = nil
	a.day = 0
	a.last = time.Time{}
	a.counts.open(len(a.Labels), len(a.zones), len(a.lines))
	return nil
}

// Resize continues with images of another size, after a camera has changed its mode. Counts and objects are kept; call it between two
// Updates.
func (a *Analytics) Resize(width, height int) error {
	before := [2]int{a.Width, a.Height}
	a.Width, a.Height = width, height
	if err := a.layOut(); err != nil {
		a.Width, a.Height = before[0], before[1]
		return fmt.Errorf("resize analytics: %w", err)
	}
	// Positions on the old image are not comparable with the new one.
	for _, o := range a.objects {
		for i := range o.sides {
			o.sides[i] = side{pending: o.sides[i].pending}
		}
		o.Path, o.restSize, o.groundTime = o.Path[:0], 0, time.Time{}
	}
	return nil
}

// anchorOf returns the anchor of a zone or line.
func (a *Analytics) anchorOf(own, fallback Anchor) Anchor {
	a.needFeet = a.needFeet || own == Feet
	return cmp.Or(own, fallback)
}

// layOut converts the configured shapes to image pixels.
func (a *Analytics) layOut() error {
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
	a.zones = nil
	a.lines = nil
	a.masks = nil
	a.needFeet = false
	for i := range c.Zones {
		z := &c.Zones[i]
		outline := c.scaled(z.Points, width, height)
		a.zones = append(a.zones, area{
			outline: outline, bounds: outline.bounds(), anchor: a.anchorOf(z.Anchor, Bottom), minShare: z.Share, classes: classSet(z.Labels,
				a.Labels),
			inertia: cmp.Or(z.Inertia, DefaultInertia), minTime: z.MinTime, loiter: z.Loiter,
		})
	}
	for i := range c.Lines {
		l := &c.Lines[i]
		ends := c.scaled([]Point{l.From, l.To}, width, height)
		length := ends[0].distance(ends[1])
		along := ends[1].minus(ends[0])
		a.lines = append(a.lines, countingLine{
			from: ends[0], along: Point{along.X / length, along.Y / length}, length: length, anchor: a.anchorOf(l.Anchor, Centre),
			classes: classSet(l.Labels, a.Labels), direction: cmp.Or(l.Direction, Both), loose: l.Mode == Loose,
		})
	}
	for _, mask := range c.Filter.Masks {
		a.masks = append(a.masks, c.scaled(mask, width, height))
	}
	a.limits = c.Filter.prepare(a.Labels, width, height)
	a.pathStep = math.Hypot(width, height) / 100
	return nil
}

// Update processes the tracks of a frame, sorted by ascending ID as the tracker returns them; seq and at are the frame's. Objects without a
// track have ended.
func (a *Analytics) Update(seq uint64, at time.Time, tracks []postprocess.Track) *Result {
	a.beginFrame(at)
	known := a.objects
	a.objects, a.merged = a.merged[:0], known
	// Both lists are sorted by id, so one pass joins them.
	for i := range tracks {
		track := &tracks[i]
		for len(known) > 0 && known[0].Track < track.ID {
			a.endObject(known[0], seq, at)
			known = known[1:]
		}
		var o *objectState
		switch {
		case len(known) > 0 && known[0].Track == track.ID:
			o, known = known[0], known[1:]
			if track.State == postprocess.Ended {
				a.endObject(o, seq, at)
				continue
			}
		case a.reported(track) && track.State != postprocess.Ended:
			o = a.newObject(track)
		default:
			continue
		}
		a.updateObject(o, track, seq, at)
		a.objects = append(a.objects, o)
	}
	for _, o := range known {
		a.endObject(o, seq, at)
	}
	for line := range a.lines {
		a.reportCrossings(line, seq, at)
	}
	a.last = at
	a.counts.report(a)
	return &a.result
}

// reported reports whether a detection of this frame that subscribers see belongs to the track.
func (a *Analytics) reported(t *postprocess.Track) bool {
	return t.Matched() && t.Score >= a.Confidence
}

// Finish ends all objects, at the end of a source or of the program.
func (a *Analytics) Finish(seq uint64, at time.Time) *Result {
	a.beginFrame(at)
	for _, o := range a.objects {
		a.endObject(o, seq, at)
	}
	clear(a.objects)
	a.objects = a.objects[:0]
	a.counts.report(a)
	return &a.result
}

func (a *Analytics) beginFrame(at time.Time) {
	clear(a.result.Events)
	clear(a.result.Snapshots)
	a.result.Events, a.result.Changes, a.result.Snapshots = a.result.Events[:0], a.result.Changes[:0], a.result.Snapshots[:0]
	a.free = append(a.free, a.ended...)
	clear(a.ended)
	a.ended = a.ended[:0]
	if day := at.YearDay() + 1000*at.Year(); day != a.day {
		if a.day != 0 && a.Config.DailyReset {
			a.counts.reset()
		}
		a.day = day
	}
}

func (a *Analytics) newObject(track *postprocess.Track) *objectState {
	if len(a.free) == 0 {
		a.free = append(a.free, &objectState{
			Object: Object{Path: make([]Point, 0, maxPath), Zones: make([]int, 0, len(a.zones)), Entered: make([]int, 0, len(a.zones))},
			stays:  make([]stay, len(a.zones)),
			sides:  make([]side, len(a.lines)),
		})
	}
	o := a.free[len(a.free)-1]
	a.free = a.free[:len(a.free)-1]
	clear(o.stays)
	clear(o.sides)
	*o = objectState{
		Object: Object{
			Track: track.ID, Start: track.First, StationarySince: track.First, Heading: -1,
			Path: o.Path[:0], Zones: o.Zones[:0], Entered: o.Entered[:0],
		},
		stays: o.stays, sides: o.sides,
	}
	return o
}

// updateObject updates an object from its track. Only reported detections move an object: a prediction could overrun a line or leave a
// zone, and weak boxes are seen by no subscriber.
func (a *Analytics) updateObject(o *objectState, track *postprocess.Track, seq uint64, at time.Time) {
	o.VX, o.VY = track.VX, track.VY
	if o.Class != track.Class {
		o.Class, o.changed = track.Class, true
	}
	reported := a.reported(track)
	if reported {
		o.whole.update(track.Box, at.Sub(o.LastSeen)) // LastSeen is still the previous time
		o.Detection, o.LastSeen, o.unreported = track.Detection, at, 0
		if a.needFeet {
			o.feet = a.feet(&track.Detection)
		}
		o.Detail = nil // Detail belongs to the frame
		o.scores.add(track.Score)
		o.TopScore, o.MedianScore = max(o.TopScore, track.Score), o.scores.median()
		foot := Bottom.onBox(track.Box)
		o.extendPath(foot, a.pathStep)
		a.updateStationary(o, foot, at)
		a.updateSpeed(o, foot, at)
	} else {
		o.unreported += min(at.Sub(a.last), maxUpdateStep)
	}
	credible := o.Score >= a.Confidence // not if the confidence was raised since
	if !o.announced && credible && track.State == postprocess.Active && o.MedianScore >= a.minScore(o.Class) {
		o.announced, o.changed, o.lastUpdate = true, false, at
		a.emit(Event{Kind: New, Seq: seq, Time: at, Object: &o.Object, Zone: -1, Line: -1})
	}
	if reported {
		for i := range a.zones {
			a.updateZone(o, i, &track.Detection, seq, at)
		}
		for i := range a.lines {
			a.updateLine(o, i, &track.Detection)
		}
		a.updateSnapshot(o, seq, at)
	}
	if !o.announced || !credible {
		return
	}
	// Updates are at least half a second apart, so that a flickering object does not flood subscribers.
	const pause = 500 * time.Millisecond
	since := at.Sub(o.lastUpdate)
	if (o.changed && since >= pause) || (a.Config.Objects.Update > 0 && since >= a.Config.Objects.Update) {
		o.changed, o.lastUpdate = false, at
		a.emit(Event{Kind: Update, Seq: seq, Time: at, Object: &o.Object, Zone: -1, Line: -1})
	}
}

// Object returns the object of a track, nil if it is not reported. It is valid until the next Update.
func (a *Analytics) Object(track uint64) *Object {
	at, known := slices.BinarySearchFunc(a.objects, track, func(o *objectState, id uint64) int { return cmp.Compare(o.Track, id) })
	if !known || !a.objects[at].announced {
		return nil
	}
	return &a.objects[at].Object
}

// MarkChanged makes the next update event of the object carry its new attributes. Objects that are not reported are ignored.
func (a *Analytics) MarkChanged(track uint64) {
	at, known := slices.BinarySearchFunc(a.objects, track, func(o *objectState, id uint64) int { return cmp.Compare(o.Track, id) })
	if known {
		a.objects[at].changed = true
	}
}

func (a *Analytics) minScore(class int) float32 {
	if class < 0 || class >= len(a.scores) {
		return 0
	}
	return a.scores[class]
}

func (a *Analytics) emit(e Event) { a.result.Events = append(a.result.Events, e) }

// updateStationary decides whether the object is stationary: within a tenth of its size around where it stopped.
func (a *Analytics) updateStationary(o *objectState, foot Point, at time.Time) {
	size := max(float64(o.Width()+o.Height())/2, o.restSize)
	if o.restSize == 0 || o.restPoint.distance(foot) > max(0.1*size, 2) {
		o.restPoint, o.restSize, o.StationarySince = foot, float64(o.Width()+o.Height())/2, at
		if o.Stationary {
			o.Stationary, o.changed = false, true
		}
		return
	}
	if !o.Stationary && at.Sub(o.StationarySince) >= a.stationaryAfter {
		o.Stationary, o.changed = true, true
	}
}

// updateSpeed measures speed, direction and distance over steps long enough to outweigh the detector's noise.
func (a *Analytics) updateSpeed(o *objectState, foot Point, at time.Time) {
	const (
		pace  = 500 * time.Millisecond
		still = 2 * time.Second
	)
	if a.plane == nil {
		return
	}
	ground, ok := a.plane.toGround(foot)
	if !ok || !finite(ground.X) || !finite(ground.Y) {
		return
	}
	if o.groundTime.IsZero() {
		o.groundPoint = ground
		o.groundPixel = foot
		o.groundTime = at
		o.measured = at
		return
	}
	elapsed := at.Sub(o.measured)
	if elapsed < pace {
		return
	}
	o.measured = at
	o.measuredSeconds += elapsed.Seconds()
	took := at.Sub(o.groundTime)
	// Boxes jitter: an object has moved once it is a twentieth of its size away, otherwise noise would add up to a distance.
	switch {
	case o.groundPixel.distance(foot) >= max(1, float64(o.Width()+o.Height())/2/20):
		way := ground.minus(o.groundPoint)
		metres := math.Hypot(way.X, way.Y)
		o.Speed = metres / took.Seconds()
		o.Distance += metres
		o.Heading = math.Mod(math.Atan2(way.Y, way.X)*180/math.Pi+360, 360)
		o.groundPoint, o.groundPixel, o.groundTime = ground, foot, at
	case took >= still:
		o.Speed, o.groundTime = 0, at.Add(-still) // the next step starts now
	}
	o.MeanSpeed = o.Distance / o.measuredSeconds
}

// endObject ends an object. Without a New event there is no End event.
func (a *Analytics) endObject(o *objectState, seq uint64, at time.Time) {
	if o.announced {
		for len(o.Zones) > 0 {
			a.leave(o, o.Zones[0], seq, at)
		}
		o.Ended = true
		a.emit(Event{Kind: End, Seq: seq, Time: at, Object: &o.Object, Zone: -1, Line: -1})
	}
	a.ended = append(a.ended, o)
}
