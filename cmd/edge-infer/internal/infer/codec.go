package infer

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

// codec is a way to encode videos. Which ones a machine supports is found by trial.
type codec struct {
	title  string
	suffix string
	api    gocv.VideoCaptureAPI
	fourCC string
	// pipeline is the GStreamer pipeline without the file name, plugin its least common plugin file; empty for other libraries.
	pipeline, plugin string
}

// motionJPEG needs no library except OpenCV.
func motionJPEG() *codec {
	return &codec{title: "Motion JPEG in AVI", suffix: ".avi", api: gocv.VideoCaptureOpencvMjpeg, fourCC: "MJPG"}
}

// codecs returns the codecs with better compression, best first.
func codecs() []codec {
	const plain, end = "appsrc ! videoconvert ! video/x-raw,format=I420 ! ", " ! h264parse ! mp4mux ! filesink location="
	h264 := func(encoder, plugin string) codec {
		name, _, _ := strings.Cut(encoder, " ")
		return codec{
			title: "H.264 in MP4 by GStreamer's " + name, suffix: ".mp4", api: gocv.VideoCaptureGstreamer, fourCC: "H264",
			pipeline: plain + encoder + end, plugin: plugin,
		}
	}
	jetson := h264("nvv4l2h264enc", "libgstnvvideo4linux2.so")
	jetson.pipeline = "appsrc ! videoconvert ! video/x-raw,format=BGRx ! nvvidconv ! nvv4l2h264enc" + end
	return []codec{
		jetson, h264("x264enc speed-preset=veryfast", "libgstx264.so"), h264("openh264enc", "libgstopenh264.so"),
		{title: "H.264 in MP4 by FFmpeg", suffix: ".mp4", api: gocv.VideoCaptureFFmpeg, fourCC: "avc1"},
		{title: "MPEG-4 in MP4 by FFmpeg", suffix: ".mp4", api: gocv.VideoCaptureFFmpeg, fourCC: "mp4v"},
	}
}

// even reports whether frames must have even sizes.
func (c *codec) even() bool { return c.suffix == ".mp4" }

// open starts a video file.
func (c *codec) open(path string, rate float64, width, height int) (*gocv.VideoWriter, error) {
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
func (c *codec) works(dir string) bool {
	if !gocv.VideoRegistry.HasBackend(c.api) || c.plugin != "" && captured.FindPlugin(c.plugin) == "" {
		return false
	}
	trial, err := os.MkdirTemp(dir, ".trial-*") // not shared with other runs
	if err != nil {
		return false
	}
	defer os.RemoveAll(trial)
	path := filepath.Join(trial, "video"+c.suffix)
	const width, height = 256, 128 // hardware encoders refuse smaller ones
	img := gocv.NewMatWithSize(height, width, gocv.MatTypeCV8UC3)
	defer img.Close()
	writer, err := c.open(path, unknownRate, width, height)
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

// chooseCodec returns the best codec that works in a directory for a container.
func chooseCodec(dir, container string) (*codec, error) {
	if container == VideoAVI {
		return motionJPEG(), nil
	}
	for _, c := range codecs() {
		if c.works(dir) {
			return &c, nil
		}
	}
	if container == VideoMP4 {
		return nil, fmt.Errorf("--video mp4: neither GStreamer nor OpenCV's FFmpeg has an encoder " +
			"(install gstreamer1.0-plugins-ugly, or use --video auto)")
	}
	return motionJPEG(), nil
}

// Containers of saved videos: auto is MP4 if an encoder is available, otherwise AVI.
const (
	VideoAuto = "auto"
	VideoMP4  = "mp4"
	VideoAVI  = "avi"
)
