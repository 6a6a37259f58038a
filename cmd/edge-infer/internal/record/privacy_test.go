package record

import (
	"image"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/jpegimage/jpegtest"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess/zone"
)

// TestClipsHidePrivateParts: the images that clips of a camera without packets are made of.
func TestClipsHidePrivateParts(t *testing.T) {
	r := &Recorder{Directory: t.TempDir(), Index: newIndex(), Settings: Settings{Before: time.Second}, Logger: slog.New(slog.DiscardHandler)}
	source := &simulated{name: "gate"}
	r.Open([]Camera{{Name: "gate", Source: source}})
	defer r.Close()
	left := [][]zone.Point{{{}, {X: 0.5}, {X: 0.5, Y: 1}, {Y: 1}}}
	r.Frame(&pipeline.Result{
		Camera: "gate", Captured: int64(time.Hour), Frame: jpegtest.Noise(engine.YUYV, 640, 480), Hidden: &pipeline.Hidden{Regions: left},
	})
	c := (*r.cameras.Load())["gate"]
	var unit capture.Unit
	require.Eventually(t, func() bool {
		ring := c.images.ring.Load()
		if ring == nil {
			return false
		}
		var err error
		unit, err = ring.ReaderAt(0).Next(t.Context())
		return err == nil
	}, time.Minute, time.Millisecond)
	r.SetCameras([]Camera{{Name: "gate", Source: source}})
	require.NotNil(t, c.images.ring.Load())
	r.SetCameras([]Camera{{Name: "gate", Source: &simulated{name: "gate"}}})
	require.Nil(t, c.images.ring.Load(), "other parts may be private now")
	require.Less(t, jpegtest.Contrast(t, unit.Data, image.Rect(0, 0, 320, 480)), 4.0)
	require.Greater(t, jpegtest.Contrast(t, unit.Data, image.Rect(330, 0, 640, 480)), 15.0)
}
