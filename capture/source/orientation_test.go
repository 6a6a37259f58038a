package source

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"image"
	"image/color"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gocv.io/x/gocv"

	"github.com/edge-infer/edge-infer/capture"
)

// exif is EXIF data with an orientation.
func exif(order binary.AppendByteOrder, orientation uint16) []byte {
	data := []byte("II*\x00")
	if order.String() == binary.BigEndian.String() {
		data = []byte("MM\x00*")
	}
	data = order.AppendUint32(data, 8)
	data = order.AppendUint16(data, 1)
	data = order.AppendUint16(data, tagOrientation)
	data = order.AppendUint16(data, typeShort)
	data = order.AppendUint32(data, 1)
	data = order.AppendUint16(data, orientation)
	return append(data, make([]byte, 6)...)
}

// withEXIF is an encoded image with EXIF data.
func withEXIF(suffix string, data, about []byte) []byte {
	if suffix == ".jpg" {
		about = append([]byte("Exif\x00\x00"), about...)
		segment := binary.BigEndian.AppendUint16([]byte{0xFF, 0xE1}, uint16(len(about)+2))
		return slices.Concat(data[:2], segment, about, data[2:])
	}
	chunk := func(name string, content []byte) []byte {
		all := append(binary.LittleEndian.AppendUint32([]byte(name), uint32(len(content))), content...)
		return append(all, make([]byte, len(content)%2)...)
	}
	const width, height = 64, 48
	extended := []byte{8, 0, 0, 0, width - 1, 0, 0, height - 1, 0, 0}
	content := slices.Concat([]byte("WEBP"), chunk("VP8X", extended), data[12:], chunk("EXIF", about))
	return chunk("RIFF", content)
}

// corners are the colours in the corners of an image, the first row first.
func corners(t *testing.T, path string) (width, height int, colours [4]string) {
	source, err := Open(t.Context(), path, capture.Options{})
	require.NoError(t, err)
	defer source.Close()
	pool := &capture.Pool{}
	defer pool.Close()
	f, err := source.Next(pool)
	require.NoError(t, err)
	defer f.Release()
	for i := range colours {
		x := f.Width/8 + i%2*f.Width*3/4
		y := f.Height/8 + i/2*f.Height*3/4
		at := f.Data[y*f.Stride+3*x:]
		colours[i] = fmt.Sprint(at[0] > 128, at[1] > 128, at[2] > 128)
	}
	return f.Width, f.Height, colours
}

// cornersMat is an image with red, green, blue and white corners.
func cornersMat(t *testing.T) gocv.Mat {
	mat := gocv.NewMatWithSize(48, 64, gocv.MatTypeCV8UC3)
	t.Cleanup(func() { require.NoError(t, mat.Close()) })
	for i, c := range []color.RGBA{{R: 255}, {G: 255}, {B: 255}, {R: 255, G: 255, B: 255}} {
		corner := image.Rect(0, 0, 32, 24).Add(image.Pt(i%2*32, i/2*24))
		require.NoError(t, gocv.Rectangle(&mat, corner, c, -1))
	}
	return mat
}

// TestOrientationOfEveryFormat: WebP images are shown as JPEG images with the same EXIF orientation are, which OpenCV turns.
func TestOrientationOfEveryFormat(t *testing.T) {
	mat := cornersMat(t)
	dir := t.TempDir()
	write := func(suffix, name string, about []byte) string {
		encoded, err := gocv.IMEncode(gocv.FileExt(suffix), mat)
		require.NoError(t, err)
		defer encoded.Close()
		path := filepath.Join(dir, name+suffix)
		require.NoError(t, os.WriteFile(path, withEXIF(suffix, encoded.GetBytes(), about), 0o600))
		return path
	}
	seen := map[[4]string]bool{}
	for orientation := uint16(1); orientation <= 8; orientation++ {
		wide, high, want := corners(t, write(".jpg", fmt.Sprint(orientation), exif(binary.BigEndian, orientation)))
		seen[want] = true
		for name, about := range map[string][]byte{
			"little": exif(binary.LittleEndian, orientation), "big": exif(binary.BigEndian, orientation),
			"prefixed": append([]byte("Exif\x00\x00"), exif(binary.LittleEndian, orientation)...),
		} {
			width, height, got := corners(t, write(".webp", fmt.Sprint(name, orientation), about))
			assert.Equal(t, []int{wide, high}, []int{width, height}, "%s %d", name, orientation)
			assert.Equal(t, want, got, "%s %d", name, orientation)
		}
	}
	require.Len(t, seen, 8)

	_, _, want := corners(t, write(".jpg", "plain", exif(binary.BigEndian, 1)))
	for name, about := range map[string][]byte{
		"empty": nil, "short": exif(binary.BigEndian, 6)[:20], "zero": exif(binary.BigEndian, 0), "nine": exif(binary.BigEndian, 9),
		"elsewhere": append([]byte("II*\x00\xff\xff\xff\xff"), make([]byte, 20)...), "junk": []byte("not EXIF at all, but long"),
	} {
		_, _, got := corners(t, write(".webp", name, about))
		assert.Equal(t, want, got, name)
	}
}

// withProperties is an AVIF file of one item with further properties of it.
func withProperties(data []byte, properties ...string) []byte {
	var boxes, numbers []byte
	for i, p := range properties {
		boxes = append(binary.BigEndian.AppendUint32(boxes, uint32(4+len(p))), p...)
		numbers = append(numbers, 0x80|byte(5+i)) // after the four that it has
	}
	grow := func(data []byte, name string, by int) {
		at := bytes.Index(data, []byte(name)) - 4
		binary.BigEndian.PutUint32(data[at:], binary.BigEndian.Uint32(data[at:])+uint32(by))
	}
	data = slices.Clone(data)
	all := len(boxes) + len(numbers)
	payload := binary.BigEndian.AppendUint32(nil, uint32(bytes.Index(data, []byte("mdat"))+4))
	binary.BigEndian.PutUint32(data[bytes.Index(data, payload):], binary.BigEndian.Uint32(payload)+uint32(all)) // in iloc
	grow(data, "meta", all)
	grow(data, "iprp", all)
	grow(data, "ipco", len(boxes))
	grow(data, "ipma", len(numbers))
	associations := bytes.Index(data, []byte("ipma"))
	data[associations+14] += byte(len(numbers))
	end := bytes.Index(data, []byte("mdat")) - 4
	return slices.Concat(data[:associations-4], boxes, data[associations-4:end], numbers, data[end:])
}

// TestOrientationOfAVIF: the properties irot and imir turn an AVIF image, in all eight ways.
func TestOrientationOfAVIF(t *testing.T) {
	plain, err := os.ReadFile("testdata/corners.avif")
	require.NoError(t, err)
	opened, err := Open(t.Context(), "testdata/corners.avif", capture.Options{})
	if err != nil {
		t.Skipf("the FFmpeg of this OpenCV does not decode AV1: %v", err)
	}
	require.NoError(t, opened.Close())
	encoded, err := gocv.IMEncode(".jpg", cornersMat(t))
	require.NoError(t, err)
	defer encoded.Close()
	dir := t.TempDir()
	for orientation, properties := range map[uint16][]string{
		1: nil, 2: {"imir\x01"}, 3: {"irot\x02"}, 4: {"imir\x00"}, 5: {"irot\x01", "imir\x00"}, 6: {"irot\x03"}, 7: {"irot\x03", "imir\x00"},
		8: {"irot\x01"},
	} {
		jpeg := filepath.Join(dir, fmt.Sprint(orientation, ".jpg"))
		require.NoError(t, os.WriteFile(jpeg, withEXIF(".jpg", encoded.GetBytes(), exif(binary.BigEndian, orientation)), 0o600))
		avif := filepath.Join(dir, fmt.Sprint(orientation, ".avif"))
		require.NoError(t, os.WriteFile(avif, withProperties(plain, properties...), 0o600))
		wide, high, want := corners(t, jpeg)
		width, height, got := corners(t, avif)
		assert.Equal(t, []int{wide, high}, []int{width, height}, "%d", orientation)
		assert.Equal(t, want, got, "%d", orientation)
	}
	for orientation, properties := range map[int][]string{
		7: {"irot\x01", "imir\x01"}, 2: {"irot\x02", "imir\x00"}, 4: {"irot\x02", "imir\x01"}, 5: {"irot\x03", "imir\x01"}, 1: {"irot"},
	} {
		assert.Equal(t, orientation, heifOrientation(withProperties(plain, properties...)))
	}
}

// FuzzOrientation: whatever a file says, it has an orientation.
func FuzzOrientation(f *testing.F) {
	f.Add(withEXIF(".webp", make([]byte, 30), exif(binary.LittleEndian, 6)))
	f.Add(withEXIF(".webp", make([]byte, 31), exif(binary.BigEndian, 3)))
	plain, err := os.ReadFile("testdata/corners.avif")
	require.NoError(f, err)
	f.Add(withProperties(plain, "irot\x03", "imir\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if o := webpOrientation(data); o < 1 || o > 8 {
			t.Fatal(o)
		}
		if o := heifOrientation(data); o < 1 || o > 8 {
			t.Fatal(o)
		}
		if o := exifOrientation(data); o < 1 || o > 8 {
			t.Fatal(o)
		}
	})
}
