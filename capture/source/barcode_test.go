package source

import (
	"bytes"
	"image"
	"image/jpeg"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/internal/testtool"
)

// The tests know each image by a number that it shows as vertical bars, one a bit, which survive every codec.
const bars = 16

// barcode draws a number as grey pixels.
func barcode(number, width, height int) []byte {
	pixels := make([]byte, width*height)
	for i := range pixels {
		if number>>(i%width*bars/width)&1 == 1 {
			pixels[i] = 235
		} else {
			pixels[i] = 16
		}
	}
	return pixels
}

// readBarcode reads the number of a frame of any format, or returns -1 when a bar is neither dark nor bright.
func readBarcode(f capture.Frame) int {
	number := 0
	for bit := range bars {
		x := (2*bit + 1) * f.Width / (2 * bars)
		for _, y := range []int{f.Height / 4, f.Height / 2, f.Height * 3 / 4} {
			value := f.Data[y*f.Stride+x*f.Format.RowBytes(2)/2/brightnessStep(f.Format)*brightnessStep(f.Format)]
			switch {
			case value > 170:
				number |= 1 << bit
			case value > 85:
				return -1
			case number>>bit&1 == 1:
				return -1 // the rows disagree
			}
		}
	}
	return number
}

// brightnessStep is the distance in bytes of two samples of brightness.
func brightnessStep(f engine.PixelFormat) int {
	return map[engine.PixelFormat]int{engine.BGR: 3, engine.BGRx: 4, engine.YUYV: 2, engine.NV12: 1, engine.GRAY8: 1}[f]
}

func barcodeJPEG(t testing.TB, number, width, height int) []byte {
	var out bytes.Buffer
	img := &image.Gray{Pix: barcode(number, width, height), Stride: width, Rect: image.Rect(0, 0, width, height)}
	require.NoError(t, jpeg.Encode(&out, img, nil))
	return out.Bytes()
}

// barcodeVideo makes a video file whose images are numbered from 0.
func barcodeVideo(t testing.TB, name string, frames, width, height, fps int) string {
	path := filepath.Join(t.TempDir(), name)
	command := exec.Command(testtool.Program(t, "ffmpeg"), "-v", "error", "-f", "rawvideo", "-pix_fmt", "gray",
		"-s", size{width, height}.String(), "-r", strconv.Itoa(fps), "-i", "-", "-pix_fmt", "yuv420p", "-c:v", "libx264",
		"-preset", "ultrafast", "-g", "10", "-bf", "0", path)
	var raw bytes.Buffer
	for n := range frames {
		raw.Write(barcode(n, width, height))
	}
	command.Stdin = &raw
	output, err := command.CombinedOutput()
	require.NoError(t, err, string(output))
	return path
}
