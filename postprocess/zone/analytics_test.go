package zone

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/postprocess"
)

var labels = []string{"bolt", "nut", "gear"}

var start = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)

// at is the capture time of a frame of a 10 Hz camera.
func at(frame int) time.Time { return start.Add(time.Duration(frame) * 100 * time.Millisecond) }

func open(t testing.TB, config Config) *Analytics {
	t.Helper()
	a := &Analytics{Config: config, Labels: labels, Width: 1000, Height: 500}
	require.NoError(t, a.Open())
	return a
}

// seen is an active track of 20x20 pixels whose bottom centre is x, y.
func seen(id uint64, x, y float64, class int) postprocess.Track {
	box := postprocess.Box{X1: float32(x - 10), Y1: float32(y - 20), X2: float32(x + 10), Y2: float32(y)}
	return postprocess.Track{
		ID:        id,
		State:     postprocess.Active,
		First:     start,
		Detection: postprocess.Detection{Box: box, Score: 0.8, Class: class},
	}
}

func hidden(id uint64, x, y float64, class int) postprocess.Track {
	track := seen(id, x, y, class)
	track.State, track.Index = postprocess.Lost, -1
	return track
}

type happened struct {
	Kind  Kind
	Track uint64
	Place int
	Way   Direction
}

func events(r *Result) []happened {
	var out []happened
	for _, e := range r.Events {
		out = append(out, happened{e.Kind, e.Object.Track, max(e.Zone, e.Line), e.Direction})
	}
	return out
}

var field = Zone{Name: "field", Points: []Point{{0.4, 0}, {0.6, 0}, {0.6, 1}, {0.4, 1}}}

func TestZoneLife(t *testing.T) {
	z := field
	z.Loiter = time.Second
	a := open(t, Config{Zones: []Zone{z}})
	var got []happened
	var changes []Change
	var dwell []time.Duration
	update := func(frame int, tracks ...postprocess.Track) {
		r := a.Update(uint64(frame), at(frame), tracks)
		got = append(got, events(r)...)
		changes = append(changes, r.Changes...)
		for _, e := range r.Events {
			if e.Kind == Leave || e.Kind == Loiter {
				dwell = append(dwell, e.Dwell)
			}
		}
	}
	update(0, seen(7, 390, 200, 1))
	update(1, seen(7, 410, 200, 1)) // inside for one detection, out again: inertia
	update(2, seen(7, 390, 200, 1))
	for frame := 3; frame < 16; frame++ {
		update(frame, seen(7, 410, 200, 1))
	}
	// A prediction outside and one detection outside do not end the stay.
	update(16, hidden(7, 700, 200, 1))
	update(17, seen(7, 390, 200, 1))
	update(18, seen(7, 450, 200, 1))
	assert.Equal(t, 1, a.Zone(0).Occupied[1])
	for frame := 19; frame < 23; frame++ {
		update(frame, seen(7, 650, 200, 1))
	}
	update(23)
	assert.Equal(t, []happened{
		{New, 7, -1, ""},
		{Enter, 7, 0, ""},
		{Update, 7, -1, ""},
		{Loiter, 7, 0, ""},
		{Update, 7, -1, ""},
		{Leave, 7, 0, ""},
		{Update, 7, -1, ""},
		{End, 7, -1, ""},
	}, got)
	assert.Equal(t, []time.Duration{time.Second, 1800 * time.Millisecond}, dwell)
	assert.Equal(t, []Change{
		{Present, -1, 1, 1},
		{Occupied, 0, 1, 1},
		{Entered, 0, 1, 1},
		{Occupied, 0, 1, 0},
		{Present, -1, 1, 0},
	}, changes)
	assert.Equal(t, ZoneCount{Occupied: []int{0, 0, 0}, Entered: []int{0, 1, 0}, Visits: 1, Dwell: 1800 * time.Millisecond}, a.Zone(0))
}

func TestZoneMinimumTimeLabelsAndAnchor(t *testing.T) {
	a := open(t, Config{Zones: []Zone{
		{Name: "slow", Points: field.Points, Inertia: 1, MinTime: 500 * time.Millisecond},
		{Name: "nuts", Points: field.Points, Inertia: 1, Labels: []string{"nut"}},
		{Name: "high", Points: []Point{{0, 0}, {1, 0}, {1, 0.385}, {0, 0.385}}, Inertia: 1, Anchor: Top},
	}})
	var got []happened
	for frame := range 8 {
		got = append(got, events(a.Update(1, at(frame), []postprocess.Track{seen(1, 500, 210, 0)}))...)
	}
	assert.Equal(t, []happened{{New, 1, -1, ""}, {Enter, 1, 2, ""}, {Enter, 1, 0, ""}, {Update, 1, -1, ""}}, got)
}

func TestEndLeavesTheZones(t *testing.T) {
	z := field
	z.Inertia = 1
	a := open(t, Config{Zones: []Zone{z}})
	a.Update(1, at(0), []postprocess.Track{seen(1, 500, 200, 0), seen(2, 500, 300, 0)})
	assert.Equal(t, 2, a.Zone(0).Occupied[0])
	ended := seen(1, 500, 200, 0)
	ended.State, ended.Index = postprocess.Ended, -1
	r := a.Update(2, at(3), []postprocess.Track{ended, hidden(2, 500, 300, 0)})
	assert.Equal(t, []happened{{Leave, 1, 0, ""}, {End, 1, -1, ""}}, events(r))
	assert.True(t, r.Events[1].Object.Ended)
	assert.Equal(t, []int{0}, r.Events[1].Object.Entered)
	assert.Equal(t, []happened{{Leave, 2, 0, ""}, {End, 2, -1, ""}}, events(a.Finish(3, at(4))))
	assert.Equal(t, 0, a.Present()[0])
	assert.Empty(t, events(a.Finish(3, at(4))))
}

// countingLine is a vertical line in the middle of the image, drawn downwards: In is from the right to the left on the image.
var middle = Line{Name: "gate", From: Point{0.5, 0.2}, To: Point{0.5, 0.8}}

// cross moves an object of 20x20 pixels along the points, its centre being the anchor, and returns the line's counts of bolts.
func cross(t *testing.T, line Line, points ...Point) (in, out int) {
	t.Helper()
	a := open(t, Config{Lines: []Line{line}})
	for frame, p := range points {
		a.Update(uint64(frame), at(frame), []postprocess.Track{seen(1, p.X, p.Y+10, 0)})
	}
	count := a.Line(0)
	return count.In[0], count.Out[0]
}

func TestLines(t *testing.T) {
	onlyIn, onlyNuts, loose := middle, middle, middle
	onlyIn.Direction, onlyNuts.Labels, loose.Mode = In, []string{"nut"}, Loose
	for _, c := range []struct {
		name    string
		line    Line
		points  []Point
		in, out int
	}{
		{"leftwards is in", middle, []Point{{600, 250}, {550, 250}, {450, 250}}, 1, 0},
		{"rightwards is out", middle, []Point{{400, 250}, {450, 250}, {550, 250}}, 0, 1},
		{"in one long step", middle, []Point{{10, 250}, {990, 250}}, 0, 1},
		{"past the upper end", middle, []Point{{600, 90}, {450, 90}}, 0, 0},
		{"past the lower end", middle, []Point{{600, 450}, {450, 450}}, 0, 0},
		{"diagonally through the end", middle, []Point{{550, 60}, {450, 160}}, 1, 0},
		{"diagonally past the end", middle, []Point{{550, 60}, {450, 120}}, 0, 0},
		{"near the end, strict", middle, []Point{{550, 94}, {450, 94}}, 0, 0},
		{"near the end, loose", loose, []Point{{550, 94}, {450, 94}}, 1, 0},
		{"far from the end, loose", loose, []Point{{550, 80}, {450, 80}}, 0, 0},
		{"up to the line and back", middle, []Point{{550, 250}, {501, 250}, {550, 250}}, 0, 0},
		{"noise on the line", middle, []Point{{550, 250}, {499, 250}, {501, 250}, {499, 250}, {501, 250}, {550, 250}}, 0, 0},
		{"on the line, then across", middle, []Point{{550, 250}, {500, 250}, {500, 250}, {450, 250}}, 1, 0},
		{"starts on the line", middle, []Point{{500, 250}, {490, 250}, {450, 250}}, 0, 0},
		{"in, out and in again", middle, []Point{{550, 250}, {450, 250}, {550, 250}, {450, 250}}, 2, 1},
		{"in, and out around the end", middle, []Point{{550, 250}, {450, 250}, {450, 450}, {550, 450}, {550, 250}, {450, 250}}, 2, 0},
		{"around the end, then back through", middle, []Point{{550, 250}, {550, 50}, {450, 50}, {450, 250}, {550, 250}}, 0, 1},
		{"wrong direction", onlyIn, []Point{{450, 250}, {550, 250}}, 0, 0},
		{"right direction on the way back", onlyIn, []Point{{450, 250}, {550, 250}, {450, 250}}, 1, 0},
		{"wrong label", onlyNuts, []Point{{450, 250}, {550, 250}}, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			in, out := cross(t, c.line, c.points...)
			assert.Equal(t, [2]int{c.in, c.out}, [2]int{in, out})
		})
	}
}

// TestStandingOnALine: the box of an object that stands on a line moves a little from frame to frame, which is no crossing.
func TestStandingOnALine(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	a := open(t, Config{Lines: []Line{middle}})
	for frame := range 2000 {
		track := seen(1, 0, 0, 0)
		shift := func(most float64) float32 { return float32((2*random.Float64() - 1) * most) }
		x, y := 500+shift(3), 250+shift(8)
		track.Box = postprocess.Box{X1: x - 20 + shift(2), Y1: y - 50, X2: x + 20 + shift(2), Y2: y + 50}
		a.Update(uint64(frame), at(frame), []postprocess.Track{track})
	}
	assert.Zero(t, a.Line(0).In[0]+a.Line(0).Out[0])
}

// TestSwappedTracksAtALine: one object passes another that stands behind the line, and the tracker takes one for the other. One crossing
// is counted.
func TestSwappedTracksAtALine(t *testing.T) {
	for _, swap := range []int{-1, 5, 6, 7, 8} { // the frame of the exchange; -1 for none
		a := open(t, Config{Lines: []Line{middle}})
		for frame := range 20 {
			passing, standing := uint64(1), uint64(2)
			if swap >= 0 && frame >= swap {
				passing, standing = standing, passing
			}
			tracks := []postprocess.Track{seen(passing, 560-float64(frame)*10, 260, 0), seen(standing, 470, 250, 0)}
			slices.SortFunc(tracks, func(a, b postprocess.Track) int { return cmp.Compare(a.ID, b.ID) })
			a.Update(uint64(frame), at(frame), tracks)
		}
		assert.Equal(t, [2]int{1, 0}, [2]int{a.Line(0).In[0], a.Line(0).Out[0]}, "exchange in frame %d", swap)
	}
}

func TestPredictionsCrossNothing(t *testing.T) {
	a := open(t, Config{Lines: []Line{middle}})
	a.Update(0, at(0), []postprocess.Track{seen(1, 520, 250, 0)})
	a.Update(1, at(1), []postprocess.Track{hidden(1, 480, 250, 0)})
	a.Update(2, at(2), []postprocess.Track{hidden(1, 440, 250, 0)})
	assert.Zero(t, a.Line(0).In[0])
	a.Update(3, at(3), []postprocess.Track{seen(1, 470, 250, 0)})
	assert.Equal(t, 1, a.Line(0).In[0])
}

func TestMedianScoreAnnouncesObject(t *testing.T) {
	a := open(t, Config{Lines: []Line{middle}, Objects: Objects{Score: map[string]float32{"": 0.5, "nut": 0.9}}})
	track := func(score float32, x float64, class int) []postprocess.Track {
		s := seen(1, x, 250, class)
		s.Score = score
		return []postprocess.Track{s}
	}
	assert.Empty(t, events(a.Update(0, at(0), track(0.3, 550, 0))))
	assert.Empty(t, events(a.Update(1, at(1), track(0.4, 450, 0))))
	assert.Empty(t, a.Update(2, at(2), track(0.4, 440, 0)).Changes)
	a.Update(3, at(3), track(0.6, 430, 0))
	a.Update(4, at(4), track(0.6, 430, 0))
	r := a.Update(5, at(5), track(0.7, 420, 0))
	assert.Equal(t, []happened{{New, 1, -1, ""}, {Cross, 1, 0, In}}, events(r), "the crossing waits for the object")
	assert.InDelta(t, 0.6, r.Events[0].Object.MedianScore, 1e-6)
	assert.InDelta(t, 0.7, r.Events[0].Object.TopScore, 1e-6)
	// Another class with another threshold, never reached: no event at all, not even an end.
	a = open(t, a.Config)
	a.Update(0, at(0), track(0.8, 550, 1))
	assert.Empty(t, events(a.Finish(1, at(1))))
}

func TestLateTrackIsReported(t *testing.T) {
	a := open(t, Config{})
	assert.Equal(t, []happened{{New, 5, -1, ""}}, events(a.Update(0, at(0), []postprocess.Track{hidden(3, 10, 50, 0), seen(5, 100, 100, 0)})))
	assert.Equal(t, []happened{{New, 3, -1, ""}}, events(a.Update(1, at(1), []postprocess.Track{seen(3, 10, 50, 0), seen(5, 100, 100, 0)})))
	assert.Equal(t, []happened{{End, 3, -1, ""}}, events(a.Update(2, at(2), []postprocess.Track{seen(5, 100, 100, 0)})))
}

func TestTentativeTracksAreSilent(t *testing.T) {
	a := open(t, Config{})
	track := seen(1, 100, 100, 0)
	track.State = postprocess.Tentative
	assert.Empty(t, events(a.Update(0, at(0), []postprocess.Track{track})))
	assert.Empty(t, events(a.Update(1, at(1), nil)))
}

func TestStationaryAndMoving(t *testing.T) {
	a := open(t, Config{Objects: Objects{StationaryAfter: time.Second}})
	stationary := func(frame int, x float64) bool {
		r := a.Update(uint64(frame), at(frame), []postprocess.Track{seen(1, x, 100, 0)})
		_ = r
		return a.objects[0].Stationary
	}
	for frame := range 10 {
		assert.False(t, stationary(frame, 100+float64(frame%2)))
	}
	assert.True(t, stationary(11, 100))
	assert.True(t, stationary(12, 101))
	assert.False(t, stationary(13, 110))
	assert.False(t, stationary(14, 120))
	for frame := 15; frame < 24; frame++ {
		assert.False(t, stationary(frame, 120))
	}
	assert.True(t, stationary(25, 120))
}

func TestSnapshotIsTheBestView(t *testing.T) {
	a := open(t, Config{Objects: Objects{SnapshotEvery: 200 * time.Millisecond}})
	update := func(frame int, x, side float64, score float32) bool {
		track := seen(1, x, 200, 0)
		track.X1, track.X2 = float32(x-side/2), float32(x+side/2)
		track.Y1, track.Y2 = float32(200-side), 200
		track.Score = score
		r := a.Update(uint64(frame), at(frame), []postprocess.Track{track})
		return len(r.Snapshots) == 1
	}
	assert.True(t, update(0, 5, 20, 0.5), "the first view is the best so far")
	assert.False(t, update(1, 50, 20, 0.5), "too soon")
	assert.True(t, update(2, 50, 20, 0.5), "whole rather than cut by the edge")
	assert.False(t, update(4, 60, 20, 0.52), "hardly better")
	assert.True(t, update(6, 60, 30, 0.5), "larger")
	assert.True(t, update(8, 60, 30, 0.9), "higher score")
	assert.False(t, update(10, 60, 20, 0.5))
	assert.Equal(t, uint64(8), a.objects[0].Best.Seq)
	assert.Equal(t, at(8), a.objects[0].Best.Time)
}

func TestSpeedOnTheGround(t *testing.T) {
	// A road of 4 m x 20 m seen from above the near end: the far end is half as wide on the image.
	a := open(t, Config{
		Width: 1000, Height: 500, Ground: &Ground{Points: []Point{{400, 100}, {600, 100}, {700, 400}, {300, 400}}, Width: 4, Length: 20},
	})
	for i, corner := range a.Config.Ground.Points {
		got, ok := a.plane.toGround(corner)
		require.True(t, ok)
		want := []Point{{0, 0}, {4, 0}, {4, 20}, {0, 20}}[i]
		assert.InDelta(t, want.X, got.X, 1e-6)
		assert.InDelta(t, want.Y, got.Y, 1e-6)
	}
	// The image point of (2, y) by bisection along the middle axis, then a walk at 3 m/s.
	place := func(y float64) Point {
		low, high := 100.0, 400.0
		for range 60 {
			mid := (low + high) / 2
			if p, _ := a.plane.toGround(Point{500, mid}); p.Y < y {
				low = mid
			} else {
				high = mid
			}
		}
		return Point{500, low}
	}
	for frame := range 60 {
		p := place(1 + 0.3*float64(frame))
		a.Update(uint64(frame), at(frame), []postprocess.Track{seen(1, p.X, p.Y, 0)})
	}
	assert.InDelta(t, 3, a.objects[0].Speed, 0.01)
	assert.InDelta(t, 3, a.objects[0].MeanSpeed, 0.01)
	o := a.Object(1)
	assert.InDelta(t, 90, o.Heading, 0.1, "from the second point to the third")
	assert.InDelta(t, 0.3*55, o.Distance, 0.01)
	assert.Nil(t, a.Object(2))
	_, ok := a.plane.toGround(Point{500, -500})
	assert.False(t, ok, "above the horizon")
}

// A camera that looks straight down needs only two points. A standing object has no speed, whatever its box does.
func TestSpeedByAKnownLength(t *testing.T) {
	a := open(t, Config{Ground: &Ground{Points: []Point{{0.1, 0.2}, {0.1, 0.6}}, Length: 4}}) // 200 of 500 pixels: 2 cm each
	walk := func(frame int, x, y float64) {
		a.Update(uint64(frame), at(frame), []postprocess.Track{seen(1, x, y, 0)})
	}
	walk(0, 500, 250)
	assert.Equal(t, -1.0, a.Object(1).Heading, "it has not moved")
	for frame := 1; frame <= 20; frame++ {
		walk(frame, 500+5*float64(frame), 250) // 50 pixels per second to the right
	}
	o := a.Object(1)
	assert.InDelta(t, 1, o.Speed, 1e-6)
	assert.InDelta(t, 1, o.MeanSpeed, 1e-6)
	assert.InDelta(t, 2, o.Distance, 1e-6)
	assert.InDelta(t, 270, o.Heading, 1e-6, "the length runs down the image, this is a turn to the left of it")
	for frame := 21; frame <= 60; frame++ {
		walk(frame, 600+0.4*float64(frame%2), 250)
	}
	assert.Zero(t, o.Speed)
	assert.InDelta(t, 2, o.Distance, 1e-6)
	assert.InDelta(t, 2/6.0, o.MeanSpeed, 1e-6)
	for frame := 61; frame <= 200; frame++ {
		walk(frame, 600, 250+0.1*float64(frame-60)) // a pixel a second: 2 cm
	}
	assert.InDelta(t, 2.28, o.Distance, 0.03)
	assert.InDelta(t, 0, math.Mod(o.Heading+180, 360)-180, 1e-6)
}

func TestDailyReset(t *testing.T) {
	a := open(t, Config{Lines: []Line{middle}, DailyReset: true})
	late := time.Date(2026, 11, 20, 23, 59, 59, 0, time.UTC)
	a.Update(0, late, []postprocess.Track{seen(1, 550, 250, 0)})
	r := a.Update(1, late.Add(time.Second/2), []postprocess.Track{seen(1, 450, 250, 0)})
	assert.Equal(t, []Change{{Inward, 0, 0, 1}}, r.Changes)
	r = a.Update(2, late.Add(2*time.Second), []postprocess.Track{seen(1, 440, 250, 0)})
	assert.Equal(t, []Change{{Inward, 0, 0, 0}}, r.Changes)
	assert.Equal(t, 1, a.Present()[0])
}

func TestResizeKeepsCountsAndObjects(t *testing.T) {
	a := open(t, Config{Lines: []Line{middle}})
	a.Update(0, at(0), []postprocess.Track{seen(1, 550, 250, 0), seen(2, 450, 250, 0)})
	a.Update(1, at(1), []postprocess.Track{seen(1, 450, 250, 0), seen(2, 450, 250, 0)})
	require.Equal(t, 1, a.Line(0).In[0])
	require.NoError(t, a.Resize(2000, 1000))
	// The jump to the new coordinates crosses nothing.
	assert.Empty(t, a.Update(2, at(2), []postprocess.Track{seen(1, 900, 500, 0), seen(2, 1100, 500, 0)}).Changes)
	a.Update(3, at(3), []postprocess.Track{seen(1, 900, 500, 0), seen(2, 900, 500, 0)})
	assert.Equal(t, 2, a.Line(0).In[0])
	assert.EqualError(t, a.Resize(0, 5), "resize analytics: image of 0x5")
	assert.Equal(t, 2000, a.Width)
}

func TestUpdateInterval(t *testing.T) {
	a := open(t, Config{Objects: Objects{Update: 2 * time.Second, SnapshotEvery: time.Hour}})
	count := 0
	for frame := range 101 {
		for _, e := range a.Update(uint64(frame), at(frame), []postprocess.Track{seen(1, 100, 100, 0)}).Events {
			if e.Kind == Update {
				count++
			}
		}
	}
	assert.InDelta(t, 5, count, 1)
}

// Attributes that are found later are reported by the next update, and by no more than one.
func TestMarkChanged(t *testing.T) {
	a := open(t, Config{})
	count := 0
	for frame := range 60 {
		if frame == 20 || frame == 21 {
			a.MarkChanged(1)
			a.MarkChanged(7) // nobody
		}
		for _, e := range a.Update(uint64(frame), at(frame), []postprocess.Track{seen(1, 100, 100, 0)}).Events {
			if e.Kind == Update && e.Seq >= 20 && e.Seq < 40 {
				require.Contains(t, []uint64{20, 25}, e.Seq)
				count++
			}
		}
	}
	require.Equal(t, 2, count, "the second one waits until the first is half a second old")
}

func TestIDAndPath(t *testing.T) {
	a := open(t, Config{})
	var object *Object
	for frame := range 500 {
		x := 100 + float64(frame%250)*3
		r := a.Update(uint64(frame), at(frame), []postprocess.Track{seen(42, x, 100, 0)})
		if frame == 0 {
			object = r.Events[0].Object
		}
	}
	assert.Equal(t, "1795168800.000000-42", object.ID())
	assert.LessOrEqual(t, len(object.Path), maxPath)
	assert.Greater(t, len(object.Path), maxPath/4)
	assert.Equal(t, Point{100, 100}, object.Path[0])
	assert.Equal(t, 49900*time.Millisecond, object.Duration())
}

func TestFilter(t *testing.T) {
	a := open(t, Config{Filter: Filter{
		Labels: []string{"bolt", "nut"},
		Limits: map[string]Limits{"": {MinArea: 100, MaxRatio: 3}, "nut": {MaxArea: 0.01, MinRatio: 0.5, MinScore: 0.6}},
		Masks:  [][]Point{{{0.9, 0}, {1, 0}, {1, 1}, {0.9, 1}}},
	}})
	d := func(x, w, h, score float32, class int) postprocess.Detection {
		return postprocess.Detection{Box: postprocess.Box{X1: x - w/2, Y1: 100, X2: x + w/2, Y2: 100 + h}, Score: score, Class: class}
	}
	keep := []postprocess.Detection{d(100, 20, 20, 0.2, 0), d(200, 50, 20, 0.2, 0), d(300, 60, 60, 0.7, 1), d(889, 20, 20, 0.2, 0)}
	drop := []postprocess.Detection{
		d(100, 5, 5, 0.9, 0), d(100, 70, 20, 0.9, 0), d(100, 80, 80, 0.7, 1), d(100, 20, 50, 0.7, 1), d(100, 20, 20, 0.5, 1),
		d(100, 20, 20, 0.9, 2), d(905, 20, 20, 0.9, 0), d(100, 20, 20, 0.9, 99), d(100, 20, 20, 0.9, -1),
	}
	var all []postprocess.Detection
	for i := range drop {
		if i < len(keep) {
			all = append(all, keep[i])
		}
		all = append(all, drop[i])
	}
	assert.Equal(t, keep, a.Filter(all))
}

// truth is how often a path goes through the middle line in each direction.
func truth(points []Point) (in, out int) {
	for i := 1; i < len(points); i++ {
		p, q := points[i-1], points[i]
		if (p.X-500)*(q.X-500) >= 0 {
			continue
		}
		if y := p.Y + (500-p.X)/(q.X-p.X)*(q.Y-p.Y); y >= 100 && y <= 400 {
			if q.X < 500 {
				in++
			} else {
				out++
			}
		}
	}
	return in, out
}

// TestThousandPartsCountExactly sends parts across a line in both directions, hidden for a while and with frames dropped, and some that
// pass beside it, turn round before it or come back through it.
func TestThousandPartsCountExactly(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 5))
	a := open(t, Config{Lines: []Line{middle}})
	const parts = 1000
	wantIn, wantOut := 0, 0
	type part struct {
		from  int
		path  []Point
		drawn []Point
	}
	var all []part
	for n := range parts {
		p := part{from: n * 4}
		direction := float64(1 - 2*(n%2))
		x, y := 500-direction*random.Float64()*300-direction*30, 20+random.Float64()*460
		turn := 0
		if n%10 == 9 {
			turn = 5 + random.IntN(40)
		}
		speed, drift := 5+random.Float64()*25, random.Float64()*4-2
		for step := range 60 {
			p.path = append(p.path, Point{x, y})
			// Nobody turns round on the line itself, where it is a matter of taste whether he crossed it.
			if turn > 0 && step >= turn && math.Abs(x-500) > 40 {
				speed, turn = -speed, 0
			}
			x += direction * speed
			y += drift
		}
		all = append(all, p)
	}
	for frame := range parts*4 + 60 {
		if random.IntN(10) == 0 {
			continue
		}
		var tracks []postprocess.Track
		for n := range all {
			p := &all[n]
			step := frame - p.from
			if step < 0 || step >= len(p.path) {
				continue
			}
			place := p.path[step]
			// Every part is hidden for eight frames around the line's place, where a prediction runs ahead.
			if step%16 > 7 && n%3 == 0 {
				tracks = append(tracks, hidden(uint64(n+1), place.X+random.Float64()*40-20, place.Y+10, n%3))
				continue
			}
			p.drawn = append(p.drawn, place)
			tracks = append(tracks, seen(uint64(n+1), place.X, place.Y+10, n%3))
		}
		a.Update(uint64(frame), at(frame), tracks)
	}
	a.Finish(0, at(parts*10))
	returned := 0
	for n := range all {
		in, out := truth(all[n].drawn)
		wantIn += in
		wantOut += out
		if in > 0 && out > 0 {
			returned++
		}
	}
	assert.Greater(t, returned, 20)
	count := a.Line(0)
	assert.Greater(t, wantIn+wantOut, 400)
	assert.Equal(t, wantIn, count.In[0]+count.In[1]+count.In[2])
	assert.Equal(t, wantOut, count.Out[0]+count.Out[1]+count.Out[2])
}

// TestProperties drives random tracks through random shapes and checks what must hold for every event and every count.
// All properties are of the same tracks, which is why they are in one function.
func TestProperties(t *testing.T) {
	for seed := range uint64(30) {
		random := rand.New(rand.NewPCG(seed, 9))
		zones := []Zone{field, {Name: "all", Points: []Point{{0, 0}, {1, 0}, {1, 1}, {0, 1}}, Inertia: 1, Loiter: time.Second}}
		a := open(t, Config{Zones: zones, Lines: []Line{middle, {Name: "across", From: Point{0, 0.5}, To: Point{1, 0.5}, Mode: Loose}}})
		type life struct {
			stage  Kind
			inside map[int]bool
		}
		lives := map[uint64]*life{}
		entered, crossed := 0, 0
		check := func(r *Result) {
			for _, e := range r.Events {
				l := lives[e.Object.Track]
				if e.Kind == New {
					require.Nil(t, l, "new twice")
					lives[e.Object.Track] = &life{stage: New, inside: map[int]bool{}}
					continue
				}
				require.NotNil(t, l, "%s before new", e.Kind)
				require.NotEqual(t, End, l.stage, "%s after end", e.Kind)
				switch e.Kind {
				case End:
					require.Empty(t, e.Object.Zones)
					l.stage = End
				case Enter:
					require.False(t, l.inside[e.Zone])
					l.inside[e.Zone] = true
					entered++
				case Leave:
					require.True(t, l.inside[e.Zone])
					require.GreaterOrEqual(t, e.Dwell, time.Duration(0))
					l.inside[e.Zone] = false
				case Loiter:
					require.True(t, l.inside[e.Zone])
				case Cross:
					if middle := float64(e.Object.X1+e.Object.X2) / 2; e.Line == 0 {
						require.Equal(t, e.Direction == In, middle < 500)
					}
					crossed++
				}
			}
			for _, change := range r.Changes {
				require.GreaterOrEqual(t, change.Value, 0)
			}
		}
		x, y := map[uint64]float64{}, map[uint64]float64{}
		first, last := uint64(1), uint64(0)
		for frame := range 300 {
			if random.IntN(8) == 0 {
				last++
				x[last], y[last] = random.Float64()*1000, random.Float64()*500
			}
			if first <= last && random.IntN(16) == 0 {
				delete(x, first)
				first++
			}
			var tracks []postprocess.Track
			for id := first; id <= last; id++ {
				x[id] += random.NormFloat64() * 40
				y[id] += random.NormFloat64() * 20
				if random.IntN(12) == 0 {
					x[id] = math.Mod(x[id]+500, 1000)
				}
				track := seen(id, x[id], y[id], random.IntN(4))
				if random.IntN(5) == 0 {
					track = hidden(id, x[id], y[id], 0)
				}
				tracks = append(tracks, track)
			}
			check(a.Update(uint64(frame), at(frame), tracks))
		}
		check(a.Finish(300, at(300)))
		for id, l := range lives {
			require.Equal(t, End, l.stage, "object %d", id)
		}
		sum := func(values ...[]int) (total int) {
			for _, v := range values {
				for _, n := range v {
					total += n
				}
			}
			return total
		}
		require.Zero(t, sum(a.Present(), a.Zone(0).Occupied, a.Zone(1).Occupied))
		require.LessOrEqual(t, sum(a.Zone(0).Entered, a.Zone(1).Entered), entered)
		require.LessOrEqual(t, sum(a.Line(0).In, a.Line(0).Out, a.Line(1).In, a.Line(1).Out), crossed)
	}
}

func benchmarkTracks(random *rand.Rand, n int) [][]postprocess.Track {
	frames := make([][]postprocess.Track, 200)
	for i := range frames {
		for id := range n {
			// Objects come and go: each lives for a hundred frames.
			frames[i] = append(frames[i], seen(uint64(1+id+n*(i/100)), math.Mod(float64(id*37+i*7), 1000),
				math.Mod(float64(id*91), 500)+random.Float64(), id%3))
		}
	}
	return frames
}

func busy() Config {
	return Config{
		Zones:  []Zone{field, {Name: "b", Points: []Point{{0.1, 0.1}, {0.3, 0.1}, {0.3, 0.9}, {0.1, 0.9}}}},
		Lines:  []Line{middle, {Name: "l2", From: Point{0.2, 0}, To: Point{0.2, 1}}},
		Ground: &Ground{Points: []Point{{0.4, 0.2}, {0.6, 0.2}, {0.7, 0.8}, {0.3, 0.8}}, Width: 4, Length: 20},
	}
}

func TestUpdateAllocatesNothing(t *testing.T) {
	a := open(t, busy())
	frames := benchmarkTracks(rand.New(rand.NewPCG(1, 1)), 100)
	frame := 0
	run := func() {
		tracks := frames[frame%len(frames)]
		for i := range tracks {
			tracks[i].ID += uint64(200 * min(1, frame/200))
		}
		a.Update(uint64(frame), at(frame), tracks)
		frame++
	}
	for range 400 {
		run()
	}
	assert.Zero(t, testing.AllocsPerRun(300, run))
}

func BenchmarkUpdate(b *testing.B) {
	a := open(b, busy())
	frames := benchmarkTracks(rand.New(rand.NewPCG(1, 1)), 50)
	frame := 0
	b.ReportAllocs()
	for b.Loop() {
		a.Update(uint64(frame), at(frame), frames[frame%100])
		frame++
	}
}
