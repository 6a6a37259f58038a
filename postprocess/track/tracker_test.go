package track

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/edge-infer/edge-infer/postprocess"
)

var start = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)

// at is the capture time of a frame of a 30 Hz camera.
func at(frame int) time.Time { return start.Add(time.Duration(frame) * time.Second / 30) }

func detection(x, y, w, h, score float32, class int) postprocess.Detection {
	return postprocess.Detection{Box: postprocess.Box{X1: x - w/2, Y1: y - h/2, X2: x + w/2, Y2: y + h/2}, Score: score, Class: class}
}

func open(t testing.TB, tracker Tracker) *Tracker {
	t.Helper()
	require.NoError(t, tracker.Open())
	return &tracker
}

// TestGoldenSequenceEqualsByteTrack compares with a plain ByteTrack, which gives lost tracks no low scores and knows no buffered boxes:
// what it calls one object is one here too, and hardly anything that it follows is not followed.
func TestGoldenSequenceEqualsByteTrack(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "golden.json"))
	require.NoError(t, err)
	var frames []struct {
		Detections [][5]float32
		Tracks     [][2]int
	}
	require.NoError(t, json.Unmarshal(text, &frames))
	require.Len(t, frames, 150)
	tracker := open(t, Tracker{HighThreshold: 0.5, LowThreshold: 0.1, NewTrackThreshold: 0.6, TrackBuffer: 31500 * time.Millisecond / 30})
	together := map[int]map[int]int{} // frames in which a track of ByteTrack's was one of these; 0 is none
	both, total, ours := 0, 0, 0
	for n, frame := range frames {
		var detections []postprocess.Detection
		for _, v := range frame.Detections {
			detections = append(detections, postprocess.Detection{Box: postprocess.Box{X1: v[0], Y1: v[1], X2: v[2], Y2: v[3]}, Score: v[4]})
		}
		found := map[int]int{}
		for _, track := range tracker.Update(at(n), detections) {
			if track.State == postprocess.Active && track.Index >= 0 {
				found[track.Index] = int(track.ID)
			}
		}
		ours += len(found)
		for _, theirs := range frame.Tracks {
			if together[theirs[0]] == nil {
				together[theirs[0]] = map[int]int{}
			}
			together[theirs[0]][found[theirs[1]]]++
			total++
		}
	}
	for _, of := range together {
		most := 0
		for id, n := range of {
			if id != 0 {
				most = max(most, n)
			}
		}
		both += most
	}
	t.Logf("%d of %d as ByteTrack has it, %d followed", both, total, ours)
	assert.Greater(t, len(together), 12)
	assert.Greater(t, float64(both), 0.95*float64(total))
	assert.GreaterOrEqual(t, ours, total)
}

func ids(tracks []postprocess.Track, state postprocess.TrackState) []uint64 {
	var out []uint64
	for _, track := range tracks {
		if track.State == state {
			out = append(out, track.ID)
		}
	}
	return out
}

func TestLifeOfATrack(t *testing.T) {
	tracker := open(t, Tracker{TrackBuffer: 300 * time.Millisecond})
	assert.Empty(t, tracker.Update(at(0), nil))
	object := detection(100, 100, 40, 40, 0.9, 2)

	tracks := tracker.Update(at(1), []postprocess.Detection{object})
	require.Len(t, tracks, 1)
	assert.Equal(t, postprocess.Track{ID: 1, Detection: object, State: postprocess.Tentative, Index: 0, Hits: 1, First: at(1), Last: at(1)},
		tracks[0])

	tracks = tracker.Update(at(2), []postprocess.Detection{object})
	assert.Equal(t, []uint64{1}, ids(tracks, postprocess.Active))
	assert.Equal(t, 2, tracks[0].Hits)

	tracks = tracker.Update(at(3), nil)
	assert.Equal(t, []uint64{1}, ids(tracks, postprocess.Lost))
	assert.Equal(t, -1, tracks[0].Index)
	assert.Equal(t, at(2), tracks[0].Last)

	// It comes back with the same number, on a low score too.
	weak := object
	weak.Score = 0.15
	assert.Equal(t, []uint64{1}, ids(tracker.Update(at(4), []postprocess.Detection{weak}), postprocess.Active))
	assert.Equal(t, []uint64{1}, ids(tracker.Update(at(5), []postprocess.Detection{object}), postprocess.Active))
	assert.Equal(t, []uint64{1}, ids(tracker.Update(at(6), []postprocess.Detection{weak}), postprocess.Active))

	for frame := 7; frame <= 15; frame++ {
		assert.Equal(t, []uint64{1}, ids(tracker.Update(at(frame), nil), postprocess.Lost))
	}
	assert.Equal(t, []uint64{1}, ids(tracker.Update(at(16), nil), postprocess.Ended))
	assert.Empty(t, tracker.Update(at(17), nil))

	// A false alarm of one frame is never reported as anything but tentative.
	assert.Equal(t, []uint64{2}, ids(tracker.Update(at(18), []postprocess.Detection{object}), postprocess.Tentative))
	assert.Empty(t, tracker.Update(at(19), nil))
}

func TestObjectsOfTheFirstFrameAreActive(t *testing.T) {
	tracker := open(t, Tracker{})
	tracks := tracker.Update(at(0), []postprocess.Detection{detection(100, 100, 40, 40, 0.9, 2)})
	assert.Equal(t, []uint64{1}, ids(tracks, postprocess.Active))
}

func TestTrackBufferEndsTracks(t *testing.T) {
	tracker := open(t, Tracker{})
	object := []postprocess.Detection{detection(100, 100, 40, 40, 0.9, 2)}
	tracker.Update(at(0), object)
	tracks := tracker.Update(at(300), object)
	assert.Equal(t, []uint64{1}, ids(tracks, postprocess.Ended))
	assert.Equal(t, []uint64{2}, ids(tracks, postprocess.Tentative))
}

func TestPredictionFollowsSkippedFrames(t *testing.T) {
	tracker := open(t, Tracker{})
	const speed = 6 // pixels per frame
	for frame := 0; frame < 90; frame++ {
		if frame%3 != 0 {
			tracks := tracker.Predict(at(frame))
			require.Equal(t, []uint64{1}, ids(tracks, postprocess.Active))
			if frame > 30 {
				want := detection(float32(100+speed*frame), 100, 40, 40, 0.9, 0)
				require.Greater(t, tracks[0].IoU(want.Box), float32(0.95), "frame %d", frame)
				require.InDelta(t, speed*30, tracks[0].VX, 5)
				require.InDelta(t, 0, tracks[0].VY, 1)
				require.Equal(t, -1, tracks[0].Index)
			}
			continue
		}
		tracks := tracker.Update(at(frame), []postprocess.Detection{detection(float32(100+speed*frame), 100, 40, 40, 0.9, 0)})
		require.Equal(t, []uint64{1}, ids(tracks, postprocess.Active))
	}
}

func TestClasses(t *testing.T) {
	object := func(class int) []postprocess.Detection {
		return []postprocess.Detection{detection(100, 100, 40, 40, 0.9, class)}
	}
	tracker := open(t, Tracker{})
	for frame, class := range []int{3, 3, 5, 3, 5, 3} {
		tracks := tracker.Update(at(frame), object(class))
		require.Equal(t, []uint64{1}, ids(tracks, postprocess.Active))
		assert.Equal(t, 3, tracks[0].Class, "frame %d", frame)
	}
	for frame := 6; frame < 12; frame++ {
		tracker.Update(at(frame), object(5))
	}
	tracks := tracker.Update(at(12), object(9))
	assert.Equal(t, 5, tracks[0].Class)
}

func TestOpenErrors(t *testing.T) {
	for _, c := range []struct {
		tracker Tracker
		want    string
	}{
		{
			Tracker{HighThreshold: 0.5, LowThreshold: 0.6}, "open tracker: scores must rise from low to high to new, within 0 and 1; they are 0.6, 0.5, 0.6",
		},
		{
			Tracker{
				NewTrackThreshold: float32(math.NaN()),
			}, "open tracker: scores must rise from low to high to new, within 0 and 1; they are 0.1, 0.25, NaN",
		},
		{Tracker{Width: -1}, "open tracker: image of -1x0"},
		{Tracker{TrackBuffer: -time.Second}, "open tracker: track buffer -1s is negative"},
	} {
		assert.EqualError(t, c.tracker.Open(), c.want)
	}
}

// crowd is a number of objects that move across an image and bounce off its edges.
type crowd struct {
	random *rand.Rand
	x, y   []float32
	vx, vy []float32
}

func newCrowd(n int, seed uint64) *crowd {
	c := &crowd{random: rand.New(rand.NewPCG(seed, 1))}
	for range n {
		c.x, c.y = append(c.x, c.random.Float32()*1900), append(c.y, c.random.Float32()*1000)
		c.vx, c.vy = append(c.vx, c.random.Float32()*8-4), append(c.vy, c.random.Float32()*8-4)
	}
	return c
}

func (c *crowd) step(dst []postprocess.Detection, miss float32) []postprocess.Detection {
	for i := range c.x {
		c.x[i], c.y[i] = c.x[i]+c.vx[i], c.y[i]+c.vy[i]
		if c.x[i] < 0 || c.x[i] > 1900 {
			c.vx[i] = -c.vx[i]
		}
		if c.y[i] < 0 || c.y[i] > 1000 {
			c.vy[i] = -c.vy[i]
		}
		if c.random.Float32() >= miss {
			dst = append(dst, detection(c.x[i]+c.random.Float32(), c.y[i], 40, 60, 0.3+0.7*c.random.Float32(), i%5))
		}
	}
	return dst
}

// TestProperties feeds random crowds with misses, broken boxes, dropped and repeated frames and checks what must hold after every call.
func TestProperties(t *testing.T) {
	for seed := range uint64(20) {
		crowd := newCrowd(5+int(seed)*3, seed)
		tracker := open(t, Tracker{})
		random := rand.New(rand.NewPCG(seed, 2))
		ended := map[uint64]bool{}
		newest := uint64(0)
		clock := 0
		for range 300 {
			detections := crowd.step(nil, 0.1)
			if random.IntN(10) == 0 {
				nan := float32(math.NaN())
				detections = append(detections, detection(nan, 10, 40, 60, 0.9, 0), detection(10, 10, -5, 60, 0.9, 0), detection(10, 10, 5, 60, nan, 0),
					detection(float32(math.Inf(1)), 10, 40, 60, 0.9, 0), detection(10, 10, float32(math.Inf(1)), 60, 0.9, 1<<30))
			}
			clock += random.IntN(4) - 1 + random.IntN(2)
			var tracks []postprocess.Track
			if random.IntN(4) == 0 {
				tracks = tracker.Predict(at(clock))
			} else {
				tracks = tracker.Update(at(clock), detections)
			}
			used, before := map[int]bool{}, uint64(0)
			for _, track := range tracks {
				require.Greater(t, track.ID, before, "tracks come in the order of their ids, each once")
				before = track.ID
				require.False(t, ended[track.ID], "id %d was used again", track.ID)
				if track.Index >= 0 {
					require.False(t, used[track.Index], "one detection, two tracks")
					used[track.Index] = true
					require.Equal(t, detections[track.Index].Box, track.Box)
				}
				require.True(t, track.X1 < track.X2 && track.Y1 < track.Y2, "%+v", track)
				require.False(t, math.IsNaN(float64(track.VX+track.VY)))
				ended[track.ID] = track.State == postprocess.Ended
				newest = max(newest, track.ID)
			}
			require.True(t, slices.IsSortedFunc(tracks, func(a, b postprocess.Track) int { return a.First.Compare(b.First) }))
		}
		require.NotZero(t, newest)
	}
}

// TestCameraJitterKeepsIDs shakes the whole image.
func TestCameraJitterKeepsIDs(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 5))
	tracker := open(t, Tracker{})
	for frame := range 200 {
		dx, dy := random.Float32()*20-10, random.Float32()*20-10
		var detections []postprocess.Detection
		for i := range 8 {
			// Every object is missing now and then, in turn; the jitter is a quarter of a side.
			if frame > 2 && (frame+5*i)%40 < 4 {
				continue
			}
			detections = append(detections, detection(float32(100+200*i)+dx+2*float32(frame), 300+dy, 40, 40, 0.9, 0))
		}
		tracks := tracker.Update(at(frame), detections)
		require.Len(t, tracks, 8, "frame %d", frame)
		for _, track := range tracks {
			require.LessOrEqual(t, track.ID, uint64(8), "frame %d", frame)
		}
	}
}

// TestCompensateMotionKeepsIDs turns and zooms so far between two images that nothing stays near its place. One is hidden then.
func TestCompensateMotionKeepsIDs(t *testing.T) {
	turn := Affine{A: 1.1, B: 0.02, C: -160, D: -0.02, E: 1.1, F: 90}
	for _, told := range []bool{true, false} {
		tracker := open(t, Tracker{})
		places := [][2]float32{{300, 300}, {500, 320}, {700, 300}, {1400, 500}}
		newest := uint64(0)
		for frame := range 30 {
			var detections []postprocess.Detection
			for i, p := range places {
				if frame == 20 && told {
					p[0], p[1] = turn.point(p[0], p[1])
					places[i] = p
				} else if frame == 20 {
					places[i][0] += 100 * float32(i+1) // no jump that all take part in alike
				}
				if i > 0 || frame < 19 || frame > 22 {
					detections = append(detections, detection(places[i][0], places[i][1], 40, 80, 0.9, 0))
				}
			}
			if frame == 20 && told {
				tracker.CompensateMotion(turn)
			}
			for _, track := range tracker.Update(at(frame), detections) {
				newest = max(newest, track.ID)
			}
		}
		if told {
			assert.EqualValues(t, len(places), newest)
		} else {
			assert.Greater(t, newest, uint64(len(places)), "the same without a word is no test")
		}
	}
}

func TestUpdateAllocatesNothing(t *testing.T) {
	crowd := newCrowd(100, 3)
	tracker := open(t, Tracker{})
	detections := make([]postprocess.Detection, 0, 100)
	frame := 0
	run := func() {
		detections = crowd.step(detections[:0], 0.05)
		tracker.CompensateMotion(Affine{A: 1, C: 0.1, E: 1})
		tracker.Update(at(frame), detections)
		tracker.Predict(at(frame).Add(time.Millisecond))
		frame++
	}
	for range 300 {
		run()
	}
	assert.Zero(t, testing.AllocsPerRun(100, run))
}

// used returns the CPU time of this thread in nanoseconds, which does not depend on the load of the machine.
func used(b *testing.B) int64 {
	var spent unix.Timespec
	require.NoError(b, unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &spent))
	return spent.Nano()
}

func BenchmarkUpdate(b *testing.B) {
	for _, n := range []int{50, 100} {
		b.Run(map[int]string{50: "objects=50", 100: "objects=100"}[n], func(b *testing.B) {
			crowd := newCrowd(n, 3)
			tracker := open(b, Tracker{})
			frames := make([][]postprocess.Detection, 2000)
			for i := range frames {
				frames[i] = crowd.step(nil, 0.05)
			}
			frame := 0
			b.ReportAllocs()
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			before := used(b)
			for b.Loop() {
				tracker.Update(at(frame), frames[frame%len(frames)])
				frame++
			}
			b.ReportMetric(float64(used(b)-before)/float64(b.N)/1e3, "cpu-us/op")
		})
	}
}

// TestIDsSurviveOcclusion sends an object behind a post that is wider than itself, so that it shrinks to nothing on one side and grows from
// nothing on the other.
func TestIDsSurviveOcclusion(t *testing.T) {
	const side, speed, postFrom, postTo = 60, 4, 400, 500
	for _, classes := range [][2]int{{1, 1}, {1, 2}} {
		tracker := open(t, Tracker{TrackBuffer: 3 * time.Second})
		tracker.Update(at(0), nil)
		vanished := 0
		for frame := range 200 {
			low, high := float32(100+speed*frame), float32(100+speed*frame+side)
			if low >= postFrom && low < postTo {
				low = min(postTo, high)
			}
			if high > postFrom && high <= postTo {
				high = max(postFrom, low)
			}
			class := classes[0]
			if high-low < side/2 && low >= postTo {
				class = classes[1] // half of it is misclassified
			}
			var detections []postprocess.Detection
			if high-low >= side/5 {
				detections = append(detections, detection((low+high)/2, 100, high-low, side, 0.8, class))
			} else {
				vanished++
			}
			for _, track := range tracker.Update(at(frame+1), detections) {
				require.Equal(t, uint64(1), track.ID, "frame %d", frame)
			}
		}
		require.Greater(t, vanished, 10)
	}
}

func TestDuplicateOfOtherClassIsIgnored(t *testing.T) {
	tracker := open(t, Tracker{})
	for frame := range 10 {
		x := float32(100 + 3*frame)
		detections := []postprocess.Detection{
			detection(x, 100, 40, 40, 0.6, 1), detection(x+1, 101, 40, 40, 0.5, 2), detection(x+2, 99, 40, 40, 0.6, 3),
		}
		tracks := tracker.Update(at(frame), detections)
		require.Equal(t, []uint64{1}, ids(tracks, postprocess.Active))
		require.Len(t, tracks, 1)
		require.Equal(t, 1, tracks[0].Class)
	}
}

func TestLostTracksEndOutsideTheImage(t *testing.T) {
	for width, want := range map[int]postprocess.TrackState{0: postprocess.Lost, 640: postprocess.Ended} {
		tracker := open(t, Tracker{TrackBuffer: time.Minute, Width: width, Height: width})
		for frame := range 30 {
			tracker.Update(at(frame), []postprocess.Detection{detection(float32(320+10*frame), 100, 40, 40, 0.9, 0)})
		}
		var last postprocess.TrackState
		for frame := 30; frame < 60; frame++ {
			for _, track := range tracker.Update(at(frame), nil) {
				last = track.State
			}
		}
		assert.Equal(t, want, last)
	}
}

// TestWeakDetectionsOnlyMoveATrack: detections of the second stage keep a track alive and move it, and its class stays.
func TestWeakDetectionsOnlyMoveATrack(t *testing.T) {
	tracker := open(t, Tracker{})
	update := func(frame int, x, score float32, class int) postprocess.Track {
		tracks := tracker.Update(at(frame), []postprocess.Detection{detection(x, 100, 40, 40, score, class)})
		require.Len(t, tracks, 1)
		return tracks[0]
	}
	update(0, 100, 0.8, 2)
	for frame := 1; frame < 60; frame++ {
		got := update(frame, 100+float32(frame), 0.2, 1)
		require.Equal(t, postprocess.Active, got.State)
		require.Equal(t, 2, got.Class)
		require.InDelta(t, 100+float32(frame), got.X1, 20)
	}
	// The first stage's threshold falls: the same boxes are reported now.
	tracker.SetThresholds(0.1, 0.15)
	class := 2
	for frame := 60; frame < 70; frame++ {
		class = update(frame, 100+float32(frame), 0.2, 1).Class
	}
	require.Equal(t, 1, class)
}

func TestAnObjectThatLeavesItsBoxBetweenTwoFrames(t *testing.T) {
	tracker := Tracker{}
	require.NoError(t, tracker.Open())
	start := time.Unix(0, 0)
	var tracks []postprocess.Track
	for n := range 5 {
		left := 100 + 40*float32(n) // its own width
		box := postprocess.Box{X1: left, Y1: 100, X2: left + 40, Y2: 200}
		tracks = tracker.Update(start.Add(time.Duration(n)*200*time.Millisecond), []postprocess.Detection{{Box: box, Score: 0.9}})
	}
	require.Len(t, tracks, 1)
	assert.Equal(t, uint64(1), tracks[0].ID)
	assert.Equal(t, 5, tracks[0].Hits)
}
