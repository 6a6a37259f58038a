package onnx

import (
	"math"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Every float16 survives a round trip, and the float32 halfway between two neighbours rounds to the even one.
func TestHalfRoundTrip(t *testing.T) {
	for bits := range 1 << 16 {
		h := uint16(bits)
		f := FromHalf(h)
		if f != f {
			require.NotZero(t, h&0x3ff)
			continue
		}
		require.Equal(t, h, ToHalf(f), "%#04x", h)
		if h&0x7fff < 0x7bff {
			next := FromHalf(h + 1)
			middle := float32((float64(f) + float64(next)) / 2)
			even := h + h&1
			require.Equal(t, even, ToHalf(middle), "middle after %#04x", h)
			require.Equal(t, h, ToHalf(math.Nextafter32(middle, f)), "below the middle after %#04x", h)
			require.Equal(t, h+1, ToHalf(math.Nextafter32(middle, next)), "above the middle after %#04x", h)
		}
	}
	assert.Equal(t, uint16(0x7bff), ToHalf(65519.99))
	assert.Equal(t, uint16(0x7c00), ToHalf(65520))
	assert.Equal(t, uint16(0xfc00), ToHalf(float32(math.Inf(-1))))
	assert.Equal(t, uint16(0x7e00), ToHalf(float32(math.NaN()))&0x7e00)
}

func TestSaveBeyondOneFile(t *testing.T) {
	m, err := Read("testdata/exported.onnx")
	require.NoError(t, err)
	path := t.TempDir() + "/large.onnx"
	require.NoError(t, m.save(path, 1000))
	back, err := Read(path)
	require.NoError(t, err)
	want, err := m.Bytes()
	require.NoError(t, err)
	got, err := back.Bytes()
	require.NoError(t, err)
	assert.Equal(t, want, got, "spilling and embedding again changes nothing")
	apart, err := Parse(path, mustRead(t, path))
	require.NoError(t, err)
	assert.Equal(t, []string{"large.onnx.data"}, apart.ExternalFiles())
}

func mustRead(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return data
}
