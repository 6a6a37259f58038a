package record

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/postprocess/zone"
)

// continuous runs a simulation of one camera that is recorded continuously. start makes the camera send a video until stop is called.
func continuous(t *testing.T, run func(s *simulation, start func(codec string) (stop func()))) {
	videos := map[string]*simulated{}
	for _, codec := range []string{"libx264", "libx265"} {
		videos[codec] = &simulated{video: encode(t, codec, 4, time.Second, "-vf", "scale=64:48")}
	}
	directory := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		c := &simulated{name: "gate"}
		s := newSimulation(t, directory, []*simulated{c})
		s.recorder.SetCameras([]Camera{{Name: "gate", Source: c, Continuous: true}})
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() { _ = s.recorder.Run(ctx) })
		run(s, func(codec string) func() {
			playing, stop := context.WithCancel(ctx)
			c.video = videos[codec].video
			var played sync.WaitGroup
			played.Go(func() { s.play(playing, c, nil) })
			return func() {
				stop()
				played.Wait()
			}
		})
		cancel()
		all.Wait()
		s.recorder.Close()
		for _, clip := range s.index.all() {
			require.Equal(t, Closed, clip.State)
			check(t, s.recorder.file(&clip), &clip)
		}
		require.Empty(t, s.recorder.Status().Reason)
		require.Zero(t, s.recorder.Status().Failures)
	})
	probeClips(t, directory)
}

// recordings returns the rows of continuous recordings, oldest first.
func (s *simulation) recordings() (all []Clip) {
	for _, clip := range s.index.all() {
		if len(clip.Events) == 0 {
			all = append(all, clip)
		}
	}
	return all
}

// TestContinuousRecording: files of a minute follow each other without a gap, beside the clips of events. A jump of the time of day and
// another codec begin a new file, and a silent camera ends the one it was in.
func TestContinuousRecording(t *testing.T) {
	continuous(t, func(s *simulation, start func(string) func()) {
		c := s.cameras[0]
		stop := start("libx264")
		time.Sleep(10 * time.Second)
		o := &zone.Object{Track: 1, Start: time.Now()}
		s.event(c, zone.New, o)
		time.Sleep(70 * time.Second)
		s.event(c, zone.End, o)
		time.Sleep(120 * time.Second)
		s.recording()
		s.wallJump.Store(int64(24 * time.Hour))
		time.Sleep(20 * time.Second)
		stop()
		stop = start("libx265")
		time.Sleep(20 * time.Second)
		stop()
		time.Sleep(2 * time.Minute)
		require.False(t, s.recorder.Status().Cameras["gate"].Recording)

		files := s.recordings()
		require.Len(t, files, 6)
		for i, length := range []float64{60, 60, 60, 20, 20, 20} {
			assert.Equal(t, Closed, files[i].State)
			assert.InDelta(t, length, files[i].Duration.Seconds(), 1.1, "file %d", i)
			assert.Equal(t, i == 5, strings.HasPrefix(files[i].Codec, "h"), files[i].Codec)
			if i > 0 && i < 4 {
				assert.InDelta(t, 0, files[i].Start.Sub(files[i-1].Start.Add(files[i-1].Duration)).Seconds(), 0.001)
			}
		}
		assert.InDelta(t, 24*time.Hour.Seconds(), files[4].Start.Sub(files[3].Start.Add(files[3].Duration)).Seconds(), 0.001)
		clips := s.index.all()
		require.Len(t, clips, 7)
		assert.Equal(t, uint64(1), s.recorder.Status().Recorded, "clips of events")
	})
}

// TestSettingsOfContinuousRecording change while the camera goes on; clips of events are independent of them.
func TestSettingsOfContinuousRecording(t *testing.T) {
	continuous(t, func(s *simulation, start func(string) func()) {
		c := s.cameras[0]
		stop := start("libx264")
		event := func() {
			o := &zone.Object{Track: uint64(len(s.index.all())), Start: time.Now()}
			s.event(c, zone.New, o)
			s.event(c, zone.End, o)
			time.Sleep(20 * time.Second)
		}
		count := func(recordings, clips int) {
			t.Helper()
			assert.Len(t, s.recordings(), recordings)
			assert.Len(t, s.index.all(), recordings+clips)
		}
		time.Sleep(10 * time.Second)
		event()
		count(1, 1)
		s.recorder.SetCameras([]Camera{{Name: "gate", Source: c}})
		time.Sleep(5 * time.Second)
		assert.Equal(t, Closed, s.recordings()[0].State)
		event()
		count(1, 2)
		s.recorder.SetCameras([]Camera{{Name: "gate", Source: c, Continuous: true, WithoutClips: true}})
		time.Sleep(5 * time.Second)
		event()
		count(2, 2)
		stop()
	})
}

// TestContinuousRecordingIsBounded: the oldest files make room for the newest, and a pinned one stays.
func TestContinuousRecordingIsBounded(t *testing.T) {
	continuous(t, func(s *simulation, start func(string) func()) {
		stop := start("libx264")
		time.Sleep(90 * time.Second)
		first := s.recordings()[0]
		require.NotZero(t, first.Bytes)
		s.index.mu.Lock()
		pinned := s.index.clips[first.ID]
		pinned.Pinned = true
		s.index.clips[first.ID] = pinned
		s.index.mu.Unlock()
		s.recorder.quota.mu.Lock()
		s.recorder.quota.maxBytes = 4 * first.Bytes
		s.recorder.quota.mu.Unlock()
		time.Sleep(10 * time.Minute)
		stop()
		files := s.recordings()
		assert.LessOrEqual(t, len(files), 4)
		assert.GreaterOrEqual(t, len(files), 3)
		assert.Equal(t, first.ID, files[0].ID)
		assert.Greater(t, files[1].Start.Sub(first.Start), 6*time.Minute)
		_, size := s.recorder.quota.usage()
		assert.LessOrEqual(t, size, 4*first.Bytes)
	})
}
