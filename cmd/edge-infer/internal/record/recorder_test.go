package record

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bluenviron/mediacommon/v2/pkg/formats/fmp4"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/postprocess/zone"
)

var (
	simulatedEvents = flag.Int("events", 240, "events of TestSimulatedCameras")
	probedClips     = flag.Int("probed", 40, "clips of TestSimulatedCameras that ffprobe reads")
	keptClips       = flag.String("keep", "", "directory for the clips that ffprobe reads")
)

// simulation is a set of cameras in the time of a synctest bubble.
type simulation struct {
	t        *testing.T
	recorder *Recorder
	index    *memoryIndex
	start    time.Time
	wallJump atomic.Int64 // of the time of day
	offsets  []time.Duration
	cameras  []*simulated
}

// simulated is a camera.
type simulated struct {
	name   string
	video  []capture.Unit
	gop    time.Duration
	ring   atomic.Pointer[capture.Ring]
	faulty bool

	mu   sync.Mutex
	keys []int64 // Received of key frames
	due  []int64 // when they would have been received without stalls
}

func (c *simulated) Ring() *capture.Ring { return c.ring.Load() }

// keyFrames returns the number of key frames so far.
func (c *simulated) keyFrames() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.keys)
}

func newSimulation(t *testing.T, directory string, cameras []*simulated) *simulation {
	s := &simulation{t: t, index: newIndex(), start: time.Now(), cameras: cameras, offsets: []time.Duration{0}}
	s.recorder = &Recorder{
		Directory: directory, Index: s.index, Settings: Settings{Before: 5 * time.Second, After: 8 * time.Second, MaxBytes: 1 << 40},
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
		now:    func() int64 { return 1 + int64(time.Since(s.start)) },
	}
	s.recorder.wall = func() time.Time {
		return time.Unix(0, s.recorder.now()).Add(time.Duration(s.wallJump.Load()))
	}
	s.recorder.quota.space = func(string) (int64, int64, error) { return 1 << 50, 1 << 50, nil }
	var settings []Camera
	for _, c := range cameras {
		settings = append(settings, Camera{Name: c.name, Source: c})
	}
	s.recorder.Open(settings)
	return s
}

// play sends a camera's video in a loop until ctx ends. A faulty one stalls, loses its connection and sets its clock.
func (s *simulation) play(ctx context.Context, c *simulated, random *rand.Rand) {
	length := c.video[len(c.video)-1].PTS + 40*time.Millisecond
	keep := s.recorder.KeepUnits()
	ring := &capture.Ring{Keep: keep}
	c.ring.Store(ring)
	var jump, lost time.Duration
	begun := time.Now()
	for n := 0; ctx.Err() == nil; n++ {
		unit := c.video[n%len(c.video)]
		due := time.Duration(n/len(c.video))*length + time.Duration(unit.Received)
		time.Sleep(due - time.Since(begun)) // after a stall all that has waited comes at once
		if c.faulty {
			switch random.IntN(4000) {
			case 0, 1, 2:
				time.Sleep(time.Duration(random.IntN(6000)) * time.Millisecond)
			case 3:
				jump += time.Duration(random.IntN(3)-1) * 24 * time.Hour
			case 4: // the connection is lost, with the images of 3 s
				if unit.Key {
					ring.End(errors.New("lost"))
					time.Sleep(3 * time.Second)
					lost = time.Since(begun)
					ring = &capture.Ring{Keep: keep}
					c.ring.Store(ring)
					jump = -due
				}
			}
		}
		if lost > 0 && due < lost-100*time.Millisecond || lost > 0 && !unit.Key {
			continue // the new connection begins with a key frame
		}
		lost = 0
		unit.PTS += time.Duration(n/len(c.video))*length + jump
		unit.Received = s.recorder.now()
		if unit.Key {
			c.mu.Lock()
			c.keys = append(c.keys, unit.Received)
			c.due = append(c.due, unit.Received-int64(time.Since(begun)-due))
			c.mu.Unlock()
		}
		ring.Put(unit)
	}
	ring.End(io.EOF)
}

// event passes an event of an object to the recorder, as the frame loop does.
func (s *simulation) event(c *simulated, kind zone.Kind, o *zone.Object) {
	s.recorder.Frame(&pipeline.Result{
		Camera: c.name, Captured: s.recorder.now(), Labels: []string{"person"},
		Events: &zone.Result{Events: []zone.Event{{Kind: kind, Object: o, Zone: -1, Line: -1}}},
	})
}

// check verifies a file: every fragment is whole and begins where the one before ends, and no image is out of order.
func check(t testing.TB, path string, clip *Clip) {
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, clip.Bytes, int64(len(data)))
	found, err := readContents(bytes.NewReader(data), int64(len(data)))
	require.NoError(t, err)
	require.Equal(t, clip.Bytes, found.size, "nothing follows the last fragment")
	require.InDelta(t, clip.Duration.Seconds(), found.duration.Seconds(), 0.001)
	var parts fmp4.Parts
	require.NoError(t, parts.Unmarshal(data))
	end := uint64(0)
	for i, part := range parts {
		track := part.Tracks[0]
		require.GreaterOrEqual(t, track.BaseTime, end)
		require.NotZero(t, len(track.Samples))
		if i == 0 {
			require.Zero(t, track.BaseTime)
			require.False(t, track.Samples[0].IsNonSyncSample, "a file begins with a key frame")
		}
		end = track.BaseTime
		for _, sample := range track.Samples {
			end += uint64(sample.Duration)
		}
	}
}

// TestSimulatedCameras records events of cameras with GOPs of 0.5 to 10 s, with and without B-frames, with stalls, lost connections and
// clocks that jump by a day: camera clocks and the time of day.
func TestSimulatedCameras(t *testing.T) {
	var cameras []*simulated
	tiny := []string{"-vf", "scale=64:48"}
	for i, gop := range []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second} {
		h264 := encode(t, "libx264", 20, gop, tiny...)
		reordered := encode(t, "libx264", 20, gop, append(tiny, "-bf", "2", "-x264-params", "b-adapt=0")...)
		h265 := encode(t, "libx265", 20, gop, tiny...)
		for j, video := range [][]capture.Unit{h264, reordered, h265, h264} {
			cameras = append(cameras, &simulated{name: fmt.Sprintf("camera %d-%d", i, j), video: video, gop: gop, faulty: j > 0})
		}
	}
	directory := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := newSimulation(t, directory, cameras)
		var checked atomic.Int64
		s.index.closed = func(clip *Clip) {
			if clip.State != Closed {
				return
			}
			path := s.recorder.file(clip)
			check(t, path, clip)
			if checked.Add(1) > int64(*probedClips) {
				_ = os.Truncate(path, 0) // so many clips are large
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		var all, events sync.WaitGroup
		all.Go(func() { _ = s.recorder.Run(ctx) })
		var mu sync.Mutex
		wanted := map[string]int64{} // when each event was
		for i, c := range cameras {
			random := rand.New(rand.NewPCG(1, uint64(i)))
			all.Go(func() { s.play(ctx, c, random) })
			events.Go(func() {
				random := rand.New(rand.NewPCG(2, uint64(i)))
				time.Sleep(20 * time.Second)
				for n := range *simulatedEvents / len(cameras) {
					time.Sleep(time.Duration(random.IntN(60000)) * time.Millisecond)
					o := &zone.Object{Track: uint64(1000*i + n), Start: time.Now()}
					mu.Lock()
					wanted[c.name+"/"+o.ID()] = s.recorder.now()
					mu.Unlock()
					s.event(c, zone.New, o)
					if random.IntN(3) == 0 {
						time.Sleep(time.Duration(random.IntN(30000)) * time.Millisecond)
					}
					s.event(c, zone.End, o)
				}
			})
		}
		all.Go(func() { // the time of day is set
			for n := 1; ctx.Err() == nil; n++ {
				select {
				case <-ctx.Done():
				case <-time.After(7 * time.Minute):
					s.wallJump.Store(int64(24 * time.Hour * time.Duration(n%3)))
				}
			}
		})
		events.Wait()
		time.Sleep(20 * time.Second)
		cancel()
		all.Wait()
		s.recorder.Close()
		s.verify(wanted)
	})
	probeClips(t, directory)
}

// shown is a stretch of a camera's time in a clip, CLOCK_MONOTONIC.
type shown struct {
	received int64 // first image
	from, to int64 // as the camera sent it: after a stall, what is shown was received in a moment
}

// begins returns when a clip begins and what the camera should have been recorded from, CLOCK_MONOTONIC; false if it does not begin with
// the key frame before that time. The time of day has been set by whole days since.
func (c *simulated) begins(clip *Clip) (start shown, requested int64, ok bool) {
	for day := range 3 {
		offset := int64(24 * time.Hour * time.Duration(day))
		received, requested := clip.Start.UnixNano()-offset, clip.Requested.UnixNano()-offset
		next, _ := slices.BinarySearch(c.keys, received+1) // after a stall several key frames arrive at once
		if next == 0 || c.keys[next-1] != received {
			continue
		}
		start = shown{received: received, from: c.due[next-1], to: c.due[next-1] + int64(clip.Duration)}
		// The next key frame comes after the requested time, so that less than one GOP too much is in the clip.
		return start, requested, received > requested || next == len(c.keys) || c.keys[next] > requested
	}
	return shown{}, 0, false
}

// verify compares the clips with the events.
func (s *simulation) verify(wanted map[string]int64) {
	t := s.t
	clips := s.index.all()
	found := map[string][]shown{}
	names := map[string]bool{}
	late := 0
	for i := range clips {
		clip := &clips[i]
		require.Equal(t, Closed, clip.State)
		require.False(t, names[clip.Path])
		names[clip.Path] = true
		c := s.camera(clip.Camera)
		start, requested, ok := c.begins(clip)
		assert.True(t, ok, "%s: %s begins at %s, requested %s", clip.Camera, clip.ID, clip.Start, clip.Requested)
		if start.received > requested {
			assert.True(t, c.faulty, "%s was there at the requested time", clip.Camera) // others may just have reconnected
			late++
		}
		assert.NotZero(t, clip.Duration)
		for _, id := range clip.Events {
			found[clip.Camera+"/"+id] = append(found[clip.Camera+"/"+id], start)
		}
	}
	several := 0
	for event, at := range wanted {
		name, _, _ := strings.Cut(event, "/")
		s.verifyEvent(event, at, found[event], s.camera(name))
		if len(found[event]) > 1 {
			several++
		}
	}
	assert.LessOrEqual(t, late, 1+len(clips)/100)
	assert.Empty(t, s.recorder.Status().Reason)
	assert.Zero(t, s.recorder.missed.Load())
	assert.Zero(t, s.recorder.failures.Load())
	t.Logf("%d events, %d clips, %d of them begin after the requested time, %d events in more than one", len(wanted), len(clips), late, several)
}

// worstGap is how long a faulty camera may show nothing: a stall, a lost connection and a GOP.
const worstGap = int64(19 * time.Second)

// verifyEvent requires that an event is shown, from before it until after it, and that nothing is shown twice.
func (s *simulation) verifyEvent(event string, at int64, clips []shown, c *simulated) {
	if !assert.NotEmpty(s.t, clips, "%s at %s has no clip", event, time.Duration(at)) {
		return
	}
	slices.SortFunc(clips, func(a, b shown) int { return cmp.Compare(a.from, b.from) })
	gap := int64(0)
	if c.faulty {
		gap = worstGap
	}
	end := clips[len(clips)-1].to
	assert.LessOrEqual(s.t, clips[0].received, at+gap, "%s is before its clip", event)
	assert.GreaterOrEqual(s.t, end, at+int64(s.recorder.After)-int64(time.Second)-gap, "%s ends before its time", event)
	for i := range clips[1:] {
		assert.GreaterOrEqual(s.t, clips[i+1].from, clips[i].to-int64(lateness), "%s is shown twice", event)
	}
}

// camera returns a camera by its name.
func (s *simulation) camera(name string) *simulated {
	return s.cameras[slices.IndexFunc(s.cameras, func(c *simulated) bool { return c.name == name })]
}

// probeClips reads the clips with ffprobe.
func probeClips(t *testing.T, directory string) {
	paths, err := filepath.Glob(filepath.Join(directory, "*", "*.mp4"))
	require.NoError(t, err)
	probed := 0
	for _, path := range paths {
		info, err := os.Stat(path)
		require.NoError(t, err)
		if info.Size() == 0 {
			continue
		}
		frames, _, seconds := probe(t, path)
		assert.NotZero(t, frames)
		assert.NotZero(t, seconds)
		probed++
		if *keptClips != "" {
			data, err := os.ReadFile(path)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(*keptClips, fmt.Sprintf("clip%d.mp4", probed)), data, 0o644))
		}
	}
	t.Logf("ffprobe has read %d clips", probed)
	assert.NotZero(t, probed)
}
