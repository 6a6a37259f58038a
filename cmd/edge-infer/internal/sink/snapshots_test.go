package sink

import (
	"bytes"
	"fmt"
	"image"
	"image/jpeg"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/store"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/enginetest"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/zone"
)

// solid is a frame of one colour in any format.
func solid(t *testing.T, format engine.PixelFormat, width, height int) *capture.Frame {
	var pool capture.Pool
	frame, err := pool.Frame(format, width, height)
	require.NoError(t, err)
	for i := range frame.Data {
		frame.Data[i] = 128
	}
	return &frame
}

func seenObject(track uint64, box postprocess.Box) *zone.Object {
	return &zone.Object{Track: track, Detection: postprocess.Detection{Box: box, Class: 0}, Start: time.Unix(1000, int64(track))}
}

func TestSnapshotsOfEveryFormat(t *testing.T) {
	got := &published{t: t}
	s := &Snapshots{Logger: slog.New(slog.DiscardHandler), Publisher: got}
	var cameras []pipeline.Camera
	formats := []engine.PixelFormat{engine.BGR, engine.BGRx, engine.NV12, engine.YUYV, engine.GRAY8}
	for _, format := range formats {
		cameras = append(cameras, pipeline.Camera{Name: format.String()})
	}
	s.Open(cameras)
	for i, format := range formats {
		in := &pipeline.Result{
			Camera: format.String(), Width: 64, Height: 48, Time: time.Now(), Captured: 1, Labels: []string{"bolt"}, Frame: solid(t, format, 64, 48),
		}
		in.Events = &zone.Result{Snapshots: []*zone.Object{seenObject(uint64(i+1), postprocess.Box{X1: 10, Y1: 10, X2: 30, Y2: 20})}}
		require.NoError(t, s.Request(format.String()))
		require.Eventually(t, func() bool { return len(s.free) == snapshotQueue }, time.Minute, time.Millisecond)
		s.Frame(in)
	}
	s.Close()
	for _, format := range formats {
		require.Equal(t, []string{"64x48"}, got.of[format.String()+" requested"], format.String())
		require.Equal(t, []string{"27x14"}, got.of[format.String()+" bolt"], "the box and its margin")
		require.Equal(t, []string{"64x48"}, got.of[format.String()+" scene"])
	}
	require.EqualError(t, s.Request("none"), `no camera "none"`)
}

// published records the sizes of images in the order of their arrival.
type published struct {
	t       *testing.T
	offline atomic.Bool
	mu      sync.Mutex
	of      map[string][]string // by camera and purpose
}

func (p *published) Online() bool { return !p.offline.Load() }

func (p *published) add(key string, data []byte) {
	config, err := jpeg.DecodeConfig(bytes.NewReader(data))
	require.NoError(p.t, err)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of == nil {
		p.of = map[string][]string{}
	}
	p.of[key] = append(p.of[key], fmt.Sprintf("%dx%d", config.Width, config.Height))
}

func (p *published) Image(camera string, jpeg []byte)             { p.add(camera+" scene", jpeg) }
func (p *published) Snapshot(camera, label string, jpeg []byte)   { p.add(camera+" "+label, jpeg) }
func (p *published) RequestedSnapshot(camera string, jpeg []byte) { p.add(camera+" requested", jpeg) }

// TestEveryObjectGetsASnapshot: more objects appear at once than the encoder takes, and none of them is ever seen better.
func TestEveryObjectGetsASnapshot(t *testing.T) {
	got := &published{t: t}
	s := &Snapshots{Logger: slog.New(slog.DiscardHandler), Publisher: got}
	s.Open([]pipeline.Camera{{Name: "gate"}})
	labels := make([]string, 3*snapshotQueue)
	tracks := make([]postprocess.Track, len(labels))
	for i := range labels {
		labels[i] = fmt.Sprintf("label%d", i)
		box := postprocess.Box{X1: float32(10 + 20*i), Y1: 10, X2: float32(20 + 20*i), Y2: 20}
		tracks[i] = postprocess.Track{ID: uint64(i + 1), State: postprocess.Active, Detection: postprocess.Detection{
			Box: box, Class: i,
			Score: 0.9,
		}}
	}
	analytics := zone.Analytics{Width: 320, Height: 48, Labels: labels}
	require.NoError(t, analytics.Open())
	for seq := uint64(1); seq < 20; seq++ {
		in := &pipeline.Result{Camera: "gate", Width: 320, Height: 48, Labels: labels, Frame: solid(t, engine.GRAY8, 320, 48)}
		in.Events = analytics.Update(seq, time.Unix(int64(seq), 0), tracks)
		s.Frame(in)
		require.Eventually(t, func() bool { return len(s.free) == snapshotQueue }, time.Minute, time.Millisecond)
	}
	s.Close()
	for _, label := range labels {
		require.Len(t, got.of["gate "+label], 1, label)
	}
}

// TestScenes: every ten seconds, and two seconds after the last one at the earliest when something happens. Wide images are shrunk.
func TestScenes(t *testing.T) {
	got := &published{t: t}
	s := &Snapshots{Logger: slog.New(slog.DiscardHandler), Publisher: got}
	s.Open([]pipeline.Camera{{Name: "gate"}})
	count := 0
	frame := func(at time.Duration, more int, events ...zone.Event) {
		t.Helper()
		in := &pipeline.Result{Camera: "gate", Width: 2560, Height: 1440, Captured: int64(time.Hour + at)}
		in.Frame = solid(t, engine.GRAY8, in.Width, in.Height)
		in.Events = &zone.Result{Events: events}
		require.Eventually(t, func() bool { return len(s.free) == snapshotQueue }, time.Minute, time.Millisecond)
		s.Frame(in)
		require.Eventually(t, func() bool { return len(s.free) == snapshotQueue }, time.Minute, time.Millisecond)
		got.mu.Lock()
		defer got.mu.Unlock()
		count += more
		require.Len(t, got.of["gate scene"], count, "%v", at)
	}
	frame(0, 1)
	frame(time.Second, 0, zone.Event{Kind: zone.New})
	frame(2*time.Second, 0, zone.Event{Kind: zone.Update})
	frame(2*time.Second, 1, zone.Event{Kind: zone.New})
	frame(11*time.Second, 0)
	frame(12*time.Second, 1)
	s.Close()
	require.Equal(t, []string{"1280x720", "1280x720", "1280x720"}, got.of["gate scene"])
	require.Len(t, got.of, 1)
}

// kept records what the store is given.
type kept struct {
	mu  sync.Mutex
	all []store.Snapshot
}

func (k *kept) AddSnapshot(s *store.Snapshot) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.all = append(k.all, *s)
}

// TestStoredSnapshots: each object of a frame gets the whole frame, shrunk if it is wide, and its own part of it.
func TestStoredSnapshots(t *testing.T) {
	for _, format := range []engine.PixelFormat{engine.BGR, engine.NV12} {
		to := &kept{}
		got := &published{t: t}
		s := &Snapshots{Logger: slog.New(slog.DiscardHandler), Store: to, Publisher: got}
		s.Open([]pipeline.Camera{{Name: "other"}, {Name: "gate"}})
		in := &pipeline.Result{Camera: "gate", Width: 2560, Height: 1440, Labels: []string{"bolt"}, Frame: solid(t, format, 2560, 1440)}
		in.Captured = 1
		upper, outside := seenObject(1, postprocess.Box{X1: 1001, Y1: 101, X2: 1101, Y2: 151}), seenObject(2, postprocess.Box{
			X1: -90, Y1: -50,
			X2: -60, Y2: -20,
		})
		lower := seenObject(3, postprocess.Box{X1: 2500, Y1: 1400, X2: 2600, Y2: 1500})
		in.Events = &zone.Result{Snapshots: []*zone.Object{upper, outside, lower}}
		s.Frame(in)
		s.Close()
		require.Len(t, to.all, 2)
		sizes := func(data []byte) string {
			config, err := jpeg.DecodeConfig(bytes.NewReader(data))
			require.NoError(t, err)
			return fmt.Sprintf("%dx%d", config.Width, config.Height)
		}
		for i, object := range []*zone.Object{upper, lower} {
			require.Equal(t, object.ID(), to.all[i].ID)
			require.Equal(t, "gate", to.all[i].Camera)
			require.Equal(t, "1280x720", sizes(to.all[i].Frame))
			require.Equal(t, [2]int{1280, 720}, [2]int{to.all[i].Width, to.all[i].Height})
		}
		require.Equal(t, "131x66", sizes(to.all[0].Crop))
		require.Equal(t, "75x55", sizes(to.all[1].Crop), "at the corner")
		require.Equal(t, []string{"131x66", "75x55"}, got.of["gate bolt"])
	}
}

// TestTheFrameLoopDoesNotCopyFrames: what is stored and published of a frame is copied after its release, by another goroutine, and the
// camera has its buffer back then.
func TestTheFrameLoopDoesNotCopyFrames(t *testing.T) {
	to := &kept{}
	s := &Snapshots{Logger: slog.New(slog.DiscardHandler), Store: to, Publisher: &published{t: t}}
	s.SetCameras([]pipeline.Camera{{Name: "gate"}})
	s.free, s.full, s.copied = make(chan *view, 2), make(chan *view, 2), make(chan *view, 2)
	s.free <- new(view)
	s.free <- new(view)
	pool := &capture.Pool{}
	frame, err := pool.Frame(engine.BGR, 640, 480)
	require.NoError(t, err)
	in := &pipeline.Result{Camera: "gate", Width: 640, Height: 480, Captured: 1, Labels: []string{"bolt"}, Frame: &frame}
	in.Events = &zone.Result{Snapshots: []*zone.Object{seenObject(1, postprocess.Box{X1: 10, Y1: 10, X2: 60, Y2: 60})}}
	s.Frame(in)
	frame.Release()
	require.Len(t, s.full, 2)
	require.Equal(t, 1, pool.Lent())
	for range 2 {
		v := <-s.full
		require.Empty(t, v.pixels.Data)
		s.full <- v
	}
	s.done.Go(s.fetch)
	s.done.Go(s.encode)
	s.Close()
	require.Zero(t, pool.Lent())
	require.Len(t, to.all, 1)
	require.NotEmpty(t, to.all[0].Frame)
}

func TestAnImageThatOutlastsItsCameraIsNotPublished(t *testing.T) {
	got := &published{t: t}
	var jpegData bytes.Buffer
	require.NoError(t, jpeg.Encode(&jpegData, image.NewGray(image.Rect(0, 0, 8, 8)), nil))
	s := &Snapshots{Publisher: got}
	s.SetCameras([]pipeline.Camera{{Name: "a"}, {Name: "b"}})
	s.publish(&view{camera: "a"}, "bolt", jpegData.Bytes())
	s.SetCameras([]pipeline.Camera{{Name: "b"}})
	s.publish(&view{camera: "a"}, "bolt", jpegData.Bytes()) // it was in the encoder's queue
	s.publish(&view{camera: "b"}, "bolt", jpegData.Bytes())
	require.Equal(t, map[string][]string{"a bolt": {"8x8"}, "b bolt": {"8x8"}}, got.of)
}

// TestNothingIsCopiedForNobody: of an image in a GPU's memory nothing is copied before a broker is connected. Then a scene is, at its
// interval; of a wide image every third row.
func TestNothingIsCopiedForNobody(t *testing.T) {
	const width, height = 3840, 2160
	memory := &enginetest.DeviceMemory{Data: make([]byte, width*height*3/2)}
	img := memory.Image(engine.NV12, width, height, width)
	got := &published{t: t}
	got.offline.Store(true)
	s := &Snapshots{Logger: slog.New(slog.DiscardHandler), Publisher: got}
	s.Open([]pipeline.Camera{{Name: "gate"}})
	in := &pipeline.Result{
		Camera: "gate", Captured: 1,
		Frame: &capture.Frame{Width: width, Height: height, Stride: width, Format: engine.NV12, Device: img.Device},
	}
	frame := func() {
		require.Eventually(t, func() bool { return len(s.free) == snapshotQueue }, time.Minute, time.Millisecond)
		in.Captured += int64(time.Second) / 25
		s.Frame(in)
	}
	for range 100 {
		frame()
	}
	require.Zero(t, memory.Copied)
	got.offline.Store(false)
	for range 100 {
		frame()
	}
	require.Equal(t, width*(height/3)*3/2, memory.Copied, "one scene")
	s.Close()
	require.Equal(t, map[string][]string{"gate scene": {"1280x720"}}, got.of)
}
