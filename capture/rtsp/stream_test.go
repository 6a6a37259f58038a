package rtsp_test

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/capture/rtsp"
	"github.com/edge-infer/edge-infer/capture/rtsp/rtsptest"
	"github.com/edge-infer/edge-infer/internal/testtool"
)

const patience = 3 * time.Minute

// video makes a video of two groups of pictures.
func video(t *testing.T, encoder string) string {
	path := filepath.Join(t.TempDir(), "video.ts")
	command := exec.Command(testtool.Program(t, "ffmpeg"), "-v", "error", "-f", "lavfi", "-i", "testsrc2=size=160x120:rate=25",
		"-frames:v", "20", "-c:v", encoder, "-g", "10", "-bf", "2", "-x265-params", "log-level=none", "-pix_fmt", "yuv420p", path)
	output, err := command.CombinedOutput()
	require.NoError(t, err, "%s", output)
	return path
}

// TestUnits: a stream yields access units whose key frames can be decoded, wherever the camera sends its parameter sets.
func TestUnits(t *testing.T) {
	for encoder, want := range map[string]struct {
		codec capture.Codec
		sets  []byte // NAL units' first bytes
	}{
		"libx264": {capture.H264, []byte{0x67, 0x68}},
		"libx265": {capture.H265, []byte{0x40, 0x42, 0x44}},
	} {
		file := video(t, encoder)
		for name, parameters := range map[string]rtsptest.Parameters{
			"everywhere": rtsptest.ParametersEverywhere, "SDP": rtsptest.ParametersInSDP, "in band": rtsptest.ParametersInBand,
		} {
			t.Run(encoder+" "+name, func(t *testing.T) {
				server := &rtsptest.Server{Files: []string{file}, Parameters: parameters, Rate: 4}
				require.NoError(t, server.Start())
				defer server.Close()
				u, err := capture.ParseURI(server.URL(0))
				require.NoError(t, err)
				camera, err := rtsp.Open(t.Context(), u, rtsp.Options{OpenTimeout: patience, ReadTimeout: patience})
				require.NoError(t, err)
				defer camera.Close()
				require.Equal(t, want.codec, camera.Codec())
				reader, second := camera.Units(), camera.Units()
				keys, timed := 0, 0
				var last time.Duration
				for n := 0; n < 45 || timed == 0; n++ { // a busy server sends its first report late
					unit, err := reader.Next(t.Context())
					require.NoError(t, err)
					other, err := second.Next(t.Context())
					require.NoError(t, err)
					require.Equal(t, unit, other)
					require.Equal(t, want.codec, unit.Codec)
					require.Equal(t, n == 0, unit.Key && keys == 0, "the first unit is a key frame")
					require.Positive(t, unit.Received)
					if !unit.Camera.IsZero() {
						timed++
						assert.Less(t, time.Since(unit.Camera).Abs(), patience)
					}
					if !unit.Key {
						continue
					}
					for _, set := range want.sets {
						assert.True(t, bytes.Contains(unit.Data, []byte{0, 0, 0, 1, set}), "%x in unit %d", set, n)
					}
					if keys++; keys > 1 {
						assert.Equal(t, 100*time.Millisecond, (unit.PTS - last).Round(time.Millisecond))
					}
					last = unit.PTS
				}
				assert.GreaterOrEqual(t, keys, 4)
				assert.Positive(t, timed)
				assert.Equal(t, 1, server.Stats(0).Connections)
				server.Close()
				for err = nil; err == nil; {
					_, err = reader.Next(t.Context())
				}
				assert.NotErrorIs(t, err, t.Context().Err())
				assert.Equal(t, err, camera.Err())
			})
		}
	}
}
