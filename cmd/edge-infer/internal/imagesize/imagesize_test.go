package imagesize

import (
	"bytes"
	"image"
	"image/png"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/engine"
)

// silent is the address of an HTTP camera that takes connections and never answers.
func silent(t *testing.T) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	return "http://" + listener.Addr().String() + "/"
}

func TestLook(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var img bytes.Buffer
	require.NoError(t, png.Encode(&img, image.NewGray(image.Rect(0, 0, 30, 70))))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.png"), img.Bytes(), 0o600))
	uris := []string{"demo?width=160&height=120", filepath.Join(dir, "none.png"), "demo?width=320&height=240", dir, "bad://"}
	assert.Equal(t, []engine.Size{{Width: 160, Height: 120}, {}, {Width: 320, Height: 240}, {Width: 30, Height: 70}, {}},
		Probe(t.Context(), uris, time.Minute))
	assert.Equal(t, []engine.Size{{}}, Probe(t.Context(), []string{silent(t)}, 50*time.Millisecond))
	assert.Empty(t, Probe(t.Context(), nil, time.Minute))
}

// A camera that is away at a start has the size that it had; one whose address has changed, or that was never there, has none, and then
// nothing is known of all.
func TestMemory(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state")
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	away := Camera{"gate", "http://user:secret@127.0.0.1:1/main"}
	cameras := []Camera{{"belt", "demo?width=160&height=120"}, away}
	hd, small := engine.Size{Width: 1920, Height: 1080}, engine.Size{Width: 160, Height: 120}

	m := Open(dir)
	assert.Nil(t, m.Sizes(t.Context(), cameras, logger))
	assert.Contains(t, log.String(), "camera=gate")
	assert.False(t, m.Update(away, engine.Size{}), "no image yet")
	assert.True(t, m.Update(away, hd))
	assert.False(t, m.Update(away, hd))
	require.NoError(t, m.Save())
	written, err := os.ReadFile(filepath.Join(dir, "images.json"))
	require.NoError(t, err)
	assert.NotContains(t, string(written), "secret")

	log.Reset()
	m = Open(dir)
	assert.Equal(t, []engine.Size{small, hd}, m.Sizes(t.Context(), cameras, logger))
	assert.Empty(t, log.String())
	cameras[1].URI = "http://127.0.0.1:1/other"
	assert.Nil(t, m.Sizes(t.Context(), cameras, logger))

	for _, damaged := range []string{"", "[1]", `{"gate": 3}`, `{"gate": {"uri": "http://127.0.0.1:1/other", "width": -3, "height": 2}}`} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "images.json"), []byte(damaged), 0o600))
		assert.Nil(t, Open(dir).Sizes(t.Context(), cameras, logger), damaged)
	}
	forgets := Open("")
	assert.True(t, forgets.Update(away, hd))
	require.NoError(t, forgets.Save())
}
