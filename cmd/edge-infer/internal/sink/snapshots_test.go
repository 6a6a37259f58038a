package sink

import (
	"bytes"
	"fmt"
	"image"
	"image/jpeg"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/engine"
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
	require.NoError(t, s.Open(cameras))
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
	jpeg, err := s.Find("NV12", seenObject(3, postprocess.Box{}).ID())
	require.NoError(t, err)
	require.NotEmpty(t, jpeg)
	_, err = s.Find("NV12", "other")
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.EqualError(t, s.Request("none"), `no camera "none"`)
}

// published records the sizes of images in the order of their arrival.
type published struct {
	t  *testing.T
	mu sync.Mutex
	of map[string][]string // by camera and purpose
}

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

// TestScenes: every ten seconds, and two seconds after the last one at the earliest when something happens. Wide images are shrunk.
func TestScenes(t *testing.T) {
	got := &published{t: t}
	s := &Snapshots{Logger: slog.New(slog.DiscardHandler), Publisher: got, Directory: t.TempDir(), Keep: 3}
	require.NoError(t, s.Open([]pipeline.Camera{{Name: "gate"}}))
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
	files, err := filepath.Glob(filepath.Join(s.Directory, "*.jpg"))
	require.NoError(t, err)
	require.Empty(t, files, "scenes are not kept on disk")
}

func TestSnapshotRingOnDisk(t *testing.T) {
	dir := t.TempDir()
	foreign := []string{"0-holiday.jpg", "holiday.jpg", "1001.000000-1-gate-a_b.txt", ".hidden.jpg"}
	for _, name := range foreign {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("not ours"), 0o644))
	}
	run := func(from, to uint64) {
		s := &Snapshots{Logger: slog.New(slog.DiscardHandler), Directory: dir, Keep: 3}
		require.NoError(t, s.Open([]pipeline.Camera{{Name: "gate"}}))
		for track := from; track < to; track++ {
			in := &pipeline.Result{Camera: "gate", Width: 32, Height: 32, Labels: []string{"a/b"}, Frame: solid(t, engine.BGR, 32, 32)}
			object := seenObject(track, postprocess.Box{X2: 20, Y2: 20})
			object.Start = time.Unix(1000+int64(track), 0)
			in.Events = &zone.Result{Snapshots: []*zone.Object{object, object}} // a better view replaces the one before
			require.Eventually(t, func() bool { return len(s.free) == snapshotQueue }, time.Minute, time.Millisecond)
			s.Frame(in)
		}
		s.Close()
	}
	run(1, 6)
	run(6, 8) // the ring goes on after a restart
	files, err := filepath.Glob(filepath.Join(dir, "*-gate-a_b.jpg"))
	require.NoError(t, err)
	require.Len(t, files, 3)
	for _, file := range files {
		info, err := os.Stat(file)
		require.NoError(t, err)
		require.Positive(t, info.Size())
		require.EqualValues(t, 0o640, info.Mode().Perm())
	}
	require.Contains(t, files[2], "-7-gate-a_b.jpg")
	for _, name := range foreign {
		text, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err, "what the daemon has not written stays")
		require.Equal(t, "not ours", string(text))
	}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 3+len(foreign)+1)
}

// TestSnapshotsOfLongLabels: labels of any length make names that a file system takes, and the images are found by them.
func TestSnapshotsOfLongLabels(t *testing.T) {
	s := &Snapshots{Logger: slog.New(slog.DiscardHandler), Directory: t.TempDir(), Keep: 3}
	camera := strings.Repeat("ü", 50)
	require.NoError(t, s.Open([]pipeline.Camera{{Name: camera}}))
	object := seenObject(7, postprocess.Box{X2: 20, Y2: 20})
	object.Start = time.Unix(1007, 0)
	s.Frame(&pipeline.Result{
		Camera: camera, Width: 32, Height: 32, Labels: []string{strings.Repeat("日", 100)}, Frame: solid(t, engine.BGR, 32, 32),
		Events: &zone.Result{Snapshots: []*zone.Object{object}},
	})
	s.Close()
	files, err := filepath.Glob(filepath.Join(s.Directory, "*-7-"+camera+"-"+strings.Repeat("日", 26)+".jpg"))
	require.NoError(t, err)
	require.Len(t, files, 1)
}

// TestTheLedgerOfSnapshotsNamesImagesOnly: whoever can write it has nothing else removed by it.
func TestTheLedgerOfSnapshotsNamesImagesOnly(t *testing.T) {
	outside := t.TempDir()
	dir := filepath.Join(outside, "images")
	victim, inside := filepath.Join(outside, "victim.jpg"), filepath.Join(dir, "sub", "victim.jpg")
	require.NoError(t, os.MkdirAll(filepath.Dir(inside), 0o755))
	for _, path := range []string{victim, inside, filepath.Join(dir, "notes.txt"), filepath.Join(dir, "last.jpg")} {
		require.NoError(t, os.WriteFile(path, []byte("x"), 0o644))
	}
	ledger := "../victim.jpg\n" + victim + "\nsub/victim.jpg\nnotes.txt\n\n..\nold.jpg\nold.jpg\nlast.jpg"
	require.NoError(t, os.WriteFile(filepath.Join(dir, ledgerName), []byte(ledger), 0o644))
	r, err := openRing(dir, 0)
	require.NoError(t, err)
	require.Empty(t, r.names)
	require.ErrorContains(t, r.store("last.jpg", nil), "no snapshot of this daemon")
	require.NoError(t, r.Close())
	for _, path := range []string{victim, inside, filepath.Join(dir, "notes.txt"), filepath.Join(dir, "last.jpg")} {
		require.FileExists(t, path)
	}
}

func TestAnImageThatOutlastsItsCameraIsNotPublished(t *testing.T) {
	got := &published{t: t}
	var jpegData bytes.Buffer
	require.NoError(t, jpeg.Encode(&jpegData, image.NewGray(image.Rect(0, 0, 8, 8)), nil))
	s := &Snapshots{Publisher: got}
	s.SetCameras([]pipeline.Camera{{Name: "a"}, {Name: "b"}})
	s.publish(&view{camera: "a", label: "bolt"}, jpegData.Bytes())
	s.SetCameras([]pipeline.Camera{{Name: "b"}})
	s.publish(&view{camera: "a", label: "bolt"}, jpegData.Bytes()) // it was in the encoder's queue
	s.publish(&view{camera: "b", label: "bolt"}, jpegData.Bytes())
	require.Equal(t, map[string][]string{"a bolt": {"8x8"}, "b bolt": {"8x8"}}, got.of)
}
