package record

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess/zone"
)

// badFile is a file on a disk with faults.
type badFile struct {
	file
	fault func() error // before each write
}

func (f *badFile) Write(data []byte) (int, error) {
	if err := f.fault(); err != nil {
		n, _ := f.file.Write(data[:len(data)/2]) // a full disk takes a part
		return n, err
	}
	return f.file.Write(data)
}

// play1 runs a simulation of one camera with one object that moves for a time.
func play1(t *testing.T, prepare func(s *simulation), moving time.Duration, meanwhile func(s *simulation)) {
	video := encode(t, "libx264", 4, time.Second, "-vf", "scale=64:48")
	directory := filepath.Join(t.TempDir(), "clips")
	synctest.Test(t, func(t *testing.T) {
		c := &simulated{name: "gate", video: video}
		s := newSimulation(t, directory, []*simulated{c})
		prepare(s)
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() { _ = s.recorder.Run(ctx) })
		all.Go(func() { s.play(ctx, c, nil) })
		time.Sleep(10 * time.Second)
		o := &zone.Object{Track: 1, Start: time.Now()}
		s.event(c, zone.New, o)
		ended := make(chan struct{})
		all.Go(func() {
			time.Sleep(moving)
			s.event(c, zone.End, o)
			close(ended)
		})
		meanwhile(s)
		<-ended
		time.Sleep(30 * time.Second)
		cancel()
		all.Wait()
		s.recorder.Close()
		for _, clip := range s.index.all() {
			require.NotEqual(t, Open, clip.State)
			if clip.State == Closed {
				check(t, s.recorder.file(&clip), &clip)
			} else {
				require.NoFileExists(t, s.recorder.file(&clip))
			}
		}
	})
}

// recording requires that the camera is recorded.
func (s *simulation) recording() {
	status := s.recorder.Status().Cameras["gate"]
	require.True(s.t, status.Recording)
	require.Empty(s.t, status.Reason)
}

// TestFullDisk: recording stops while the disk is full, keeps what is written, and goes on afterwards.
func TestFullDisk(t *testing.T) {
	var full atomic.Bool
	play1(t, func(s *simulation) {
		s.recorder.create = func(path string) (file, error) {
			f, err := createFile(path)
			return &badFile{f, func() error {
				if full.Load() {
					return syscall.ENOSPC
				}
				return nil
			}}, err
		}
	}, time.Minute, func(s *simulation) {
		time.Sleep(20 * time.Second)
		full.Store(true)
		time.Sleep(10 * time.Second)
		require.Equal(t, "no space left on device", s.recorder.Status().Cameras["gate"].Reason)
		full.Store(false)
		time.Sleep(10 * time.Second)
		s.recording()
		clips := s.index.all()
		require.GreaterOrEqual(t, len(clips), 2)
		first, last := &clips[0], &clips[len(clips)-1]
		assert.Equal(t, Closed, first.State)
		assert.InDelta(t, 26, first.Duration.Seconds(), 2)
		assert.Equal(t, first.Events, last.Events)
		assert.Greater(t, last.Start.Sub(first.Start.Add(first.Duration)), -2*time.Second, "at most a GOP is there twice")
	})
}

// TestHangingDisk: while a write hangs, neither the frame loop nor the camera waits; afterwards the clip goes on with a gap if the ring was
// too small.
func TestHangingDisk(t *testing.T) {
	hang := make(chan struct{})
	var hanging atomic.Bool
	play1(t, func(s *simulation) {
		hang = make(chan struct{}) // of the bubble
		s.recorder.create = func(path string) (file, error) {
			f, err := createFile(path)
			return &badFile{f, func() error {
				if hanging.Load() {
					<-hang
				}
				return nil
			}}, err
		}
	}, 2*time.Minute, func(s *simulation) {
		time.Sleep(10 * time.Second)
		hanging.Store(true)
		time.Sleep(5 * time.Second)
		keys := s.cameras[0].keyFrames()
		for n := range 1000 { // events go on, and take no time
			before := time.Now()
			s.event(s.cameras[0], zone.New, &zone.Object{Track: uint64(100 + n), Start: time.Now()})
			s.event(s.cameras[0], zone.End, &zone.Object{Track: uint64(100 + n), Start: time.Now()})
			require.Zero(t, time.Since(before))
			time.Sleep(20 * time.Millisecond)
		}
		assert.GreaterOrEqual(t, s.cameras[0].keyFrames(), keys+19, "the camera's packets go on")
		hanging.Store(false)
		close(hang)
		time.Sleep(10 * time.Second)
		status := s.recorder.Status()
		assert.Empty(t, status.Cameras["gate"].Reason)
		assert.GreaterOrEqual(t, status.Slowest, 20*time.Second)
		assert.NotZero(t, status.Cameras["gate"].Skipped)
		assert.Zero(t, status.Missed)
		clip := s.index.all()[0]
		assert.Len(t, clip.Events, 1001)
	})
}

// TestSlowDisk: with a disk that takes half of what 16 cameras send, images are missing in their clips and nothing else happens; a clip of
// the time after it has them all.
func TestSlowDisk(t *testing.T) {
	video := encode(t, "libx264", 4, time.Second, "-vf", "scale=64:48")
	size := 0
	for i := range video {
		size += len(video[i].Data)
	}
	directory := filepath.Join(t.TempDir(), "clips")
	synctest.Test(t, func(t *testing.T) {
		var cameras []*simulated
		for i := range 16 {
			cameras = append(cameras, &simulated{name: fmt.Sprint("camera", i), video: video})
		}
		s := newSimulation(t, directory, cameras)
		disk := s.recorder.SlowDisk(int64(16 * size / 4 / 2))
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() { _ = s.recorder.Run(ctx) })
		for _, c := range cameras {
			all.Go(func() { s.play(ctx, c, nil) })
		}
		time.Sleep(10 * time.Second)
		events := func(track uint64, length time.Duration) {
			for i, c := range cameras {
				before := time.Now()
				s.event(c, zone.New, &zone.Object{Track: track + uint64(i), Start: before})
				require.Zero(t, time.Since(before), "the frame loop does not wait")
			}
			time.Sleep(length)
			for i, c := range cameras {
				s.event(c, zone.End, &zone.Object{Track: track + uint64(i)})
			}
		}
		events(100, 2*time.Minute)
		slow := s.recorder.Status()
		for _, c := range cameras {
			assert.Greater(t, c.keyFrames(), 125, "the camera's packets go on")
			assert.NotZero(t, slow.Cameras[c.name].Skipped)
			assert.Empty(t, slow.Cameras[c.name].Reason)
		}
		time.Sleep(time.Minute)
		disk.rate.Store(1 << 40)
		time.Sleep(time.Minute)
		before := s.recorder.Status()
		events(200, time.Minute)
		time.Sleep(20 * time.Second)
		cancel()
		all.Wait()
		s.recorder.Close()
		after := s.recorder.Status()
		for _, c := range cameras {
			assert.Equal(t, before.Cameras[c.name].Skipped, after.Cameras[c.name].Skipped)
		}
		assert.Zero(t, after.Missed)
		assert.Zero(t, after.Failures)
		clips := s.index.all()
		assert.GreaterOrEqual(t, len(clips), 2*len(cameras))
		for i := range clips {
			require.Equal(t, Closed, clips[i].State)
			check(t, s.recorder.file(&clips[i]), &clips[i])
		}
	})
}

// TestRemovedDirectory: clips end with the disk and begin again with it, and nothing is written below its mount point.
func TestRemovedDirectory(t *testing.T) {
	play1(t, func(*simulation) {}, 15*time.Second, func(s *simulation) {
		directory := s.recorder.Directory
		time.Sleep(40 * time.Second)
		require.NoError(t, os.Rename(directory, directory+"-unplugged"))
		o := &zone.Object{Track: 2, Start: time.Now()}
		s.event(s.cameras[0], zone.New, o)
		time.Sleep(20 * time.Second)
		assert.Contains(t, s.recorder.Status().Cameras["gate"].Reason, marker+" is missing, with the clips")
		assert.NoDirExists(t, directory)
		require.NoError(t, os.Rename(directory+"-unplugged", directory))
		time.Sleep(10 * time.Second)
		s.recording()
		s.event(s.cameras[0], zone.End, o)
	})
}

// TestRealFullDisk records into a small tmpfs that somebody else fills.
func TestRealFullDisk(t *testing.T) {
	disk := t.TempDir()
	err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=2m")
	if err != nil {
		t.Skipf("no tmpfs can be mounted: %v", err)
	}
	t.Cleanup(func() { assert.NoError(t, syscall.Unmount(disk, syscall.MNT_DETACH)) })
	filler := filepath.Join(disk, "filler")
	play1(t, func(s *simulation) {
		s.recorder.Directory = filepath.Join(disk, "clips")
		s.recorder.quota.directory = disk
		s.recorder.quota.space = space
	}, time.Minute, func(s *simulation) {
		time.Sleep(15 * time.Second)
		_ = os.WriteFile(filler, make([]byte, 4<<20), 0o600) // as much as there is room for
		time.Sleep(15 * time.Second)
		assert.Contains(t, s.recorder.Status().Cameras["gate"].Reason, "the disk is full: ")
		require.NoError(t, os.Remove(filler))
		time.Sleep(10 * time.Second)
		s.recording()
	})
}

func TestQuota(t *testing.T) {
	index := newIndex()
	directory := t.TempDir()
	free := int64(1000)
	q := &quota{
		directory: directory, maxBytes: 100, index: index,
		space: func(string) (int64, int64, error) { return free, 2000, nil }, // 100 are left to others
	}
	ids := func() (ids []string) {
		for _, clip := range index.all() {
			ids = append(ids, clip.ID)
		}
		return ids
	}
	start := time.Unix(1e9, 0)
	for i, state := range []State{Closed, Closed, Closed, Open} {
		clip := &Clip{ID: fmt.Sprint("clip", i), Path: fmt.Sprint(i), State: state, Bytes: 20, Start: start.Add(time.Duration(i) * time.Hour)}
		require.NoError(t, os.WriteFile(filepath.Join(directory, clip.Path), make([]byte, 20), 0o600))
		require.NoError(t, index.OpenClip(t.Context(), clip))
		q.add(clip)
	}
	pinned := index.clips["clip0"]
	pinned.Pinned = true
	index.clips["clip0"] = pinned

	require.NoError(t, q.admit(t.Context(), "clip3", 20))
	assert.Equal(t, []string{"clip0", "clip1", "clip2", "clip3"}, ids(), "100 of 100")
	require.NoError(t, q.admit(t.Context(), "clip3", 15))
	assert.Equal(t, []string{"clip0", "clip2", "clip3"}, ids(), "the oldest that is not pinned")
	assert.NoFileExists(t, filepath.Join(directory, "1"))
	require.NoError(t, q.admit(t.Context(), "clip3", 20))
	assert.Equal(t, []string{"clip0", "clip3"}, ids())
	require.EqualError(t, q.admit(t.Context(), "clip3", 6), "the limit of 0 MB is reached by open and pinned clips")
	clips, total := q.usage()
	assert.Equal(t, 2, clips)
	assert.Equal(t, int64(95), total)
	free = 104
	require.NoError(t, q.admit(t.Context(), "clip3", 4))
	free = 100
	require.EqualError(t, q.admit(t.Context(), "clip3", 1), "the disk is full: 0 MB are free, 0 MB are left to others")
	q.close("clip3", 90)
	_, total = q.usage()
	assert.Equal(t, int64(110), total)

	q.expire(t.Context(), start.Add(5*time.Hour))
	assert.Equal(t, []string{"clip0"}, ids(), "too old, but pinned")
}

// TestDemand: what is recorded of an object's life.
func TestDemand(t *testing.T) {
	const second = int64(time.Second)
	labels := []string{"person", "cat"}
	tracker := &pipeline.Tracker{Config: zone.Config{Zones: []zone.Zone{{Name: "yard"}, {Name: "street"}}}}
	type step struct {
		at    int64 // seconds
		event zone.Event
	}
	thing := func(class int, stationary bool, zones ...int) *zone.Object {
		o := &zone.Object{Track: 7, Start: time.Unix(100, 0), Stationary: stationary, Zones: zones}
		o.Class = class
		return o
	}
	for _, test := range []struct {
		name   string
		camera Camera
		steps  []step
		begin  int64 // seconds
		until  int64 // -1 while it goes on
	}{
		{"a moving object", Camera{}, []step{{10, zone.Event{Kind: zone.New, Object: thing(0, false)}}}, 10, -1},
		{"which leaves", Camera{}, []step{
			{10, zone.Event{Kind: zone.New, Object: thing(0, false)}}, {30, zone.Event{Kind: zone.End, Object: thing(0, false)}},
		}, 10, 38},
		{"which stops", Camera{}, []step{
			{10, zone.Event{Kind: zone.New, Object: thing(0, false)}},
			{30, zone.Event{Kind: zone.Update, Object: thing(0, true)}},
			{50, zone.Event{Kind: zone.End, Object: thing(0, true)}},
		}, 10, 38},
		{"which goes on for ever", Camera{}, []step{
			{10, zone.Event{Kind: zone.New, Object: thing(0, false)}}, {1000, zone.Event{Kind: zone.Update, Object: thing(0, false)}},
		}, 10, 10 + 300 + 8},
		{"a parked object", Camera{}, []step{{10, zone.Event{Kind: zone.New, Object: thing(0, true)}}}, 10, 18},
		{"another class", Camera{Classes: []string{"person"}}, []step{{10, zone.Event{Kind: zone.New, Object: thing(1, false)}}}, 0, 0},
		{"outside of the zone", Camera{Zones: []string{"yard"}}, []step{{10, zone.Event{Kind: zone.New, Object: thing(0, false, 1)}}}, 0, 0},
		{"through the zone", Camera{Zones: []string{"yard"}}, []step{
			{10, zone.Event{Kind: zone.New, Object: thing(0, false)}},
			{20, zone.Event{Kind: zone.Enter, Object: thing(0, false, 0)}},
			{25, zone.Event{Kind: zone.Leave, Object: thing(0, false)}},
		}, 20, 33},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := &demand{after: 8 * time.Second, wake: make(chan struct{}, 1), moving: map[uint64]object{}}
			d.settings.Store(&test.camera)
			now := int64(0)
			for _, s := range test.steps {
				now = s.at * second
				_ = d.end(now)
				d.add(&pipeline.Result{Labels: labels, Tracker: tracker, Events: &zone.Result{Events: []zone.Event{s.event}}}, now)
			}
			until := d.end(now)
			begin, events := d.take()
			assert.Equal(t, test.begin*second, begin)
			if test.begin > 0 {
				assert.Equal(t, []string{"100.000000-7"}, events)
			}
			if test.until < 0 {
				assert.Equal(t, int64(math.MaxInt64), until)
			} else {
				assert.Equal(t, test.until*second, until)
			}
		})
	}
}

// ringless is a camera without access units.
type ringless struct{}

func (ringless) Ring() *capture.Ring { return nil }

// TestFrameAllocatesNothing: a frame without events, of cameras with and without access units.
func TestFrameAllocatesNothing(t *testing.T) {
	c := &simulated{name: "gate"}
	c.ring.Store(&capture.Ring{})
	r := &Recorder{Index: newIndex(), Settings: Settings{Before: time.Second}}
	r.Open([]Camera{{Name: "gate", Source: c}, {Name: "usb", Source: ringless{}}})
	defer r.Close()
	frame := &capture.Frame{Width: 64, Height: 48, Stride: 3 * 64, Format: engine.BGR, Data: make([]byte, 3*64*48)}
	in := &pipeline.Result{Camera: "gate", Captured: 1, Width: 64, Height: 48, Frame: frame, Events: &zone.Result{}}
	assert.Zero(t, testing.AllocsPerRun(100, func() { r.Frame(in) }))
	in.Camera = "usb"
	assert.Zero(t, testing.AllocsPerRun(100, func() { r.Frame(in) }), "between two images that are recorded")
	in.Captured += imageInterval
	r.Frame(in)
	require.Eventually(t, func() bool { // the image of the ring is the frame
		ring := (*r.cameras.Load())["usb"].ring()
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		unit, err := ring.ReaderAt(0).Next(ctx)
		return err == nil && strings.HasPrefix(string(unit.Data), "\xff\xd8")
	}, time.Minute, time.Millisecond)
}

// TestImagesOfManyCameras: the encoder is too slow for all cameras, and each has images all the same.
func TestImagesOfManyCameras(t *testing.T) {
	const count = 24
	r := &Recorder{Index: newIndex(), Logger: slog.New(slog.DiscardHandler)}
	var cameras []Camera
	for i := range count {
		cameras = append(cameras, Camera{Name: fmt.Sprint(i), Source: ringless{}})
	}
	r.Open(cameras)
	defer r.Close()
	frame := &capture.Frame{Width: 4000, Height: 3000, Stride: 4000, Format: engine.GRAY8, Data: make([]byte, 4000*3000)}
	require.Eventually(t, func() bool {
		served := 0
		for _, c := range cameras {
			r.Frame(&pipeline.Result{Camera: c.Name, Captured: capture.Monotonic(), Width: 4000, Height: 3000, Frame: frame})
			if (*r.cameras.Load())[c.Name].images.ring.Load() != nil {
				served++
			}
		}
		return served == count
	}, time.Minute, 5*time.Millisecond)
}

// TestCooldown: an event soon after a clip begins no other one.
func TestCooldown(t *testing.T) {
	play1(t, func(s *simulation) { s.recorder.Cooldown = time.Minute }, time.Second, func(s *simulation) {
		for n, wait := range []time.Duration{30 * time.Second, time.Minute} {
			time.Sleep(wait)
			o := &zone.Object{Track: uint64(10 + n), Start: time.Now()}
			s.event(s.cameras[0], zone.New, o)
			s.event(s.cameras[0], zone.End, o)
		}
		time.Sleep(20 * time.Second)
		assert.Len(t, s.index.all(), 2)
		assert.Equal(t, uint64(1), s.recorder.Status().Suppressed)
	})
}

// TestAnotherFileShowsWhatEnds: where a file follows another because the time of day was set, it belongs to the objects that move and to
// those that have just left, and to no others.
func TestAnotherFileShowsWhatEnds(t *testing.T) {
	play1(t, func(*simulation) {}, 80*time.Second, func(s *simulation) {
		time.Sleep(10 * time.Second)
		o := &zone.Object{Track: 2, Start: time.Now()}
		s.event(s.cameras[0], zone.New, o)
		time.Sleep(2 * time.Second)
		s.event(s.cameras[0], zone.End, o)
		for day := range int64(2) {
			time.Sleep(2 * time.Second)
			s.wallJump.Store((day + 1) * int64(24*time.Hour))
			time.Sleep(20 * time.Second)
		}
		clips := s.index.all()
		require.Len(t, clips, 3)
		assert.Len(t, clips[0].Events, 2)
		assert.Equal(t, clips[0].Events, clips[1].Events)
		assert.Equal(t, clips[0].Events[:1], clips[2].Events)
	})
}

// TestIndexFails: without the event store nothing is recorded, and no file is left without a row.
func TestIndexFails(t *testing.T) {
	failure := errors.New("database is locked")
	play1(t, func(*simulation) {}, 10*time.Second, func(s *simulation) {
		time.Sleep(30 * time.Second)
		s.index.mu.Lock()
		s.index.err = failure
		s.index.mu.Unlock()
		o := &zone.Object{Track: 9, Start: time.Now()}
		s.event(s.cameras[0], zone.New, o)
		s.event(s.cameras[0], zone.End, o)
		time.Sleep(30 * time.Second)
		assert.Equal(t, failure.Error(), s.recorder.Status().Cameras["gate"].Reason)
		assert.Equal(t, uint64(1), s.recorder.Status().Missed)
		s.index.mu.Lock()
		s.index.err = nil
		s.index.mu.Unlock()
		files, err := filepath.Glob(filepath.Join(s.recorder.Directory, "*", "*.mp4"))
		require.NoError(t, err)
		assert.Len(t, files, 1)
	})
}
