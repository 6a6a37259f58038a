// Package mp4test makes access units for tests.
package mp4test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/bluenviron/mediacommon/v2/pkg/codecs/h264"
	"github.com/bluenviron/mediacommon/v2/pkg/codecs/h265"
	"github.com/bluenviron/mediacommon/v2/pkg/formats/mpegts"
	"github.com/bluenviron/mediacommon/v2/pkg/formats/mpegts/codecs"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/mp4"
	"github.com/edge-infer/edge-infer/internal/testtool"
)

// Encode returns the access units of Video as package rtsp delivers them: Received is the decode time from 0.
func Encode(t testing.TB, encoder string, seconds int, gop time.Duration, options ...string) []capture.Unit {
	t.Helper()
	return ReadTS(t, Video(t, encoder, seconds, gop, options...))
}

// Video returns the path of an MPEG-TS file with a test image of 160x120 that ffmpeg has encoded at 25 frames per second.
func Video(t testing.TB, encoder string, seconds int, gop time.Duration, options ...string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "video.ts")
	frames := int(gop.Seconds() * 25)
	arguments := []string{
		"-v", "error", "-f", "lavfi", "-i", fmt.Sprintf("testsrc2=size=160x120:rate=25:duration=%d", seconds), "-pix_fmt", "yuv420p",
		"-c:v", encoder, "-g", fmt.Sprint(frames), "-keyint_min", fmt.Sprint(frames), "-preset", "ultrafast", "-threads", "1",
	}
	if encoder == "libx265" {
		arguments = append(arguments, "-x265-params", "log-level=error:open-gop=0:scenecut=0")
	} else {
		arguments = append(arguments, "-sc_threshold", "0")
	}
	out, err := exec.Command(testtool.Program(t, "ffmpeg"), append(append(arguments, options...), path)...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return path
}

// File returns an MP4 file of access units, as the recorder writes it.
func File(t testing.TB, units []capture.Unit) []byte {
	t.Helper()
	video, err := mp4.New(&units[0])
	require.NoError(t, err)
	file, err := video.Header()
	require.NoError(t, err)
	for i := range units {
		fragment, err := video.Add(&units[i])
		require.NoError(t, err)
		file = append(file, fragment...)
	}
	return file
}

// ReadTS returns the access units of an MPEG-TS file with one video.
func ReadTS(t testing.TB, path string) (units []capture.Unit) {
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	r := &mpegts.Reader{R: bytes.NewReader(data)}
	require.NoError(t, r.Initialize())
	add := func(codec capture.Codec) func(pts, dts int64, nals [][]byte) error {
		var first int64
		return func(pts, dts int64, nals [][]byte) error {
			if len(units) == 0 {
				first = dts
			}
			unit := capture.Unit{Codec: codec, PTS: mp4.Duration(pts - first), Received: int64(mp4.Duration(dts - first))}
			unit.Key = codec == capture.H264 && h264.IsRandomAccess(nals) || codec == capture.H265 && h265.IsRandomAccess(nals)
			for _, nal := range nals {
				unit.Data = append(append(unit.Data, 0, 0, 0, 1), nal...)
			}
			units = append(units, unit)
			return nil
		}
	}
	for _, track := range r.Tracks() {
		switch track.Codec.(type) {
		case *codecs.H264:
			r.OnDataH264(track, add(capture.H264))
		case *codecs.H265:
			r.OnDataH265(track, add(capture.H265))
		}
	}
	for r.Read() == nil {
		continue
	}
	require.NotEmpty(t, units)
	return units
}
