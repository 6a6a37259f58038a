package source

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/capture/rtsp/rtsptest"
	"github.com/edge-infer/edge-infer/internal/testtool"
)

// BenchmarkFirstImage measures the time from the connection to a camera to its first image, in turns with FFmpeg. None of the openings may
// fail, and each makes one connection.
func BenchmarkFirstImage(b *testing.B) {
	ffmpeg := testtool.Program(b, "ffmpeg")
	server := &rtsptest.Server{Files: []string{encodedVideo(b, "libx264", size{1920, 1080})}}
	require.NoError(b, server.Start())
	b.Cleanup(server.Close)
	pool := &capture.Pool{}
	b.Cleanup(func() { require.NoError(b, pool.Close()) })
	rounds := 0
	var theirs int64 // nanoseconds
	for b.Loop() {
		source, err := Open(b.Context(), server.URL(0), capture.Options{})
		require.NoError(b, err)
		f, err := source.Next(pool)
		require.NoError(b, err)
		b.StopTimer()
		f.Release()
		require.NoError(b, source.Close())
		begun := capture.Monotonic()
		c := exec.Command(ffmpeg, "-v", "error", "-rtsp_transport", "tcp", "-i", server.URL(0), "-frames:v", "1", "-f", "null", "-")
		output, err := c.CombinedOutput()
		require.NoError(b, err, string(output))
		theirs += capture.Monotonic() - begun
		rounds++
		b.StartTimer()
	}
	require.Equal(b, 2*rounds, server.Stats(0).Connections)
	b.ReportMetric(float64(theirs)/float64(rounds), "ffmpeg-ns/op")
}
