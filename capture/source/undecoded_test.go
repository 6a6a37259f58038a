package source

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/capture/rtsp/rtsptest"
)

// served plays a video on loopback.
func served(t *testing.T, server *rtsptest.Server, video string) *rtsptest.Server {
	server.Files = []string{video}
	require.NoError(t, server.Start())
	t.Cleanup(server.Close)
	return server
}

// TestRecordedStream: the ring has the units of the recorded stream, which is read over one connection, while the other one is decoded,
// over one as well. When the recorded stream fails, images go on and the ring is that of the decoded stream.
func TestRecordedStream(t *testing.T) {
	t.Parallel()
	decoded := served(t, &rtsptest.Server{}, encodedVideo(t, "libx264", small))
	recorded := served(t, &rtsptest.Server{User: "viewer", Password: "secret"}, encodedVideo(t, "libx265", large))
	c := watch(t, &capture.Camera{
		Open: Open, URI: decoded.URL(0), Record: "rtsp://viewer:secret@" + recorded.Listening() + "/0", OpenRecord: OpenUndecoded,
		KeepUnits: 5 * time.Second, Retry: quick,
	})
	c.waitForChange("that both run", func(s capture.Stats) bool {
		return s.State == capture.Running && s.Record != nil && s.Record.State == capture.Running
	})
	c.moves(5)
	codec := func(want capture.Codec) func() bool {
		return func() bool {
			ring := c.Ring()
			if ring == nil {
				return false
			}
			unit, err := ring.Reader().Next(t.Context())
			return err == nil && unit.Codec == want
		}
	}
	require.Eventually(t, codec(capture.H265), patience, 10*time.Millisecond, "the recorded stream is H.265")
	assert.Equal(t, small.width, c.Stats().Width)
	assert.Equal(t, 1, decoded.Stats(0).Connections)
	assert.Equal(t, 1, recorded.Stats(0).Connections)
	assert.Equal(t, "RTSP over TCP", c.Stats().Record.Connection)
	assert.NotContains(t, c.Stats().Record.URI, "secret")
	assert.Empty(t, c.Stats().Record.Problem())

	recorded.Close()
	c.waitForChange("that the recorded stream is gone", func(s capture.Stats) bool { return s.Record.Problem() != "" })
	c.moves(10)
	require.Eventually(t, codec(capture.H264), patience, 10*time.Millisecond, "the decoded stream is H.264")
	now := c.Stats()
	assert.Equal(t, capture.Running, now.State)
	assert.Zero(t, now.Reconnects)
	assert.Equal(t, 1, decoded.Stats(0).Connections)
}

// TestRecordedStreamChanges: another address of the recorded stream, or none, leaves the images and their connection alone.
func TestRecordedStreamChanges(t *testing.T) {
	t.Parallel()
	decoded := served(t, &rtsptest.Server{}, encodedVideo(t, "libx264", small))
	first := served(t, &rtsptest.Server{}, encodedVideo(t, "libx265", small))
	second := served(t, &rtsptest.Server{}, encodedVideo(t, "libx265", large))
	c := watch(t, &capture.Camera{
		Open: Open, URI: decoded.URL(0), Record: first.URL(0), OpenRecord: OpenUndecoded, KeepUnits: 5 * time.Second, Retry: quick,
	})
	readers := func(one, two int) func() bool {
		return func() bool { return first.Stats(0).Playing == one && second.Stats(0).Playing == two }
	}
	require.Eventually(t, readers(1, 0), patience, 10*time.Millisecond)
	c.moves(5)
	c.SetRecord(second.URL(0))
	require.Eventually(t, readers(0, 1), patience, 10*time.Millisecond)
	assert.Equal(t, second.URL(0), c.Stats().Record.URI)
	c.moves(5)
	c.SetRecord("")
	require.Eventually(t, readers(0, 0), patience, 10*time.Millisecond)
	assert.Nil(t, c.Stats().Record)
	c.moves(5)
	c.SetRecord(first.URL(0))
	require.Eventually(t, readers(1, 0), patience, 10*time.Millisecond)
	c.SetRecord(first.URL(0))
	c.moves(5)
	assert.Equal(t, 2, first.Stats(0).Connections)
	assert.Equal(t, 1, second.Stats(0).Connections)
	assert.Equal(t, 1, decoded.Stats(0).Connections)
	assert.Zero(t, c.Stats().Reconnects)
}

// TestUndecodedStreamMustBeRTSP: other sources have no units without a decoder.
func TestUndecodedStreamMustBeRTSP(t *testing.T) {
	_, err := OpenUndecoded(t.Context(), "demo", capture.Options{KeepUnits: time.Second})
	require.EqualError(t, err, "open demo: not an RTSP address (give one that begins with rtsp:// or rtsps://)")
}

// TestSilentRecordedStreamIsOpenedAgain: a stream that sends nothing is a fault of its own.
func TestSilentRecordedStreamIsOpenedAgain(t *testing.T) {
	decoded := served(t, &rtsptest.Server{}, encodedVideo(t, "libx264", small))
	recorded := served(t, &rtsptest.Server{}, encodedVideo(t, "libx264", large))
	c := watch(t, &capture.Camera{
		Open: Open, URI: decoded.URL(0), Record: recorded.URL(0), OpenRecord: OpenUndecoded, KeepUnits: 5 * time.Second, Retry: quick,
		StallTimeout: time.Second,
	})
	c.waitForChange("that both run", func(s capture.Stats) bool {
		return s.State == capture.Running && s.Record != nil && s.Record.State == capture.Running
	})
	recorded.SetSilent(true)
	c.waitForChange("that the recorded stream stalls", func(s capture.Stats) bool { return s.Record.Problem() != "" })
	assert.Contains(t, c.Stats().Record.Reason, "no image for 1s")
	c.moves(10)
	recorded.SetSilent(false)
	c.waitForChange("that it runs again", func(s capture.Stats) bool { return s.Record.State == capture.Running })
	assert.Zero(t, c.Stats().Reconnects)
}
