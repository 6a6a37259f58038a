package gstreamer

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/capture/decodertest"
)

func TestSoftwareDecoder(t *testing.T) {
	needGStreamer(t)
	for _, codec := range []capture.Codec{capture.H264, capture.H265} {
		require.True(t, HasElement(SoftwareDecoder(codec)), "gstreamer1.0-libav is not installed: run make deps")
	}
	decodertest.Run(t, decodertest.Subject{Open: func(codec capture.Codec) (capture.Decoder, error) {
		return OpenDecoder(t.Context(), DecoderOptions{Codec: codec, Element: SoftwareDecoder(codec), Threads: 1})
	}})
}

// BenchmarkDecoder is the time for an image of 1920x1080.
func BenchmarkDecoder(b *testing.B) {
	needGStreamer(b)
	v := decodertest.Load(b, "fullhd")
	d, err := OpenDecoder(b.Context(), DecoderOptions{Codec: capture.H264, Element: SoftwareDecoder(capture.H264), Threads: 1})
	require.NoError(b, err)
	pool := newPool(b)
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		require.NoError(b, d.Submit(&v.Units[n%len(v.Units)]))
		require.True(b, d.Await(patience))
		f, _, err := d.Next(pool)
		require.NoError(b, err)
		f.Release()
	}
	require.NoError(b, d.Close())
}
