package mp4

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture"
)

// FuzzVideo: access units come from cameras.
func FuzzVideo(f *testing.F) {
	f.Add(byte(1), []byte("\x00\x00\x00\x01\x67\x42\x00\x1e\x00\x00\x00\x01\x68\x01\x00\x00\x00\x01\x65\x88"), int64(1), int64(2))
	f.Add(byte(2), []byte("\x00\x00\x00\x01\x40\x01\x00\x00\x00\x01\x42\x01\x00\x00\x00\x01\x44\x01\x00\x00\x00\x01\x26\x01"), int64(1), int64(2))
	f.Add(byte(3), []byte("\xff\xd8\xff\xd9"), int64(-5), int64(2))
	f.Fuzz(func(t *testing.T, codec byte, data []byte, pts, received int64) {
		unit := capture.Unit{Codec: capture.Codec(codec % 4), Data: data, Key: true, PTS: time.Duration(pts), Received: received}
		v, err := New(&unit)
		if err != nil {
			return
		}
		_, _ = v.Header()
		for n := range 4 {
			if !v.Accepts(&unit) {
				return
			}
			_, err := v.Add(&unit)
			require.NoError(t, err)
			unit.PTS += time.Duration(pts)
			unit.Received += received
			unit.Key = n%2 == 0
		}
		_, err = v.Flush()
		require.NoError(t, err)
	})
}
