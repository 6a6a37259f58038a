package source

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/engine"
)

// opener is Open by way of one backend, "" for the better one.
func opener(by backend) capture.Opener {
	return func(ctx context.Context, uri string, options capture.Options) (capture.Source, error) {
		return open(ctx, uri, settings{Options: options, backend: by})
	}
}

// readAll reads a source to its end and returns the numbers that its images show.
func readAll(t *testing.T, open capture.Opener, uri string, options capture.Options, check func(f capture.Frame)) []int {
	t.Helper()
	source, err := open(context.Background(), uri, options)
	require.NoError(t, err)
	defer func() { require.NoError(t, source.Close()) }()
	pool := &capture.Pool{}
	defer pool.Close()
	var numbers []int
	for {
		f, err := source.Next(pool)
		if errors.Is(err, io.EOF) {
			return numbers
		}
		require.NoError(t, err)
		assert.Equal(t, uint64(len(numbers)), f.Seq)
		assert.NotZero(t, f.Captured)
		numbers = append(numbers, readBarcode(f))
		if check != nil {
			check(f)
		}
		f.Release()
	}
}

func upTo(n int) []int {
	numbers := make([]int, n)
	for i := range numbers {
		numbers[i] = i
	}
	return numbers
}

func TestVideoFile(t *testing.T) {
	path := barcodeVideo(t, "a video ?#%.mp4", 90, 320, 240, 30)
	for _, backend := range []backend{"", byFFmpeg, byGStreamer} {
		t.Run("backend "+string(backend), func(t *testing.T) {
			numbers := readAll(t, opener(backend), path, capture.Options{EveryFrame: true}, func(f capture.Frame) {
				assert.Equal(t, []int{320, 240}, []int{f.Width, f.Height})
				assert.Equal(t, engine.BGR, f.Format)
			})
			assert.Equal(t, upTo(90), numbers)
		})
	}
}

func TestImageDirectory(t *testing.T) {
	dir := t.TempDir()
	sizes := [][2]int{{320, 240}, {320, 240}, {322, 242}, {322, 242}, {160, 480}, {480, 160}, {64, 64}}
	for i, size := range sizes {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "image"+strconv.Itoa(i)+".JPG"), barcodeJPEG(t, i, size[0], size[1]), 0o600))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "readme.txt"), []byte("not an image"), 0o600))
	var got [][2]int
	numbers := readAll(t, Open, dir, capture.Options{}, func(f capture.Frame) { got = append(got, [2]int{f.Width, f.Height}) })
	assert.Equal(t, upTo(len(sizes)), numbers)
	assert.Equal(t, sizes, got)

	assert.Equal(t, []int{3}, readAll(t, Open, filepath.Join(dir, "image3.JPG"), capture.Options{}, nil))
}

func TestDamagedImages(t *testing.T) {
	dir := t.TempDir()
	whole := barcodeJPEG(t, 5, 320, 240)
	flipped := barcodeJPEG(t, 9, 320, 240)
	header := bytes.Index(flipped, []byte{0xFF, 0xC0})
	require.Positive(t, header)
	flipped[header+9] = 77 // components
	for name, data := range map[string][]byte{
		"0.jpg": whole, "1.jpg": whole, "2.jpg": {}, "3.jpg": whole[:20], "4.jpg": []byte("hello"), "5.jpg": flipped, "6.jpg": whole,
		"7.jpg": whole[:len(whole)*3/4], "8.jpg": thumbnailed(whole[:len(whole)*3/4]), "9.jpg": slices.Concat(whole, []byte("made by")),
		"a.jpg": whole[:len(whole)-2],
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
	}
	source, err := Open(context.Background(), dir, capture.Options{})
	require.NoError(t, err)
	defer source.Close()
	pool := &capture.Pool{Buffers: 1} // the damaged images meet the buffer that holds a whole one
	defer pool.Close()
	good, bad, damaged := 0, 0, 0
	for {
		f, err := source.Next(pool)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			require.ErrorIs(t, err, capture.ErrImage)
			bad++
			continue
		}
		if f.Damaged {
			damaged++
		}
		assert.Equal(t, 5, readBarcode(f))
		good++
		f.Release()
	}
	assert.Equal(t, 7, good, "the bar code is in the upper part")
	assert.Equal(t, 3, damaged)
	assert.Equal(t, 4, bad)
}

// thumbnailed is a JPEG with a small whole one in a segment before it, as cameras write them.
func thumbnailed(data []byte) []byte {
	return slices.Concat(data[:2], []byte{0xFF, 0xE1, 0, 6, 0xFF, 0xD8, 0xFF, 0xD9}, data[2:])
}

// pipelineFormats are the caps that GStreamer can end in and the format that comes out.
var pipelineFormats = map[string]engine.PixelFormat{
	"BGR": engine.BGR, "BGRx": engine.BGRx, "BGRA": engine.BGRx, "NV12": engine.NV12, "YUY2": engine.YUYV, "GRAY8": engine.GRAY8,
}

func TestPipelineFormats(t *testing.T) {
	t.Parallel()
	for caps, format := range pipelineFormats {
		for _, size := range [][2]int{{320, 240}, {326, 242}} {
			t.Run(caps+" "+strconv.Itoa(size[0]), func(t *testing.T) {
				path := barcodeVideo(t, "v.mp4", 20, size[0], size[1], 30)
				pipeline := "gst:filesrc location=" + path + " ! qtdemux ! avdec_h264 ! videoconvert ! video/x-raw,format=" + caps
				numbers := readAll(t, Open, pipeline+" ! appsink sync=false",
					capture.Options{EveryFrame: true}, func(f capture.Frame) {
						assert.Equal(t, format, f.Format)
						assert.Equal(t, size, [2]int{f.Width, f.Height})
						assert.Len(t, f.Data, f.Stride*format.Rows(f.Height))
					})
				assert.Equal(t, upTo(20), numbers)
			})
		}
	}
}

func TestPipelineWithoutCaps(t *testing.T) {
	n := 0
	count := func(capture.Frame) { n++ }
	readAll(t, Open, "gst:videotestsrc num-buffers=10 ! video/x-raw,width=64,height=48 ! videoconvert ! appsink sync=false",
		capture.Options{}, count)
	assert.Equal(t, 10, n)
	// The end of a pipeline must not bring the last image again and again.
	n = 0
	readAll(t, Open, "gst:videotestsrc num-buffers=3 ! videoconvert ! video/x-raw,width=64,height=48,format=GRAY8",
		capture.Options{EveryFrame: true}, count)
	assert.Equal(t, 3, n)
}

func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text.mp4")
	require.NoError(t, os.WriteFile(text, []byte("not a video"), 0o600))
	const uris = "give a device number, /dev/videoN, csi://N, rtsp://, http://, a file, a directory, gst:PIPELINE or demo"
	const pipelines = "try the pipeline with gst-launch-1.0, with fakesink in place of the appsink"
	for _, c := range []struct {
		uri  string
		kind error
		text string
	}{
		{"", capture.ErrURI, "parse: empty camera URI (" + uris + ")"},
		{"/dev/video99", capture.ErrNotFound, "open /dev/video99: no such camera (" + deviceHint(Devices()) + ")"},
		{"99", capture.ErrNotFound, "open /dev/video99: no such camera (" + deviceHint(Devices()) + ")"},
		{dir + "/none.mp4", capture.ErrNotFound, "open " + dir + "/none.mp4: no such file"},
		{dir + "/none/", capture.ErrNotFound, "open " + dir + "/none/: no such file"},
		{
			text + "?loop=1", capture.ErrNotFound,
			"open " + text + "?loop=1: no such file (parameters need file:// before the path)",
		},
		{
			dir, capture.ErrNotFound, "open " + dir +
				": no image in this directory (known: .jpg .jpeg .png .bmp .webp .tif .tiff .pgm .ppm)",
		},
		{text, capture.ErrFormat, "open " + text + ": not a video that OpenCV can read (check whether ffprobe recognizes it)"},
		{"gst:nosuchelement", capture.ErrUnavailable, "open gst:nosuchelement: no element \"nosuchelement\" (" + pipelines + ")"},
		{"demo?width=10&height=10", capture.ErrURI, `parse demo?width=10&height=10: height "10" is not a whole number of 64 to 8192`},
	} {
		t.Run(c.uri, func(t *testing.T) {
			source, err := Open(context.Background(), c.uri, capture.Options{})
			require.Nil(t, source)
			require.ErrorIs(t, err, c.kind)
			assert.EqualError(t, err, c.text)
		})
	}
}

func TestUnsupportedPipelineFormat(t *testing.T) {
	for _, caps := range []string{"Y42B", "UYVY", "RGBx"} {
		_, err := Open(context.Background(), "gst:videotestsrc num-buffers=3 ! video/x-raw,format="+caps+",width=64,height=48",
			capture.Options{})
		require.ErrorIs(t, err, capture.ErrFormat)
		assert.Contains(t, err.Error(), "the pipeline ends in pixel format "+caps+" (put 'videoconvert ! video/x-raw,format=NV12'")
	}
}

// From the second image on OpenCV writes into the lent buffers, without a copy.
func TestDecodesInPlace(t *testing.T) {
	dir := t.TempDir()
	for i := range 6 {
		require.NoError(t, os.WriteFile(filepath.Join(dir, strconv.Itoa(i)+".jpg"), barcodeJPEG(t, i, 320, 240), 0o600))
	}
	for _, uri := range []string{
		barcodeVideo(t, "v.mp4", 6, 320, 240, 30),
		dir,
	} {
		source, err := Open(context.Background(), uri, capture.Options{EveryFrame: true})
		require.NoError(t, err)
		var d *decoder
		switch s := source.(type) {
		case *video:
			d = &s.decoder
		case *images:
			d = &s.image.decoder
		}
		pool := &capture.Pool{Buffers: 2}
		var held capture.Frame
		for n := range 6 {
			f, err := source.Next(pool)
			require.NoError(t, err)
			held.Release()
			held = f
			if n == 0 {
				assert.Empty(t, d.mats, "the first image's size is not known beforehand")
				continue
			}
			mat, err := d.wrap(f)
			require.NoError(t, err)
			assert.True(t, sharesMemory(mat, f))
			assert.Nil(t, d.ownMat)
			assert.LessOrEqual(t, len(d.mats), 2)
		}
		held.Release()
		require.NoError(t, source.Close())
		require.NoError(t, pool.Close())
	}
}
