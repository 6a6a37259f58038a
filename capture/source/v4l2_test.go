package source

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/internal/testtool"
)

// v4l2Path is the environment variable that names the stand-in for a camera, see testdata/v4l2.c.
const v4l2Path = "EDGE_INFER_TEST_V4L2"

// TestV4L2 runs itself again in a process in which OpenCV finds a camera that is none.
func TestV4L2(t *testing.T) {
	t.Parallel()
	if os.Getenv(v4l2Path) != "" {
		t.Run("contract", testV4L2Contract)
		t.Run("yuyv", testV4L2YUYV)
		t.Run("jpeg", testV4L2JPEG)
		return
	}
	library := filepath.Join(t.TempDir(), "v4l2.so")
	output, err := exec.Command(testtool.Program(t, "cc"), "-shared", "-fPIC", "-o", library, "testdata/v4l2.c").CombinedOutput()
	require.NoError(t, err, string(output))
	c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestV4L2$", "-test.v", "-test.timeout=5m")
	c.Env = append(os.Environ(), v4l2Path+"="+filepath.Join(t.TempDir(), "video7"), "LD_PRELOAD="+library)
	output, err = c.CombinedOutput()
	require.NoError(t, err, string(output))
	assert.Contains(t, string(output), "--- PASS: TestV4L2/jpeg")
}

// behave tells the camera what to do. One that is gone has no device file.
func behave(t *testing.T, text string) {
	path := os.Getenv(v4l2Path)
	if text == "gone" {
		_ = os.Remove(path)
		return
	}
	require.NoError(t, os.WriteFile(path+".new", []byte(text), 0o600))
	require.NoError(t, os.Rename(path+".new", path))
}

func v4l2URI(query string) string { return "v4l2://" + os.Getenv(v4l2Path) + query }

func testV4L2Contract(t *testing.T) {
	behave(t, "gone")
	checkContract(t, &stand{
		uri: v4l2URI(""), kill: func() { behave(t, "gone") }, silence: func() { behave(t, "hung") },
		show: func(s size) { behave(t, "yuyv "+s.words()) },
	})
}

// words is a size as the camera reads it.
func (s size) words() string { return strings.ReplaceAll(s.String(), "x", " ") }

func testV4L2YUYV(t *testing.T) {
	behave(t, "yuyv 160 120")
	numbers := map[string][]int{}
	for _, c := range []struct {
		query  string
		format engine.PixelFormat
	}{{"", engine.BGR}, {"?format=yuyv&width=160&height=120&fps=30", engine.YUYV}, {"?format=mjpeg", engine.BGR}} {
		source, err := Open(t.Context(), v4l2URI(c.query), capture.Options{})
		require.NoError(t, err)
		pool := &capture.Pool{}
		for range 10 {
			f, err := source.Next(pool)
			require.NoError(t, err)
			assert.Equal(t, c.format, f.Format)
			assert.Equal(t, small, size{f.Width, f.Height})
			numbers[c.query] = append(numbers[c.query], readBarcode(f))
			f.Release()
		}
		assert.Equal(t, numbers[""], numbers[c.query])
		require.NoError(t, source.Close())
		require.NoError(t, pool.Close())
	}
}

// testV4L2JPEG: images that a camera compresses are decoded here, so that a broken one, a giant or one of another size is what it is.
func testV4L2JPEG(t *testing.T) {
	img := func(data []byte) {
		path := os.Getenv(v4l2Path) + ".jpg"
		require.NoError(t, os.WriteFile(path+".new", data, 0o600))
		require.NoError(t, os.Rename(path+".new", path))
	}
	for _, c := range []struct{ mode, query string }{{"mjpg 160 120", "?format=mjpeg"}, {"only 160 120", ""}} {
		t.Run(c.mode, func(t *testing.T) {
			behave(t, c.mode)
			img(barcodeJPEG(t, 5, small.width, small.height))
			source, err := Open(t.Context(), v4l2URI(c.query), capture.Options{KeepUnits: time.Minute})
			require.NoError(t, err)
			defer source.Close()
			packets := source.(capture.Packets).Ring().Reader()
			pool := &capture.Pool{Buffers: 1}
			defer pool.Close()
			next := func() (capture.Frame, error) { // some images are in the driver's queue
				for range 2 * 4 {
					f, err := source.Next(pool)
					f.Release()
					if err != nil {
						require.ErrorIs(t, err, capture.ErrImage)
					}
				}
				return source.Next(pool)
			}
			f, err := next()
			require.NoError(t, err)
			assert.Equal(t, 5, readBarcode(f))
			f.Release()
			unit, err := packets.Next(t.Context())
			require.NoError(t, err)
			assert.Equal(t, capture.MJPEG, unit.Codec)
			assert.True(t, unit.Key)
			assert.Equal(t, barcodeJPEG(t, 5, small.width, small.height), unit.Data)

			img([]byte("broken"))
			_, err = next()
			require.EqualError(t, err, "read "+os.Getenv(v4l2Path)+": not an image that OpenCV can read")
			img(giant(t, ".jpg", size{30000, 30000}))
			_, err = next()
			require.EqualError(t, err, "read "+os.Getenv(v4l2Path)+": "+tooLarge)

			img(barcodeJPEG(t, 9, large.width, large.height))
			f, err = next()
			require.NoError(t, err)
			assert.Equal(t, 9, readBarcode(f))
			assert.Equal(t, large, size{f.Width, f.Height})
			f.Release()
		})
	}
}
