package zone

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/edge-infer/edge-infer/postprocess"
)

// scored is seen with a score.
func scored(id uint64, x, y float64, score float32) postprocess.Track {
	track := seen(id, x, y, 0)
	track.Score = score
	return track
}

// A step is the score of an object's box and the x of its centre.
type step struct {
	score float32
	x     float64
}

// walk plays the steps of one bolt at 10 Hz at a confidence and returns the events besides updates.
func walk(t *testing.T, a *Analytics, confidence float32, steps ...step) []happened {
	t.Helper()
	a.Confidence = confidence
	var got []happened
	for frame, s := range steps {
		r := a.Update(uint64(frame), at(frame), []postprocess.Track{scored(1, s.x, 250, s.score)})
		for _, e := range r.Events {
			assert.GreaterOrEqual(t, e.Object.Score, confidence, "%s in frame %d", e.Kind, frame)
			if e.Kind != Update {
				got = append(got, happened{e.Kind, e.Object.Track, max(e.Zone, e.Line), e.Direction})
			}
		}
	}
	return got
}

// TestLinesCountWhatIsReported: a line is crossed by reported boxes, one on each side.
func TestLinesCountWhatIsReported(t *testing.T) {
	for _, c := range []struct {
		name    string
		steps   []step
		in, out int
	}{
		{"reported on both sides", []step{{.8, 550}, {.8, 450}}, 1, 0},
		{"weak across, reported afterwards", []step{{.8, 550}, {.3, 520}, {.3, 480}, {.3, 450}, {.8, 440}, {.8, 430}}, 1, 0},
		{"only weak on the far side", []step{{.8, 550}, {.8, 520}, {.3, 480}, {.3, 400}, {.2, 300}}, 0, 0},
		{"only weak on the near side", []step{{.3, 550}, {.3, 520}, {.8, 480}, {.8, 450}}, 0, 0},
		{"weak there and back", []step{{.8, 550}, {.3, 450}, {.3, 440}, {.8, 560}}, 0, 0},
		{"weak back, reported across again", []step{{.8, 550}, {.8, 450}, {.3, 550}, {.8, 440}}, 1, 0},
		{"exactly the confidence", []step{{.5, 550}, {.5, 450}}, 1, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := open(t, Config{Lines: []Line{middle}})
			walk(t, a, .5, c.steps...)
			assert.Equal(t, [2]int{c.in, c.out}, [2]int{a.Line(0).In[0], a.Line(0).Out[0]})
		})
	}
}

// TestZonesCountWhatIsReported: weak boxes neither enter nor leave, and do not extend the stay.
func TestZonesCountWhatIsReported(t *testing.T) {
	z := field
	z.Inertia, z.Loiter = 1, 300*time.Millisecond
	a := open(t, Config{Zones: []Zone{z}})
	assert.Equal(t, []happened{{New, 1, -1, ""}}, walk(t, a, .5, step{.8, 300}, step{.3, 500}, step{.3, 500}, step{.3, 500}, step{.3, 500}))
	a = open(t, Config{Zones: []Zone{z}})
	assert.Equal(t, []happened{{New, 1, -1, ""}, {Enter, 1, 0, ""}},
		walk(t, a, .5, step{.8, 500}, step{.8, 500}, step{.3, 500}, step{.3, 500}, step{.3, 700}, step{.3, 700}, step{.3, 700}))
	r := a.Finish(9, at(9))
	assert.Equal(t, []happened{{Leave, 1, 0, ""}, {End, 1, -1, ""}}, events(r))
	assert.Equal(t, 100*time.Millisecond, r.Events[0].Dwell, "the stay ends with the last reported box")
	assert.InDelta(t, 500, Centre.onBox(r.Events[0].Object.Box).X, 1e-3)
}

// TestPresentObjectsAreReported: an object that is only weak counts for a second, as one that is lost does.
func TestPresentObjectsAreReported(t *testing.T) {
	a := open(t, Config{Zones: []Zone{field}})
	present := func(frame int, score float32) int {
		a.Confidence = .5
		a.Update(uint64(frame), at(frame), []postprocess.Track{scored(1, 500, 250, score)})
		return a.Present()[0]
	}
	assert.Zero(t, present(0, .3), "never reported")
	assert.Equal(t, 1, present(1, .8))
	for frame := 2; frame <= 11; frame++ {
		assert.Equal(t, 1, present(frame, .3), "frame %d", frame)
	}
	assert.Zero(t, present(12, .3))
	assert.Equal(t, 1, present(13, .8), "the same object again")
	assert.Equal(t, 1, present(6000, .3), "minutes in which nothing moved")
}

// TestConfidenceChangesAtOnce: what a changed confidence hides or shows counts from the next frame on.
func TestConfidenceChangesAtOnce(t *testing.T) {
	a := open(t, Config{Lines: []Line{middle}, Objects: Objects{Update: time.Millisecond}})
	update := func(frame int, confidence float32, x float64) []happened {
		a.Confidence = confidence
		return events(a.Update(uint64(frame), at(frame*10), []postprocess.Track{scored(1, x, 250, .4)}))
	}
	update(0, .25, 550)
	assert.Equal(t, []happened{{Update, 1, -1, ""}, {Cross, 1, 0, In}}, update(1, .25, 450))
	assert.Empty(t, update(2, .6, 550), "raised")
	assert.Zero(t, a.Present()[0])
	assert.Empty(t, update(3, .6, 450))
	assert.Equal(t, []happened{{Update, 1, -1, ""}}, update(4, .25, 440), "lowered")
	assert.Equal(t, []happened{{Update, 1, -1, ""}, {Cross, 1, 0, Out}}, update(5, .4, 550))
	assert.Equal(t, 1, a.Present()[0])
}

// TestPartialBoxesDoNotCross: objects of 40x100 pixels are reported on each side of a post of 20 pixels in turn, or change their size.
func TestPartialBoxesDoNotCross(t *testing.T) {
	box := func(x1, y1, x2, y2 float64) postprocess.Box {
		return postprocess.Box{X1: float32(x1), Y1: float32(y1), X2: float32(x2), Y2: float32(y2)}
	}
	behindPost := func(centre float64, left bool) postprocess.Box {
		b := box(centre-20, 200, centre+20, 300)
		switch {
		case b.X2 <= 490 || b.X1 >= 510:
		case left && b.X1 < 487 || b.X2 <= 513:
			b.X2 = min(b.X2, 490)
		default:
			b.X1 = max(b.X1, 510)
		}
		return b
	}
	for _, c := range []struct {
		name    string
		line    Line
		frames  int
		box     func(frame int) postprocess.Box
		in, out int
	}{
		{"behind the post to the right", middle, 60, func(f int) postprocess.Box { return behindPost(400+4*float64(f), f%2 == 0) }, 0, 1},
		{"behind the post to the left", middle, 60, func(f int) postprocess.Box { return behindPost(600-4*float64(f), f%2 == 0) }, 1, 0},
		{"behind the post and back", middle, 50, func(f int) postprocess.Box {
			return behindPost(400+4*float64(min(f, 50-f)), f%2 == 0)
		}, 0, 0},
		{"stands behind the post", middle, 70, func(f int) postprocess.Box { return behindPost(400+4*float64(min(f, 25)), f%2 == 0) }, 0, 0},
		{
			"recedes", Line{Name: "road", From: Point{0, 0.5}, To: Point{1, 0.5}}, 30, func(f int) postprocess.Box {
				scale := 1 - 0.025*float64(f) // to a quarter, in three seconds
				return box(500-20*scale, 100+300*scale, 500+20*scale, 100+400*scale)
			}, 0, 1,
		},
		{
			"leaves at the edge", Line{Name: "exit", From: Point{0.97, 0}, To: Point{0.97, 1}}, 30, func(f int) postprocess.Box {
				x := 900 + 4*float64(f)
				return box(x-20, 200, min(x+20, 1000), 300)
			}, 0, 1,
		},
		{
			"turns beyond the line", middle, 60, func(f int) postprocess.Box { // a car of 120 pixels that is 40 wide from behind
				x, half := 400+3*float64(min(f, 45)), 60.0
				if f > 40 {
					half = 20
				}
				return box(x-half, 200, x+half, 250)
			}, 0, 1,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := open(t, Config{Lines: []Line{c.line}})
			for frame := range c.frames {
				track := seen(1, 0, 0, 0)
				track.Box = c.box(frame)
				a.Update(uint64(frame), at(frame), []postprocess.Track{track})
			}
			assert.Equal(t, [2]int{c.in, c.out}, [2]int{a.Line(0).In[0], a.Line(0).Out[0]})
		})
	}
}

// TestClassesBeyondTheLabels: objects of classes without a name are counted as the others are.
func TestClassesBeyondTheLabels(t *testing.T) {
	a := open(t, Config{Lines: []Line{middle}, Zones: []Zone{{Name: "field", Points: field.Points, Inertia: 1}}})
	a.Update(0, at(0), []postprocess.Track{seen(1, 550, 250, 1), seen(2, 550, 350, 5)})
	r := a.Update(1, at(1), []postprocess.Track{seen(1, 450, 250, 1), seen(2, 450, 350, 5)})
	assert.Equal(t, []Change{{Inward, 0, 1, 1}, {Inward, 0, 5, 1}}, r.Changes)
	assert.Equal(t, []int{0, 1, 0, 0, 0, 1}, a.Line(0).In)
	assert.Equal(t, []int{0, 1, 0, 0, 0, 1}, a.Zone(0).Occupied)
	assert.Equal(t, []int{0, 1, 0, 0, 0, 1}, a.Present())
}
