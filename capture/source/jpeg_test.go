package source

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/internal/testtool"
)

// TestPixelsOfJPEG: the images of Motion JPEG are those that FFmpeg decodes, within rounding; where the file has half of the colour's
// resolution, both interpolate it in their own way.
func TestPixelsOfJPEG(t *testing.T) {
	t.Parallel()
	const width, height, frames = 320, 240, 5
	for _, test := range []struct {
		format      string
		worst, mean float64
	}{{"yuvj444p", 4, 0.1}, {"yuvj420p", 100, 1.5}} {
		t.Run(test.format, func(t *testing.T) {
			dir := t.TempDir()
			run := func(arguments ...string) {
				output, err := exec.Command(testtool.Program(t, "ffmpeg"), append([]string{"-v", "error"}, arguments...)...).CombinedOutput()
				require.NoError(t, err, string(output))
			}
			video, images := filepath.Join(dir, "v.mjpeg"), filepath.Join(dir, "v.bgr")
			run("-f", "lavfi", "-i", "testsrc2=size=320x240:rate=25", "-frames:v", "5", "-c:v", "mjpeg", "-q:v", "2", "-pix_fmt", test.format, video)
			run("-i", video, "-pix_fmt", "bgr24", "-sws_flags", "accurate_rnd+full_chroma_int+full_chroma_inp+bicubic", "-f", "rawvideo", images)
			data, err := os.ReadFile(video)
			require.NoError(t, err)
			want, err := os.ReadFile(images)
			require.NoError(t, err)
			require.Len(t, want, frames*width*height*3)
			parts := bytes.SplitAfter(data, []byte{0xff, 0xd9})
			pool := &capture.Pool{}
			d := &jpegDecoder{}
			d.image.decoder.limit = width * height
			for number := range frames {
				require.NoError(t, d.Submit(&capture.Unit{Codec: capture.MJPEG, Data: parts[number], Key: true}))
				f, found, err := d.Next(pool)
				require.NoError(t, err)
				require.True(t, found)
				worst, sum := 0, 0
				for i, value := range want[number*width*height*3 : (number+1)*width*height*3] {
					difference := max(int(value)-int(f.Data[i]), int(f.Data[i])-int(value))
					worst = max(worst, difference)
					sum += difference
				}
				t.Logf("image %d: %d, %.2f", number, worst, float64(sum)/width/height/3)
				assert.LessOrEqual(t, float64(worst), test.worst)
				assert.LessOrEqual(t, float64(sum)/width/height/3, test.mean)
				f.Release()
			}
			require.NoError(t, d.Close())
			require.NoError(t, pool.Close())
		})
	}
}
