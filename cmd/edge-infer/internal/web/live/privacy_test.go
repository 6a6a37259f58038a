package live

import (
	"image"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/jpegimage/jpegtest"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/web/live/livetest"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
)

// TestThePageHidesPrivateParts, also where its images are smaller than the camera's.
func TestThePageHidesPrivateParts(t *testing.T) {
	f := opened()
	watched, leave, err := f.subscribe(false, []string{"cam0"})
	require.NoError(t, err)
	in := livetest.Result(jpegtest.Noise(engine.BGR, 1920, 1080), 1, time.Hour)
	in.Hidden = &pipeline.Hidden{Boxes: []postprocess.Box{{X1: 200, Y1: 200, X2: 600, Y2: 1000}}}
	f.Frame(in)
	require.Eventually(t, func() bool { return watched[0].latest.Load() != nil }, time.Minute, time.Millisecond)
	data := watched[0].latest.Load().jpeg
	require.Equal(t, image.Rect(0, 0, 960, 540), jpegtest.Size(t, data))
	require.Less(t, jpegtest.Contrast(t, data, image.Rect(100, 100, 300, 500)), 4.0)
	require.Greater(t, jpegtest.Contrast(t, data, image.Rect(320, 0, 960, 540)), 10.0)
	leave()
	f.Stop()
}
