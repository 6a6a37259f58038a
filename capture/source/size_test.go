package source

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"image"
	_ "image/jpeg"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gocv.io/x/gocv"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/capture/capturetest"
	"github.com/edge-infer/edge-infer/engine"
)

// encoded is an image of that size as OpenCV writes it.
func encoded(t testing.TB, suffix string, s size, parameters ...int) []byte {
	mat := gocv.NewMatWithSize(s.height, s.width, gocv.MatTypeCV8UC3)
	defer mat.Close()
	if len(parameters) == 0 { // gocv needs one
		parameters = []int{gocv.IMWriteJpegProgressive, 0}
	}
	out, err := gocv.IMEncodeWithParams(gocv.FileExt(suffix), mat, parameters)
	require.NoError(t, err)
	defer out.Close()
	return slices.Clone(out.GetBytes())
}

// withThumbnail puts a whole JPEG into an application segment of another one, as cameras do.
func withThumbnail(img, thumbnail []byte) []byte {
	segment := binary.BigEndian.AppendUint16([]byte{0xFF, 0xE1}, uint16(len(thumbnail)+2))
	return slices.Concat(img[:2], segment, thumbnail, img[2:])
}

// giant returns a small JPEG or PNG whose header declares another size.
func giant(t testing.TB, suffix string, s size) []byte {
	data := encoded(t, suffix, size{8, 8})
	at := 16
	if suffix == ".jpg" {
		at = bytes.Index(data, []byte{0xFF, 0xC0}) + 5
		binary.BigEndian.PutUint16(data[at:], uint16(s.height))
		binary.BigEndian.PutUint16(data[at+2:], uint16(s.width))
		return data
	}
	binary.BigEndian.PutUint32(data[at:], uint32(s.width))
	binary.BigEndian.PutUint32(data[at+4:], uint32(s.height))
	return data
}

func TestEncodedSize(t *testing.T) {
	want := size{322, 246}
	jpeg := encoded(t, ".jpg", want)
	bottomUp := encoded(t, ".bmp", want)
	topDown := slices.Clone(bottomUp)
	binary.LittleEndian.PutUint32(topDown[22:], uint32(-int32(want.height)))
	for name, data := range map[string][]byte{
		"jpeg":             jpeg,
		"progressive jpeg": encoded(t, ".jpg", want, gocv.IMWriteJpegProgressive, 1),
		"thumbnail":        withThumbnail(jpeg, encoded(t, ".jpg", size{16, 16})),
		"padded markers":   slices.Concat(jpeg[:2], []byte{0xFF, 0xFF, 0xFF}, jpeg[2:]),
		"png":              encoded(t, ".png", want),
		"bmp":              bottomUp,
		"bmp top down":     topDown,
		"webp":             encoded(t, ".webp", want),
		"webp lossless":    encoded(t, ".webp", want, gocv.IMWriteWebpQuality, 101),
		"tiff":             encoded(t, ".tiff", want),
		"ppm":              encoded(t, ".ppm", want),
		"pgm by hand":      append([]byte("P5\n# comment 9 9\n 322 # width\r246\n255\n"), make([]byte, want.width*want.height)...),
	} {
		t.Run(name, func(t *testing.T) {
			got, err := encodedSize(data)
			require.NoError(t, err)
			assert.Equal(t, want, got)
			p, pool := &encodedImage{data: data}, &capture.Pool{}
			defer p.decoder.closeMats()
			defer pool.Close()
			f, err := p.decode(pool)
			require.NoError(t, err)
			assert.Equal(t, want, size{f.Width, f.Height}, "what OpenCV makes of it")
			f.Release()
			assert.Zero(t, testing.AllocsPerRun(100, func() { _, _ = encodedSize(data) }))
			for n := range min(len(data), 200) { // never more than there is
				_, _ = encodedSize(data[:n:n])
			}
		})
	}
	for name, c := range map[string]struct {
		data string
		err  error
	}{
		"empty":             {"", errNotImage},
		"text":              {"<html>", errNotImage},
		"gif":               {"GIF89a\x10\x00\x10\x00", errNotImage},
		"bare jpeg":         {"\xFF\xD8", errTruncatedHeader},
		"two beginnings":    {"\xFF\xD8\xFF\xD8\xFF\xE0", errNotImage},
		"scan before frame": {"\xFF\xD8\xFF\xDA\x00\x02", errNotImage},
		"short segment":     {"\xFF\xD8\xFF\xE0\x00\x01\xFF\xC0\x00\x11\x08\x00\x10\x00\x10", errTruncatedHeader},
		"cut frame":         {"\xFF\xD8\xFF\xC0\x00\x11\x08\x00\x10\x00", errTruncatedHeader},
		"cut png":           {"\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR", errTruncatedHeader},
		"no webp":           {"RIFF\x00\x00\x00\x00WEBPVP9 00000000000000000000", errNotImage},
		"two widths": {"II*\x00\x08\x00\x00\x00\x02\x00" + "\x00\x01\x03\x00\x01\x00\x00\x00\x10\x00\x00\x00" +
			"\x00\x01\x03\x00\x01\x00\x00\x00\x20\x00\x00\x00", errNotImage},
		"huge directory": {"MM\x00*\x7f\xff\xff\xff", errTruncatedHeader},
		"pnm of words":   {"P6 wide high", errNotImage},
	} {
		_, err := encodedSize([]byte(c.data))
		assert.ErrorIs(t, err, c.err, name)
	}
}

// tooLarge is why a giant is refused.
const tooLarge = "image of 30000x30000 has more than 33554432 pixels (lower the camera's resolution or raise max_pixels; a file may take half of the free memory)"

func TestSizeLimit(t *testing.T) {
	for _, c := range []struct {
		limit  sizeLimit
		size   size
		format engine.PixelFormat
		text   string
	}{
		{capture.DefaultMaxPixels, size{7680, 4320}, engine.BGR, ""},
		{capture.DefaultMaxPixels, size{30000, 30000}, engine.BGR, "read: " + tooLarge},
		{capture.MaxPixels, size{30000, 30000}, engine.BGR, ""},
		{capture.DefaultMaxPixels, size{1, 40000}, engine.BGR, "read: image of 1x40000, sides must be 1 to 32768"},
		{capture.DefaultMaxPixels, size{4 << 30, 4 << 30}, engine.BGR, "read: image of 4294967296x4294967296, sides must be 1 to 32768"},
		{capture.DefaultMaxPixels, size{0, 10}, engine.BGR, "read: image of 0x10, sides must be 1 to 32768"},
		{100, size{10, 10}, engine.GRAY8, ""},
		{99, size{10, 10}, engine.GRAY8, "read: image of 10x10 has more than 99 pixels (lower the camera's resolution or raise max_pixels; a file may take half of the free memory)"},
		{100, size{9, 10}, engine.YUYV, "read: image of 9x10 needs even sides in YUYV"},
		{100, size{10, 9}, engine.NV12, "read: image of 10x9 needs even sides in NV12"},
		{100, size{10, 9}, engine.YUYV, ""},
	} {
		err := c.limit.check(c.size, c.format)
		if c.text == "" {
			assert.NoError(t, err)
			continue
		}
		require.ErrorIs(t, err, capture.ErrImage)
		assert.EqualError(t, err, c.text)
	}
}

// TestGiantImagesAreNotDecoded: the header decides, before there is memory for the pixels.
func TestGiantImagesAreNotDecoded(t *testing.T) {
	var memory capturetest.Ledger
	pool := &capture.Pool{Alloc: memory.Alloc}
	huge := size{30000, 30000}
	for _, data := range [][]byte{giant(t, ".jpg", huge), giant(t, ".png", huge), giant(t, ".jpg", size{1, 40000})} {
		p := &encodedImage{data: data}
		p.decoder.limit = capture.DefaultMaxPixels
		p.decoder.interpret = interpretColour
		p.decoder.decode = func(*gocv.Mat) bool {
			assert.Fail(t, "it is decoded")
			return false
		}
		_, err := p.decode(pool)
		require.ErrorIs(t, err, capture.ErrImage)
		assert.Zero(t, memory.Made)
	}
}

// TestGiantAmongImages: a directory's other images are read all the same, and a caller may ask for larger ones.
func TestGiantAmongImages(t *testing.T) {
	dir := t.TempDir()
	for name, data := range map[string][]byte{
		"0.jpg": barcodeJPEG(t, 0, 160, 120), "1.jpg": giant(t, ".jpg", size{30000, 30000}), "2.jpg": barcodeJPEG(t, 2, 160, 120),
		"3.png": giant(t, ".png", size{30000, 30000}), "4.jpg": barcodeJPEG(t, 4, 160, 120),
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
	}
	c := &capture.Camera{Open: Open, URI: dir, Lossless: true, Once: true}
	numbers, err := drain(t, c, nil)
	require.NoError(t, err)
	assert.Equal(t, []int{0, 2, 4}, numbers)
	assert.Equal(t, uint64(2), c.Stats().Damaged)
	assert.Equal(t, tooLarge, c.Stats().LastDamage)

	_, err = drain(t, &capture.Camera{
		Open: Open, URI: filepath.Join(dir, "0.jpg"), Once: true, Lossless: true, MaxPixels: 160*120 - 1,
	}, nil)
	require.EqualError(t, err, "read "+filepath.Join(dir, "0.jpg")+": it contains no image")
	numbers, err = drain(t, &capture.Camera{
		Open: Open, URI: filepath.Join(dir, "0.jpg"), Once: true, Lossless: true, MaxPixels: 160 * 120,
	}, nil)
	require.NoError(t, err)
	assert.Equal(t, []int{0}, numbers)
}

// TestGiantVideo: a video declares its size when it is opened.
func TestGiantVideo(t *testing.T) {
	video := barcodeVideo(t, "v.mp4", 5, 160, 120, 30)
	for _, uri := range []string{video, "gst:videotestsrc num-buffers=5 ! video/x-raw,format=NV12,width=160,height=120 ! appsink sync=false"} {
		_, err := Open(t.Context(), uri, capture.Options{MaxPixels: 100 * 100})
		require.ErrorIs(t, err, capture.ErrFormat)
		name := strings.TrimPrefix(err.Error(), "open ")
		assert.Equal(t, uri+": image of 160x120 has more than 10000 pixels (lower the camera's resolution or raise max_pixels; a file may take half of the free memory)", name)
	}
}

// FuzzEncodedSize: it never reads beyond the data, and agrees with another reader of JPEG and PNG about every header that both understand.
func FuzzEncodedSize(f *testing.F) {
	for _, suffix := range []string{".jpg", ".png", ".bmp", ".webp", ".tiff", ".ppm"} {
		data := encoded(f, suffix, size{16, 9})
		f.Add(data[:min(len(data), 1024)])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := encodedSize(data)
		if err != nil && !errors.Is(err, errNotImage) && !errors.Is(err, errTruncatedHeader) {
			t.Fatal(err)
		}
		if !bytes.HasPrefix(data, []byte("\xFF\xD8")) && !bytes.HasPrefix(data, []byte("\x89PNG")) {
			return
		}
		config, _, other := image.DecodeConfig(bytes.NewReader(data))
		if other == nil && err == nil && got != (size{config.Width, config.Height}) {
			t.Fatalf("%v, not %dx%d", got, config.Width, config.Height)
		}
	})
}

var _ = png.Decode // registers PNG with image.DecodeConfig

// TestLargeFilesNeedLargeMaxPixels: aerial images on a disk, and no camera's.
func TestLargeFilesNeedLargeMaxPixels(t *testing.T) {
	path := filepath.Join(t.TempDir(), "black.ppm")
	header := "P6 5000 4600 255\n"
	require.NoError(t, os.WriteFile(path, []byte(header), 0o600))
	require.NoError(t, os.Truncate(path, int64(len(header)+3*5000*4600)))
	pool := &capture.Pool{}
	defer pool.Close()
	see := func(pixels int) error {
		opened, err := Open(context.Background(), path, capture.Options{MaxPixels: pixels})
		require.NoError(t, err)
		defer opened.Close()
		f, err := opened.Next(pool)
		f.Release()
		return err
	}
	require.EqualError(t, see(0), "read "+path+": more than 64 MiB")
	require.NoError(t, see(capture.MaxPixels))
	require.NoError(t, os.Truncate(path, 1<<31))
	require.EqualError(t, see(capture.MaxPixels), "read "+path+": more than 2 GiB")
}
