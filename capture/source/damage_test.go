package source

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture"
)

// parts is an HTTP camera that sends, every few milliseconds, what the function gives for each number.
func parts(t *testing.T, img func(number int) []byte) (uri string) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "multipart/x-mixed-replace; boundary=frame")
		for number := 0; r.Context().Err() == nil; number++ {
			data := img(number)
			_, _ = fmt.Fprintf(w, "--frame\r\nContent-Length: %d\r\n\r\n%s\r\n", len(data), data)
			w.(http.Flusher).Flush()
			time.Sleep(5 * time.Millisecond)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// TestBadImagesFailAlone: of a stream in which every second image is broken or a giant, the others come.
func TestBadImagesFailAlone(t *testing.T) {
	giant := giant(t, ".jpg", size{30000, 30000})
	uri := parts(t, func(number int) []byte {
		switch number % 4 {
		case 1:
			return giant
		case 3:
			return []byte("broken")
		}
		return barcodeJPEG(t, number, small.width, small.height)
	})
	c := watch(t, &capture.Camera{Open: Open, URI: uri, Retry: quick})
	c.waitForChange("that it runs", state(capture.Running))
	c.moves(20)
	c.shows(small)
	stats := c.Stats()
	assert.Equal(t, capture.Running, stats.State)
	assert.Zero(t, stats.Reconnects)
	assert.Positive(t, stats.Damaged)
	assert.Contains(t, []string{tooLarge, "not an image that OpenCV can read"}, stats.LastDamage)
}

// TestTruncatedImagesAreDamaged: of a stream without lengths, as of one with them, what ends before its image does is shown as far as it
// goes and counted: without its end marker, as cheap cameras send it, and cut in the middle. A camera that sends nothing else runs.
func TestTruncatedImagesAreDamaged(t *testing.T) {
	unmarked, half := barcodeJPEG(t, 1, small.width, small.height), barcodeJPEG(t, 2, small.width, small.height)
	images := [][]byte{unmarked[:len(unmarked)-2], half[:len(half)*3/4]}
	for name, header := range map[string]string{"without lengths": "", "with lengths": "Content-Length: %d\r\n"} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "multipart/x-mixed-replace; boundary=frame")
				for number := 0; r.Context().Err() == nil; number++ {
					data := images[number%2]
					length := header
					if length != "" {
						length = fmt.Sprintf(header, len(data))
					}
					_, _ = fmt.Fprintf(w, "--frame\r\n%s\r\n%s\r\n", length, data)
					w.(http.Flusher).Flush()
					time.Sleep(5 * time.Millisecond)
				}
			}))
			t.Cleanup(server.Close)
			c := watch(t, &capture.Camera{Open: Open, URI: server.URL, Retry: quick})
			c.waitForChange("that it runs", state(capture.Running))
			for range 20 {
				c.moves(1)
				c.mu.Lock()
				assert.Contains(t, []int{1, 2}, c.newest)
				c.mu.Unlock()
			}
			stats := c.Stats()
			assert.GreaterOrEqual(t, stats.Damaged, uint64(20))
			assert.Equal(t, "the image is incomplete", stats.LastDamage)
		})
	}
}

// TestDamagedImagesStall: a camera that sends nothing but these is given up as one that sends nothing, with the reason, from its
// first image on and later.
func TestDamagedImagesStall(t *testing.T) {
	var broken atomic.Bool
	broken.Store(true)
	uri := parts(t, func(number int) []byte {
		if broken.Load() {
			return []byte("broken")
		}
		return barcodeJPEG(t, number, small.width, small.height)
	})
	c := watch(t, &capture.Camera{
		Open: Open, URI: uri, Retry: quick, OpenTimeout: 300 * time.Millisecond, StallTimeout: 300 * time.Millisecond,
	})
	found := c.waitForChange("that it stalls", state(capture.Stalled))
	assert.Equal(t, "no good first image for 300ms: not an image that OpenCV can read", found.Reason)
	assert.Positive(t, found.Damaged)
	assert.Zero(t, found.Captured)
	assert.Zero(t, found.LastImage)
	c.waitForChange("that it waits", state(capture.Waiting))

	broken.Store(false)
	c.waitForChange("that it runs", state(capture.Running))
	c.moves(5)
	last := c.Stats().LastImage
	broken.Store(true)
	found = c.waitForChange("that it stalls", state(capture.Stalled))
	assert.Equal(t, "no good image for 300ms: not an image that OpenCV can read", found.Reason)
	assert.False(t, found.LastImage.Before(last))
	c.waitForChange("that it is lost", state(capture.Lost))
	broken.Store(false)
	c.waitForChange("that it runs", state(capture.Running))
	c.moves(5)
}

// TestPending: a frame that is not taken is Pending, which distinguishes a hanging consumer from a silent camera.
func TestPending(t *testing.T) {
	var silent atomic.Bool
	uri := parts(t, func(number int) []byte {
		for silent.Load() {
			time.Sleep(5 * time.Millisecond)
		}
		return barcodeJPEG(t, number, small.width, small.height)
	})
	c := &capture.Camera{Open: Open, URI: uri, StallTimeout: time.Hour}
	result := make(chan error, 1)
	go func() { result <- c.Run(t.Context()) }()
	require.Eventually(t, func() bool { return c.Stats().Pending }, patience, time.Millisecond)
	silent.Store(true)
	require.Eventually(t, func() bool {
		if f, ok := c.Take(); ok {
			f.Release()
		}
		return !c.Stats().Pending
	}, patience, 50*time.Millisecond)
	assert.Equal(t, capture.Running, c.Stats().State)
	silent.Store(false)
	require.Eventually(t, func() bool { return c.Stats().Pending }, patience, time.Millisecond)
	require.NoError(t, c.Close())
	require.NoError(t, <-result)
}
