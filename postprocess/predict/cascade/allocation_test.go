//go:build !race

package cascade_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/postprocess/predict/cascade"
)

// The race detector allocates on its own. Objects come and go and have another size each time.
func TestNoAllocations(t *testing.T) {
	a := attend(t, nil, cascade.Stage{Name: "colour", Predictor: colours(t, 4), Interval: time.Millisecond, Margin: 0.1},
		cascade.Stage{Name: "person", Predictor: embedder(t, 4), Interval: time.Millisecond, KeepEmbedding: true})
	defer a.Close()
	f := newVideo("gate", 4)
	numbers := 0
	f.frame.OnEmbedding = func(_ uint64, vector []float32) { numbers += len(vector) }
	for i := range f.frame.Tracks {
		f.show(i, "green")
	}
	frame, told := 0, 0
	next := func() {
		frame++
		for i := range f.frame.Tracks {
			track := &f.frame.Tracks[i]
			track.X2 = track.X1 + float32(20+(7*frame+11*i)%30)
			track.ID = uint64(frame/20*4 + i + 1)
		}
		f.frame.Time = f.frame.Time.Add(40 * time.Millisecond)
		a.Process(&f.frame)
		told += len(a.Attributes("gate", f.frame.Tracks[0].ID))
		numbers += len(a.Embedding("gate", f.frame.Tracks[0].ID))
	}
	for range 100 {
		next()
	}
	require.Zero(t, testing.AllocsPerRun(100, next))
	require.Equal(t, frame, told)
	require.Equal(t, (4+1)*3*frame, numbers, "three of each object's look, and of one that is asked for")
}

// Texts are put together anew in every look; as long as they say the same, nothing is allocated for them.
func TestTextsNoAllocations(t *testing.T) {
	a := attend(t, nil, cascade.Stage{Name: "plate", Predictor: reader(t), Interval: time.Millisecond})
	defer a.Close()
	f := newVideo("gate", 2)
	f.write(0, "RGB")
	f.write(1, "GGB")
	read := 0
	next := func() {
		f.frame.Time = f.frame.Time.Add(40 * time.Millisecond)
		a.Process(&f.frame)
		for i := range f.frame.Tracks {
			for _, said := range a.Attributes("gate", f.frame.Tracks[i].ID) {
				read += len(said.Value)
			}
		}
	}
	for range 100 {
		next()
	}
	before := read
	require.Zero(t, testing.AllocsPerRun(100, next))
	require.Equal(t, 101*(len("RGB")+len("GB")), read-before)
}

// BenchmarkCameras is 4 cameras of 1280x720 with 10 objects each, all of which are looked at in every frame: what it costs the frame loop,
// and what the looks take. The network is nothing to speak of, so that the cutting and the letterbox remain.
func BenchmarkCameras(b *testing.B) {
	for _, batch := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("batch%d", batch), func(b *testing.B) {
			a := attend(b, nil, cascade.Stage{Name: "colour", Predictor: colours(b, batch), Interval: time.Millisecond})
			defer a.Close()
			var videos []*video
			for i := range 4 {
				f := newVideo(fmt.Sprint(i), 10)
				for k := range 10 {
					f.show(k, "green")
				}
				f.frame.Wait = i == 3
				videos = append(videos, f)
			}
			begun, loop := time.Now(), time.Duration(0)
			for b.Loop() {
				for _, f := range videos {
					at := time.Now()
					f.frame.Time = f.frame.Time.Add(time.Second)
					a.Process(&f.frame)
					if !f.frame.Wait {
						loop += time.Since(at)
					}
				}
			}
			stats := a.Stats()[0]
			b.ReportMetric(float64(time.Since(begun).Microseconds())/float64(stats.Crops), "us/object")
			b.ReportMetric(float64(loop.Microseconds())/float64(30*b.N), "us-of-loop/object")
			b.ReportMetric(float64(stats.Crops)/float64(stats.Requests), "objects/request")
			b.ReportMetric(0, "ns/op")
		})
	}
}
