package decodertest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/internal/testtool"
)

// VideosEnvironment names the directory of the tests' videos, in which missing ones are made with FFmpeg. It serves machines without
// FFmpeg.
const VideosEnvironment = "EDGE_INFER_TEST_VIDEOS"

// rate is the number of images per second of the videos.
const rate = 25

// recipe is how a video is made.
type recipe struct {
	width, height, frames int
	codec                 capture.Codec
	arguments             string // of the encoder
}

// gop is the distance of key frames in the videos that are damaged.
const gop = 8

const x264, x265 = "-c:v libx264 -pix_fmt yuv420p ", "-c:v libx265 -x265-params log-level=none:open-gop=0:"

var recipes = map[string]recipe{
	"baseline":   {320, 240, 20, capture.H264, x264 + "-profile:v baseline"},
	"bframes":    {322, 242, 24, capture.H264, x264 + "-bf 3 -b_strategy 0 -g 8"},
	"slices":     {640, 360, 24, capture.H264, x264 + "-g 8 -x264-params slices=4"},
	"hevc":       {322, 242, 24, capture.H265, x265 + "bframes=3:keyint=8:min-keyint=8 -pix_fmt yuv420p"},
	"opengop":    {320, 240, 24, capture.H265, "-c:v libx265 -x265-params log-level=none:open-gop=1:bframes=3:keyint=8 -pix_fmt yuv420p"},
	"tenbits":    {320, 240, 20, capture.H265, x265 + "keyint=20 -pix_fmt yuv420p10le"},
	"fullhd":     {1920, 1080, 5, capture.H264, x264 + "-bf 0"},
	"interlaced": {320, 240, 20, capture.H264, x264 + "-flags +ildct+ilme -x264-params tff=1"},
	"chroma422":  {320, 240, 20, capture.H264, "-c:v libx264 -pix_fmt yuv422p"},
}

// Video is an encoded video and the images that FFmpeg decodes from it, as NV12 in the order of display.
type Video struct {
	Units         []capture.Unit
	Images        [][]byte
	Width, Height int
}

// Load returns a video, which belongs to the caller.
func Load(t testing.TB, name string) Video {
	t.Helper()
	r, known := recipes[name]
	require.True(t, known, name)
	dir := os.Getenv(VideosEnvironment)
	if dir == "" {
		dir = filepath.Join(os.TempDir(), "edge-infer-test-videos-"+strconv.Itoa(os.Getuid()))
	}
	base := filepath.Join(dir, fmt.Sprintf("%s-%d", name, version))
	if _, err := os.Stat(base + ".nv12"); err != nil {
		r.encode(t, base)
	}
	return r.load(t, base)
}

// version is that of the recipes: videos of another are not used.
const version = 2

// kind is the name of FFmpeg's format.
func (r *recipe) kind() string {
	if r.codec == capture.H265 {
		return "hevc"
	}
	return "h264"
}

// encode writes base.video, access units with delimiters; base.times, their presentation times in microseconds; and base.nv12, what FFmpeg
// decodes. The last one is written at last.
func (r *recipe) encode(t testing.TB, base string) {
	dir, err := os.MkdirTemp("", "videos")
	require.NoError(t, err)
	defer os.RemoveAll(dir)
	run := func(command string, arguments ...string) []byte {
		output, err := exec.Command(testtool.Program(t, command), append([]string{"-v", "error"}, arguments...)...).CombinedOutput()
		require.NoError(t, err, "%s %v: %s", command, arguments, output)
		return output
	}
	muxed, raw, images := filepath.Join(dir, "video.mkv"), filepath.Join(dir, "video"), filepath.Join(dir, "nv12")
	source := fmt.Sprintf("testsrc2=size=%dx%d:rate=%d,noise=alls=8", r.width, r.height, rate)
	arguments := append([]string{"-f", "lavfi", "-i", source, "-frames:v", strconv.Itoa(r.frames)}, strings.Fields(r.arguments)...)
	run("ffmpeg", append(arguments, muxed)...)
	run("ffmpeg", "-i", muxed, "-c", "copy", "-bsf:v", r.kind()+"_mp4toannexb,"+r.kind()+"_metadata=aud=insert", "-f", r.kind(), raw)
	run("ffmpeg", "-f", r.kind(), "-i", raw, "-fps_mode", "passthrough", "-pix_fmt", "nv12", "-f", "rawvideo", images)
	times := run("ffprobe", "-show_entries", "packet=pts_time", "-of", "csv=p=0", muxed)
	require.NoError(t, os.MkdirAll(filepath.Dir(base), 0o700))
	require.NoError(t, os.WriteFile(base+".times", times, 0o600))
	for from, to := range map[string]string{raw: ".video", images: ".nv12"} {
		data, err := os.ReadFile(from)
		require.NoError(t, err)
		fresh := base + to + strconv.Itoa(os.Getpid()) // another process may do the same
		require.NoError(t, os.WriteFile(fresh, data, 0o600))
		defer func() { require.NoError(t, os.Rename(fresh, base+to)) }()
	}
}

// load reads what encode has written.
func (r *recipe) load(t testing.TB, base string) Video {
	data, err := os.ReadFile(base + ".video")
	require.NoError(t, err)
	delimiter := []byte("\x00\x00\x00\x01\x09")
	if r.codec == capture.H265 {
		delimiter = []byte("\x00\x00\x00\x01\x46\x01")
	}
	parts := bytes.Split(data, delimiter)[1:]
	text, err := os.ReadFile(base + ".times")
	require.NoError(t, err)
	times := strings.Fields(string(text))
	require.Len(t, parts, r.frames)
	require.Len(t, times, r.frames)
	v := Video{Width: r.width, Height: r.height}
	for number, part := range parts {
		seconds, err := strconv.ParseFloat(strings.Trim(times[number], ","), 64)
		require.NoError(t, err)
		v.Units = append(v.Units, capture.Unit{
			Codec: r.codec, Data: append(bytes.Clone(delimiter), part...), Key: number == 0,
			PTS: time.Duration(seconds * float64(time.Second)), Received: int64(number + 1),
		})
	}
	images, err := os.ReadFile(base + ".nv12")
	require.NoError(t, err)
	v.Images = slices.Collect(slices.Chunk(images, r.width*r.height*3/2))
	require.Len(t, v.Images, r.frames)
	return v
}
