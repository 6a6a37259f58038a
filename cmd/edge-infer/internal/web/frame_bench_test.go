package web

import (
	"image"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/picture"
	"github.com/edge-infer/edge-infer/engine"
)

// BenchmarkFrame is what a 1080p frame with 20 objects costs the frame loop.
func BenchmarkFrame(b *testing.B) {
	server := &Server{Address: "127.0.0.1:0", Source: &still{}, Logger: slog.New(slog.DiscardHandler)}
	require.NoError(b, server.Open())
	defer server.Close()
	in := inferred(noise(engine.BGR, 1920, 1080, 3*1920), 1, 0)
	for range 19 {
		in.Detections, in.IDs = append(in.Detections, in.Detections[0]), append(in.IDs, 7)
	}
	b.Run("nobody looks", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			server.Frame(in)
		}
	})
	b.Run("detections", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			server.observer.observe(in)
			server.observer.free <- <-server.observer.full
		}
	})
	b.Run("picture", func(b *testing.B) {
		b.ReportAllocs()
		p := &preview{fresh: make(chan struct{}, 1)}
		for b.Loop() {
			in.Captured += int64(time.Second)
			p.take(in, time.Second)
		}
	})
	b.Run("encode", func(b *testing.B) {
		var copied picture.Pixels
		part := copied.Copy(in.Frame.Image(), image.Rect(0, 0, in.Width, in.Height))
		e := picture.Encoder{Quality: jpegQuality, MaxWidth: DefaultPictureWidth}
		defer e.Close()
		for b.Loop() {
			require.NoError(b, e.Load(&copied, part))
			_, err := e.JPEG()
			require.NoError(b, err)
		}
	})
}
