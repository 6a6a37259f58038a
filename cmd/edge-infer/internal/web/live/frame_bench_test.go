package live

import (
	"image"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/jpegimage"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/web/live/livetest"
	"github.com/edge-infer/edge-infer/engine"
)

// BenchmarkFrame is what a 1080p frame with 20 objects costs the frame loop.
func BenchmarkFrame(b *testing.B) {
	f := opened()
	in := livetest.Result(livetest.Noise(engine.BGR, 1920, 1080, 3*1920), 1, 0)
	for range 19 {
		in.Detections, in.IDs = append(in.Detections, in.Detections[0]), append(in.IDs, 7)
	}
	b.Run("nobody looks", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			f.Frame(in)
		}
	})
	b.Run("detections", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			f.recorder.addFrame(in)
			f.recorder.free <- <-f.recorder.full
		}
	})
	b.Run("image", func(b *testing.B) {
		b.ReportAllocs()
		p := &preview{fresh: make(chan struct{}, 1)}
		for b.Loop() {
			in.Captured += int64(time.Second)
			p.take(in, time.Second)
		}
	})
	b.Run("encode", func(b *testing.B) {
		var copied jpegimage.Pixels
		part, err := copied.Copy(in, image.Rect(0, 0, in.Width, in.Height))
		require.NoError(b, err)
		e := jpegimage.Encoder{Quality: jpegQuality, MaxWidth: f.ImageWidth}
		defer e.Close()
		for b.Loop() {
			require.NoError(b, e.Load(&copied, part))
			_, err := e.JPEG()
			require.NoError(b, err)
		}
	})
}
