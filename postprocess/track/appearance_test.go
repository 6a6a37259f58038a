package track

import (
	"math"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/postprocess"
)

// facing is a vector that points so many degrees away from the first axis.
func facing(degrees float64) []float32 {
	sin, cos := math.Sincos(degrees * math.Pi / 180)
	return []float32{float32(cos), float32(sin)}
}

// stage is a tracker of people who stand still, 100 pixels apart, with an embedding in every frame in which they are visible.
type stage struct {
	*Tracker
	frame int
}

// show plays frames with people by position, each with an embedding, and returns the last tracks.
func (s *stage) show(frames int, people map[int]float64) (tracks []postprocess.Track) {
	for range frames {
		var found []postprocess.Detection
		for place := range 10 {
			if _, there := people[place]; there {
				found = append(found, detection(float32(100*place), 150, 40, 200, 0.9, 0))
			}
		}
		s.frame++
		tracks = s.Update(at(s.frame), found)
		for i := range tracks {
			if tracks[i].Index >= 0 {
				s.UpdateEmbedding(tracks[i].ID, facing(people[int(tracks[i].X1+30)/100]))
			}
		}
	}
	return tracks
}

func TestReidentification(t *testing.T) {
	s := &stage{Tracker: open(t, Tracker{MaxLostAge: 10 * time.Second})}
	require.Equal(t, []uint64{1, 2}, ids(s.show(30, map[int]float64{1: 0, 3: 90}), postprocess.Active))
	ended := s.show(31, map[int]float64{3: 90})
	require.Equal(t, []uint64{1}, ids(ended, postprocess.Ended), "nobody else looks like it, and its time is over")
	s.show(60, map[int]float64{3: 90})

	tracks := s.show(1, map[int]float64{3: 90, 7: 20})
	require.Equal(t, []uint64{3}, ids(tracks, postprocess.Tentative))
	tracks = s.show(1, map[int]float64{3: 90, 7: 20})
	require.Equal(t, []uint64{1, 2}, ids(tracks, postprocess.Active), "somewhere else, and it looks much as it did")
	require.Equal(t, at(1), tracks[0].First)
	require.Equal(t, 32, tracks[0].Hits)

	tracks = s.show(3, map[int]float64{3: 90, 7: 20, 9: 180})
	require.Equal(t, []uint64{1, 2, 4}, ids(tracks, postprocess.Active), "somebody new is held no longer than the look takes")

	s.show(35, map[int]float64{3: 90})
	tracks = s.show(2, map[int]float64{3: 90, 7: 180})
	require.Equal(t, []uint64{2, 4}, ids(tracks, postprocess.Active))
	s.show(35, map[int]float64{3: 90})
	s.show(11*30, map[int]float64{3: 90})
	tracks = s.show(3, map[int]float64{3: 90, 5: 180})
	require.Equal(t, []uint64{2, 6}, ids(tracks, postprocess.Active), "after the time it is somebody new")
}

// A new track without embeddings is reported late, but reported.
func TestWithoutEmbeddings(t *testing.T) {
	s := &stage{Tracker: open(t, Tracker{})}
	s.show(30, map[int]float64{1: 0})
	s.show(40, nil)
	active := 0
	for frame := range 30 {
		s.frame++
		tracks := s.Update(at(s.frame), []postprocess.Detection{detection(500, 50, 40, 80, 0.9, 0)})
		if len(ids(tracks, postprocess.Active)) > 0 {
			active = frame
			break
		}
	}
	require.Equal(t, 15, active, "half a second")
}

// An object at the position of a lost one with another embedding is another object, possibly one that was lost elsewhere.
func TestOtherObjectAtSamePosition(t *testing.T) {
	s := &stage{Tracker: open(t, Tracker{})}
	s.show(60, map[int]float64{1: 0, 3: 90})
	s.show(20, nil)
	tracks := s.show(1, map[int]float64{1: 90})
	require.Equal(t, []uint64{1}, ids(tracks, postprocess.Active), "motion alone")
	tracks = s.show(1, map[int]float64{1: 90})
	require.Equal(t, []uint64{2}, ids(tracks, postprocess.Active), "looks")
	tracks = s.show(3, map[int]float64{1: 90, 3: 0})
	require.Equal(t, []uint64{1, 2}, ids(tracks, postprocess.Active))
}

// A briefly lost object with a different embedding, as of a partial view, keeps its identity by motion.
func TestEmbeddingsOfLowScoresAreIgnored(t *testing.T) {
	tracker := open(t, Tracker{NewTrackThreshold: 0.6})
	for frame := range 40 {
		tracker.Update(at(frame), []postprocess.Detection{detection(100, 50, 40, 80, 0.9, 0)})
		tracker.UpdateEmbedding(1, facing(0))
	}
	for frame := 40; frame < 50; frame++ {
		tracker.Update(at(frame), nil)
	}
	tracker.Update(at(50), []postprocess.Detection{detection(100, 50, 40, 80, 0.5, 0)})
	tracker.UpdateEmbedding(1, facing(180))
	require.Equal(t, []uint64{1}, ids(tracker.Update(at(51), []postprocess.Detection{detection(100, 50, 40, 80, 0.9, 0)}), postprocess.Active))
	tracker.UpdateEmbedding(1, facing(180))
	tracks := tracker.Update(at(52), []postprocess.Detection{detection(100, 50, 40, 80, 0.9, 0)})
	require.NotEqual(t, []uint64{1}, ids(tracks, postprocess.Active))
}

// Motion may confuse two objects without losing either. A track whose embeddings do not match for a while is another object; one that was
// occluded for a moment is not, and its appearance does not change.
func TestMismatchSplitsIdentity(t *testing.T) {
	s := &stage{Tracker: open(t, Tracker{})}
	s.show(60, map[int]float64{1: 0, 2: 90})
	for range 20 {
		require.Equal(t, []uint64{1, 2}, ids(s.show(8, map[int]float64{1: 60, 2: 90}), postprocess.Active))
		require.Equal(t, []uint64{1, 2}, ids(s.show(2, map[int]float64{1: 0, 2: 90}), postprocess.Active))
	}
	require.Greater(t, cosine(s.objects[0].appearance.mean, facing(0)), float32(0.999))
	tracks := s.show(12, map[int]float64{1: 90, 2: 0})
	require.Equal(t, []uint64{1, 2}, ids(tracks, postprocess.Active), "they changed places")
	require.Greater(t, tracks[0].X1, tracks[1].X1)
	require.Equal(t, at(1), tracks[0].First)
}

// The first embedding may show the occluder: the embeddings of the first second decide.
func TestLateEmbeddingsReidentify(t *testing.T) {
	s := &stage{Tracker: open(t, Tracker{})}
	s.show(30, map[int]float64{1: 0, 3: 90})
	s.show(40, map[int]float64{3: 90})
	require.Equal(t, []uint64{2, 3}, ids(s.show(4, map[int]float64{1: 60, 3: 90}), postprocess.Active))
	require.Equal(t, []uint64{1, 2}, ids(s.show(12, map[int]float64{1: 10, 3: 90}), postprocess.Active))
}

// An object is not re-identified if it cannot have come that far, however similar. Ended tracks move with the camera.
func TestUnreachableTrackIsNotReidentified(t *testing.T) {
	for _, turned := range []float64{0, 600} {
		s := &stage{Tracker: open(t, Tracker{})}
		s.show(60, map[int]float64{1: 0})
		s.show(40, nil)
		s.CompensateMotion(Affine{A: 1, C: turned, E: 1})
		want := []uint64{2}
		if turned > 0 {
			want = []uint64{1}
		}
		require.Equal(t, want, ids(s.show(3, map[int]float64{7: 0}), postprocess.Active))
	}
}

// The rate of embeddings does not change the moving average.
func TestEmbeddingsWeighByTime(t *testing.T) {
	var remembered [][]float32
	for _, every := range []int{1, 15} {
		tracker := open(t, Tracker{})
		for frame := range 600 {
			tracker.Update(at(frame), []postprocess.Detection{detection(100, 50, 40, 80, 0.9, 0)})
			if frame%every == 0 {
				tracker.UpdateEmbedding(1, facing(float64(frame)/20))
			}
		}
		remembered = append(remembered, slices.Clone(tracker.objects[0].appearance.mean))
	}
	require.Greater(t, cosine(remembered[0], remembered[1]), float32(0.9995))
}

func TestEndedTracksAreBounded(t *testing.T) {
	s := &stage{Tracker: open(t, Tracker{MaxLostAge: time.Hour})}
	s.show(3, map[int]float64{0: 0})
	for range maxEnded + 20 {
		s.show(3, map[int]float64{1: 90})
		for i := range s.objects { // each has another embedding
			s.objects[i].appearance.mean[0], s.objects[i].appearance.mean[1] = 0, 0
		}
		s.show(35, nil)
	}
	require.Len(t, s.ended, maxEnded)
	s.UpdateEmbedding(s.next, []float32{1, 0, 0})
	s.show(1, map[int]float64{1: 0})
	s.UpdateEmbedding(s.next, []float32{1, 0, 0})
	require.Empty(t, s.ended, "vectors of another network say nothing of those before")
	require.Equal(t, 3, s.embeddingSize)
	s.Reset()
	require.Zero(t, s.embeddingSize)
}

// TestUpdateEmbeddingAllocatesNothing once there were as many as there are: people come, go and come back, and motion takes one for
// another.
func TestUpdateEmbeddingAllocatesNothing(t *testing.T) {
	s := &stage{Tracker: open(t, Tracker{})}
	scenes := []map[int]float64{{1: 0, 3: 90, 5: 180}, {3: 0, 5: 90}, {}, {1: 90, 5: 0}, {7: 180}}
	vectors := map[float64][]float32{0: facing(0), 90: facing(90), 180: facing(180)}
	var found []postprocess.Detection
	next := func() {
		s.frame++
		people := scenes[s.frame/40%len(scenes)]
		found = found[:0]
		for place := range 10 {
			if _, there := people[place]; there {
				found = append(found, detection(float32(100*place), 150, 40, 200, 0.9, 0))
			}
		}
		for _, track := range s.Update(at(s.frame), found) {
			if track.Index >= 0 {
				s.UpdateEmbedding(track.ID, vectors[people[int(track.X1+30)/100]])
			}
		}
	}
	for range 3000 {
		next()
	}
	require.Zero(t, testing.AllocsPerRun(1000, next))
}

// BenchmarkUpdateEmbedding is a frame of 50 objects, one in fifteen with an embedding (twice a second at 30 fps) of 512 numbers, and with
// 64 ended tracks.
func BenchmarkUpdateEmbedding(b *testing.B) {
	crowd := newCrowd(50, 3)
	tracker := open(b, Tracker{MaxLostAge: time.Hour})
	vectors := make([][]float32, 100)
	for i := range vectors {
		vectors[i] = make([]float32, 512)
		vectors[i][i] = 1
	}
	frames := make([][]postprocess.Detection, 2000)
	for i := range frames {
		frames[i] = crowd.step(nil, 0.05)
	}
	frame := 0
	next := func() {
		for _, track := range tracker.Update(at(frame), frames[frame%len(frames)]) {
			if (frame+int(track.ID))%15 == 0 {
				tracker.UpdateEmbedding(track.ID, vectors[track.ID%100])
			}
		}
		frame++
	}
	for range 2000 {
		next()
	}
	for i := len(tracker.ended); i < maxEnded; i++ {
		tracker.addEnded(&postprocess.Track{Last: at(frame)}, &appearance{mean: tracker.newMean(), weight: 1})
	}
	b.ReportAllocs()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := used(b)
	for b.Loop() {
		next()
	}
	b.ReportMetric(float64(used(b)-before)/float64(b.N)/1e3, "cpu-us/op")
}
