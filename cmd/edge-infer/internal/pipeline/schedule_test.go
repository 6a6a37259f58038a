package pipeline

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/engine"
)

// timed is a camera of a simulation: its newest frame follows from the clock.
type timed struct {
	world   *world
	period  int64
	arrival []int64 // of each frame, with jitter
	at      int     // frames that have been taken or replaced
	still   func(at int64) bool

	captured, displaced int
	stopped             bool
}

// Take implements Source.
func (c *timed) Take() (capture.Frame, bool) {
	newest := c.at
	for newest < len(c.arrival) && c.arrival[newest] <= c.world.now {
		newest++
	}
	if newest == c.at || c.stopped {
		return capture.Frame{}, false
	}
	c.captured += newest - c.at
	c.displaced += newest - c.at - 1
	c.at = newest
	at := c.arrival[newest-1]
	f := capture.Frame{Seq: uint64(newest - 1), Captured: at, Time: time.Unix(0, at), Width: 8, Height: 8, Stride: 8, Format: engine.GRAY8}
	f.Data = c.world.pixels[:]
	f.Still = c.still != nil && c.still(at)
	return f, true
}

// world is a simulation of a frame loop with one slot: no goroutine, no clock but its own.
type world struct {
	*Pipeline
	now     int64
	pixels  [64]byte
	cameras []*timed
	random  *rand.Rand

	inferred map[string]int
	ages     []time.Duration // of the frames at the start of their request
}

const simulated = int64(60 * time.Second)

func newWorld(t *testing.T, batch int) *world {
	w := &world{random: rand.New(rand.NewPCG(7, 11)), inferred: map[string]int{}}
	w.Pipeline = open(t, newSlowEngine(0, batch), nil, nil, Camera{Name: "none", Source: &boxCamera{}})
	w.schedule.now = func() int64 { return w.now }
	w.Pipeline.Cameras = nil
	return w
}

// camera adds one of so many frames a second, whose times jitter by a share of the time between two.
func (w *world) camera(fps, jitter float64, share Scheduling) *timed {
	period := int64(float64(time.Second) / fps)
	c := &timed{world: w, period: period}
	phase := w.random.Int64N(period)
	for at := int64(1); at*period < simulated+period; at++ {
		c.arrival = append(c.arrival, max(at*period+phase+int64(jitter*float64(period)*(w.random.Float64()-0.5)), 1))
	}
	slices.Sort(c.arrival)
	w.cameras = append(w.cameras, c)
	w.Pipeline.Cameras = append(w.Pipeline.Cameras, Camera{Name: fmt.Sprint(len(w.cameras) - 1), Source: c, Scheduling: share})
	return c
}

// run lets the simulated time pass; service is how long a request of so many frames takes, each tells of the time.
func (w *world) run(t *testing.T, service func(frames int) time.Duration, each func()) {
	streams, err := w.newStreams(nil, w.Pipeline.Cameras, nil)
	require.NoError(t, err)
	w.streams.Store(&streams)
	for w.now = int64(time.Second); w.now < simulated; {
		if each != nil {
			each()
		}
		f := &w.requests[0]
		if !w.gather(f) {
			w.now = w.next()
			continue
		}
		seen := map[string]int{}
		for i := range f.frames {
			w.ages = append(w.ages, time.Duration(w.now-f.frames[i].Captured))
			name := f.streams[i].Name
			w.inferred[name]++
			seen[name]++
			require.Equal(t, 1, seen[name], "a camera has one frame in a request")
		}
		took := service(len(f.frames))
		w.now += int64(took)
		for i := range f.frames {
			l := f.streams[i]
			tooLate := l.Deadline > 0 && w.now-f.frames[i].Captured > int64(l.Deadline)
			if l.Deadline > 0 {
				w.schedule.relief.count(tooLate)
			}
			l.meter.frame(time.Duration(w.now-f.frames[i].Captured), 0, tooLate, false)
		}
	}
}

// next is when the next frame comes.
func (w *world) next() int64 {
	soonest := w.now + int64(time.Millisecond)
	for _, c := range w.cameras {
		if c.at < len(c.arrival) && c.arrival[c.at] > w.now {
			soonest = min(soonest, c.arrival[c.at])
		}
	}
	return soonest
}

func (w *world) counts() (all []int) {
	for i := range w.cameras {
		all = append(all, w.inferred[fmt.Sprint(i)])
	}
	return all
}

func fairness(counts []int) float64 {
	return float64(slices.Min(counts)) / float64(slices.Max(counts))
}

// every is a request that takes as long, however many frames it has.
func every(took time.Duration) func(int) time.Duration {
	return func(int) time.Duration { return took }
}

func TestOverloadIsSharedFairly(t *testing.T) {
	for _, cameras := range []int{2, 3, 8, 33} {
		for _, batch := range []int{1, 4, 8} {
			for _, load := range []float64{1.02, 1.3, 3} {
				t.Run(fmt.Sprintf("cameras=%d/batch=%d/load=%g", cameras, batch, load), func(t *testing.T) {
					w := newWorld(t, batch)
					for range cameras {
						w.camera(30, 0.5, Scheduling{})
					}
					request := time.Duration(load * float64(batch) * float64(time.Second) / 30 / float64(cameras))
					w.run(t, every(request), nil)
					assert.GreaterOrEqual(t, fairness(w.counts()), 0.97, w.counts())
					for i, c := range w.cameras {
						waits := 0
						if _, ok := c.Take(); ok {
							waits = 1
						}
						assert.Equal(t, c.captured, w.inferred[fmt.Sprint(i)]+c.displaced+waits, "captured = inferred + displaced + waiting")
					}
					slices.Sort(w.ages)
					// A frame is replaced by the next one: none that waits is older than the longest time between two, jitter included.
					p99 := w.ages[len(w.ages)*99/100]
					assert.LessOrEqual(t, float64(p99), 1.5*float64(time.Second)/30, "age when the request begins")
				})
			}
		}
	}
}

// B14 of the project's bars: an engine three times slower than the camera, frames without jitter.
func TestOverloadNeverQueues(t *testing.T) {
	for _, cameras := range []int{1, 4, 16} {
		w := newWorld(t, 1)
		for range cameras {
			w.camera(30, 0, Scheduling{})
		}
		w.run(t, every(100*time.Millisecond), nil)
		slices.Sort(w.ages)
		p99 := w.ages[len(w.ages)*99/100]
		require.LessOrEqual(t, float64(p99), 1.05*float64(time.Second)/30, "%d cameras", cameras)
		// A queue of four in front of the engine would make a frame wait for four requests.
		require.Greater(t, 4*100*time.Millisecond, 4*p99)
	}
}

func TestUnequalCamerasGetWhatTheyAskUpToAnEqualShare(t *testing.T) {
	w := newWorld(t, 1)
	for _, fps := range []float64{5, 30, 30, 60} {
		w.camera(fps, 0.3, Scheduling{})
	}
	w.run(t, every(time.Second/50), nil) // 50 a second: 5, and 15 for each of the others
	seconds := float64(simulated)/1e9 - 1
	for i, want := range []float64{5, 15, 15, 15} {
		assert.InEpsilon(t, want, float64(w.counts()[i])/seconds, 0.02, w.counts())
	}
}

func TestPriorityIsAWeight(t *testing.T) {
	w := newWorld(t, 2)
	for _, priority := range []int{0, 1, 2, 4} {
		w.camera(100, 0.2, Scheduling{Priority: priority})
	}
	w.run(t, every(time.Second/40), nil) // 80 a second
	one := float64(w.counts()[0])
	for i, want := range []float64{1, 1, 2, 4} {
		assert.InEpsilon(t, want, float64(w.counts()[i])/one, 0.03, w.counts())
	}
}

func TestACameraThatStopsOrComesBackLeavesTheOthersTheirRate(t *testing.T) {
	at := func(t *testing.T, stall bool) []int {
		w := newWorld(t, 4)
		for range 4 {
			w.camera(30, 0.4, Scheduling{})
		}
		w.run(t, func(frames int) time.Duration { return time.Duration(frames) * time.Second / 240 }, func() {
			w.cameras[3].stopped = stall && w.now/int64(2*time.Second)%2 == 0
		})
		return w.counts()[:3]
	}
	healthy, beside := at(t, false), at(t, true)
	for i := range healthy {
		assert.InEpsilon(t, healthy[i], beside[i], 0.01)
	}
}

func TestRate(t *testing.T) {
	for _, c := range []struct{ fps, rate, want float64 }{
		{30, 10, 10}, {25, 10, 10}, {30, 7.5, 7.5}, {30, 30, 30}, {30, 60, 30}, {10, 0.5, 0.5}, {60, 24, 24},
	} {
		w := newWorld(t, 1)
		w.camera(c.fps, 0.2, Scheduling{Rate: c.rate})
		w.run(t, every(time.Millisecond), nil)
		assert.InEpsilon(t, c.want, float64(w.counts()[0])/(float64(simulated)/1e9-1), 0.02, "%g of %g", c.rate, c.fps)
	}
}

func TestHeatLowersTheRateStepByStep(t *testing.T) {
	for _, factor := range []int{1, 4, 8} {
		w := newWorld(t, 1)
		w.camera(30, 0.1, Scheduling{})
		w.camera(30, 0.1, Scheduling{Rate: 16})
		w.SetSlowdown(factor)
		w.run(t, every(time.Millisecond), nil)
		seconds := float64(simulated)/1e9 - 1
		assert.InEpsilon(t, 30/float64(factor), float64(w.counts()[0])/seconds, 0.02)
		assert.InEpsilon(t, 16/float64(factor), float64(w.counts()[1])/seconds, 0.02)
		assert.Equal(t, factor, w.Totals()[0].Slowdown)
	}
}

func TestCamerasWithADeadlineAreRelievedOfTheOthers(t *testing.T) {
	w := newWorld(t, 8)
	w.camera(30, 0.1, Scheduling{Deadline: 60 * time.Millisecond})
	for range 7 {
		w.camera(30, 0.1, Scheduling{})
	}
	// Each frame of a request takes 7 ms: eight take 56, and with the time before the request is free they are late.
	perFrame := func(frames int) time.Duration { return time.Duration(frames) * 7 * time.Millisecond }
	highest := 0
	var lateBefore, framesBefore uint64
	w.run(t, perFrame, func() {
		highest = max(highest, w.schedule.relief.factor())
		if framesBefore == 0 && w.now > simulated/2 {
			before := w.Totals()[0]
			lateBefore, framesBefore = before.DeadlineMissed+before.DroppedDeadline, before.Inferred
		}
	})
	total := w.Totals()[0]
	share := float64(total.DeadlineMissed+total.DroppedDeadline-lateBefore) / float64(total.Inferred-framesBefore)
	assert.Greater(t, highest, 1)
	assert.Less(t, share, 0.2, "late frames of the second half: %+v", total)
	assert.Greater(t, w.counts()[0], w.counts()[1])
	for i := range 7 {
		assert.Positive(t, w.counts()[i+1], "none starves")
	}
}

func TestAFrameThatIsTooOldIsLeftOut(t *testing.T) {
	w := newWorld(t, 1)
	w.camera(10, 0, Scheduling{Deadline: 20 * time.Millisecond})
	w.camera(10, 0, Scheduling{})
	w.run(t, every(45*time.Millisecond), nil)
	total := w.Totals()[0]
	assert.Equal(t, total.Inferred, total.DeadlineMissed, "a request takes longer than the deadline, so all results are late")
	assert.Positive(t, total.DroppedDeadline)
	assert.Zero(t, total.DroppedInterval, "each frame is dropped for one reason")
	for i := range w.ages {
		assert.LessOrEqual(t, w.ages[i], 100*time.Millisecond)
	}
}

func TestAStillImageIsLeftOutButForTheFloor(t *testing.T) {
	w := newWorld(t, 1)
	c := w.camera(30, 0.2, Scheduling{MinRate: 1})
	moves := func(at int64) bool { return at > 20*int64(time.Second) && at < 30*int64(time.Second) }
	c.still = func(at int64) bool { return !moves(at) }
	w.run(t, every(time.Millisecond), nil)
	total := w.Totals()[0]
	assert.InEpsilon(t, 10*30+49, float64(total.Inferred), 0.03, "every frame while something moves, one a second while nothing does")
	assert.EqualValues(t, c.captured-c.displaced, total.Inferred+total.DroppedMotion)
	assert.Zero(t, total.DroppedInterval)
}

func TestReliefRisesFastAndFallsSlowly(t *testing.T) {
	var r relief
	var factors []int
	for second := range 40 {
		for i := range 100 {
			r.count(second < 5 && i < 2)
		}
		r.step(int64(second+1) * int64(time.Second))
		factors = append(factors, r.factor())
	}
	assert.Equal(t, []int{2, 4, 8, 8, 8, 8, 8, 8, 8, 4, 4, 4, 4, 4, 2}, factors[:15])
	assert.Equal(t, 1, factors[39])
}
