package annotate

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"gocv.io/x/gocv"

	captured "github.com/edge-infer/edge-infer/capture/source"
)

// Codec is a way to encode videos. Which ones a machine supports is found by trial.
type Codec struct {
	Title  string
	Suffix string // of files
	api    gocv.VideoCaptureAPI
	fourCC string
	// pipeline is the GStreamer pipeline without the file name, plugin its least common plugin file; empty for other libraries.
	pipeline, plugin string
}

// motionJPEG needs no library except OpenCV.
func motionJPEG() *Codec {
	return &Codec{Title: "Motion JPEG in AVI", Suffix: ".avi", api: gocv.VideoCaptureOpencvMjpeg, fourCC: "MJPG"}
}

// codecs returns the codecs with better compression, best first.
func codecs() []Codec {
	const plain, end = "appsrc ! videoconvert ! video/x-raw,format=I420 ! ", " ! h264parse ! mp4mux ! filesink location="
	h264 := func(encoder, plugin string) Codec {
		name, _, _ := strings.Cut(encoder, " ")
		return Codec{
			Title: "H.264 in MP4 by GStreamer's " + name, Suffix: ".mp4", api: gocv.VideoCaptureGstreamer, fourCC: "H264",
			pipeline: plain + encoder + end, plugin: plugin,
		}
	}
	jetson := h264("nvv4l2h264enc", "libgstnvvideo4linux2.so")
	jetson.pipeline = "appsrc ! videoconvert ! video/x-raw,format=BGRx ! nvvidconv ! nvv4l2h264enc" + end
	return []Codec{
		jetson, h264("x264enc speed-preset=veryfast", "libgstx264.so"), h264("openh264enc", "libgstopenh264.so"),
		{Title: "H.264 in MP4 by FFmpeg", Suffix: ".mp4", api: gocv.VideoCaptureFFmpeg, fourCC: "avc1"},
		{Title: "MPEG-4 in MP4 by FFmpeg", Suffix: ".mp4", api: gocv.VideoCaptureFFmpeg, fourCC: "mp4v"},
	}
}

// even reports whether frames must have even sizes.
func (c *Codec) even() bool { return c.Suffix == ".mp4" }

// open starts a video file.
func (c *Codec) open(path string, rate float64, width, height int) (*gocv.VideoWriter, error) {
	name := path
	if c.pipeline != "" {
		name = c.pipeline + `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(path) + `"`
	}
	writer, err := gocv.VideoWriterFileWithAPI(name, c.api, c.fourCC, rate, width, height, true)
	if err == nil && !writer.IsOpened() {
		err = errors.Join(errors.New("cannot create the video (is the directory writable?)"), writer.Close())
	}
	return writer, err
}

// works reports whether a small test video can be written.
func (c *Codec) works(dir string) bool {
	if !gocv.VideoRegistry.HasBackend(c.api) || c.plugin != "" && captured.FindPlugin(c.plugin) == "" {
		return false
	}
	trial, err := os.MkdirTemp(dir, ".trial-*") // not shared with other runs
	if err != nil {
		return false
	}
	defer os.RemoveAll(trial)
	path := filepath.Join(trial, "video"+c.Suffix)
	const width, height = 256, 128 // hardware encoders refuse smaller ones
	img := gocv.NewMatWithSize(height, width, gocv.MatTypeCV8UC3)
	defer img.Close()
	writer, err := c.open(path, UnknownRate, width, height)
	if err != nil {
		return false
	}
	for range 5 {
		err = errors.Join(err, writer.Write(img))
	}
	if err = errors.Join(err, writer.Close()); err != nil {
		return false
	}
	video, err := os.ReadFile(path)
	return err == nil && bytes.Contains(video, []byte("moov"))
}

// ChooseCodec returns the best Codec that works in a directory for a container.
func ChooseCodec(dir, container string) (*Codec, error) {
	if container == AVI {
		return motionJPEG(), nil
	}
	for _, c := range codecs() {
		if c.works(dir) {
			return &c, nil
		}
	}
	if container == MP4 {
		return nil, fmt.Errorf("--video mp4: neither GStreamer nor OpenCV's FFmpeg has an encoder " +
			"(install gstreamer1.0-plugins-ugly, or use --video auto)")
	}
	return motionJPEG(), nil
}

// Containers of saved videos: auto is MP4 if an encoder is available, otherwise AVI.
const (
	Auto = "auto"
	MP4  = "mp4"
	AVI  = "avi"
)
