package source

import (
	"context"
	"errors"
	"io"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/engine"
)

// run is a number of images of one form.
type run struct {
	size   size
	format engine.PixelFormat
	count  int
}

// runs reads a source to its end.
func runs(t *testing.T, uri string, backend backend) (all []run) {
	source, err := opener(backend)(context.Background(), uri, capture.Options{EveryFrame: true})
	require.NoError(t, err)
	pool := &capture.Pool{Buffers: 1}
	defer pool.Close()
	defer source.Close()
	for {
		f, err := source.Next(pool)
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		assert.Len(t, f.Data, f.Stride*f.Format.Rows(f.Height))
		last := len(all) - 1
		if last < 0 || all[last].size != (size{f.Width, f.Height}) || all[last].format != f.Format {
			all, last = append(all, run{size: size{f.Width, f.Height}, format: f.Format}), last+1
		}
		all[last].count++
		f.Release()
	}
}

// TestFormChangesMidStream: images may change their size and, where a pipeline says so, their format, without a reconnect. FFmpeg goes on
// in the first image's size.
func TestFormChangesMidStream(t *testing.T) {
	const few, many = "width=160,height=120,format=", "width=320,height=240,format="
	two := func(filter, first, second string) string {
		const source = "videotestsrc num-buffers=10 ! video/x-raw,"
		return "gst:concat name=c ! " + filter + "appsink sync=false " + source + first + " ! c. " + source + second + " ! c."
	}
	video := changingVideo(t)
	for name, c := range map[string]struct {
		uri     string
		backend backend
		want    []run
	}{
		"size": {two("", few+"BGR", many+"BGR"), "", []run{{small, engine.BGR, 10}, {large, engine.BGR, 10}}},
		"size of NV12": {
			two("video/x-raw,format=NV12 ! ", few+"NV12", many+"NV12"), "", []run{{small, engine.NV12, 10}, {large, engine.NV12, 10}},
		},
		"size of grey":         {two("", few+"GRAY8", many+"GRAY8"), "", []run{{small, engine.GRAY8, 10}, {large, engine.GRAY8, 10}}},
		"format":               {two("", few+"BGR", few+"GRAY8"), "", []run{{small, engine.BGR, 10}, {small, engine.GRAY8, 10}}},
		"both":                 {two("", few+"GRAY8", many+"BGR"), "", []run{{small, engine.GRAY8, 10}, {large, engine.BGR, 10}}},
		"video with ffmpeg":    {video, byFFmpeg, []run{{small, engine.BGR, 60}}},
		"video with gstreamer": {video, byGStreamer, []run{{small, engine.BGR, 30}, {large, engine.BGR, 30}}},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, runs(t, c.uri, c.backend)) })
	}
}

// TestOnChangeReportsNewFormat: OnChange reports a new image size in the stream of a running camera.
func TestOnChangeReportsNewFormat(t *testing.T) {
	uri := parts(t, func(number int) []byte {
		s := []size{small, large}[number/200%2]
		return barcodeJPEG(t, number, s.width, s.height)
	})
	c := watch(t, &capture.Camera{Open: Open, URI: uri, Lossless: true, Retry: quick})
	for _, s := range []size{small, large, small} {
		c.waitForChange("of the form", func(now capture.Stats) bool {
			return now.State == capture.Running && now.Width == s.width && now.Height == s.height
		})
	}
	assert.Zero(t, c.Stats().Reconnects)
	assert.Zero(t, c.Stats().Damaged)
}

// changingVideo is a video whose image size changes in the middle.
func changingVideo(t *testing.T) string {
	path := filepath.Join(t.TempDir(), "video.ts")
	video := func(size string) string {
		return "ffmpeg -v error -f lavfi -i testsrc2=size=" + size + ":rate=30 -frames:v 30 -c:v libx264 -preset ultrafast -pix_fmt yuv420p " +
			"-f mpegts -; "
	}
	output, err := exec.Command("sh", "-c", "{ "+video(small.String())+video(large.String())+"} >"+path).CombinedOutput()
	require.NoError(t, err, string(output))
	return path
}
