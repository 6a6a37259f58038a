package sink

import (
	"bytes"
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
	var mu sync.Mutex
	got := map[string]image.Config{}
	s := &Snapshots{Logger: slog.New(slog.DiscardHandler), Publish: func(camera, label string, data []byte) {
		config, err := jpeg.DecodeConfig(bytes.NewReader(data))
		require.NoError(t, err)
		mu.Lock()
		got[camera+"/"+label] = config
		mu.Unlock()
	}}
	var cameras []pipeline.Camera
	formats := []engine.PixelFormat{engine.BGR, engine.BGRx, engine.NV12, engine.YUYV, engine.GRAY8}
	for _, format := range formats {
		cameras = append(cameras, pipeline.Camera{Name: format.String()})
	}
	require.NoError(t, s.Open(cameras))
	for i, format := range formats {
		in := &pipeline.Result{
			Camera: format.String(), Width: 64, Height: 48, Time: time.Now(), Labels: []string{"bolt"}, Frame: solid(t, format, 64, 48),
		}
		in.Events = &zone.Result{Snapshots: []*zone.Object{seenObject(uint64(i+1), postprocess.Box{X1: 10, Y1: 10, X2: 30, Y2: 20})}}
		require.NoError(t, s.Request(format.String()))
		require.Eventually(t, func() bool { return len(s.free) == snapshotQueue }, time.Minute, time.Millisecond)
		s.Frame(in)
	}
	s.Close()
	for _, format := range formats {
		require.Equal(t, 64, got[format.String()+"/all"].Width, format.String())
		require.Equal(t, 48, got[format.String()+"/all"].Height)
		require.Equal(t, 27, got[format.String()+"/bolt"].Width, "the box and its margin")
		require.Equal(t, 14, got[format.String()+"/bolt"].Height)
	}
	jpeg, err := s.Find("NV12", seenObject(3, postprocess.Box{}).ID())
	require.NoError(t, err)
	require.NotEmpty(t, jpeg)
	_, err = s.Find("NV12", "other")
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.EqualError(t, s.Request("none"), `no camera "none"`)
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

func TestAImageThatOutlastsItsCameraIsNotPublished(t *testing.T) {
	var published []string
	s := &Snapshots{Publish: func(camera, _ string, _ []byte) { published = append(published, camera) }}
	s.SetCameras([]pipeline.Camera{{Name: "a"}, {Name: "b"}})
	s.announce(&view{camera: "a"}, nil)
	s.SetCameras([]pipeline.Camera{{Name: "b"}})
	s.announce(&view{camera: "a"}, nil) // it was in the encoder's queue
	s.announce(&view{camera: "b"}, nil)
	require.Equal(t, []string{"a", "b"}, published)
}
