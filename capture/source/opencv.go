package source

// #include "opencv.h"
import "C"

import (
	"os"
	"unsafe"

	"gocv.io/x/gocv"

	"github.com/edge-infer/edge-infer/capture/gstreamer"
)

// grab waits for the next frame and reports whether there is one.
func grab(from *gocv.VideoCapture) bool {
	// The struct only holds the address of the cv::VideoCapture.
	return C.ei_capture_grab(*(*unsafe.Pointer)(unsafe.Pointer(from))) != 0
}

// SilenceDecoders stops OpenCV, FFmpeg and GLib from writing to standard error for the life of the process. A program with a terminal calls
// it once, before the first Open. OPENCV_LOG_LEVEL and OPENCV_FFMPEG_LOGLEVEL take precedence if set. GLib's messages about malformed
// pipelines are dropped as well, and GStreamer is silent unless GST_DEBUG is set; libjpeg's warning about a damaged image cannot be
// suppressed.
func SilenceDecoders() {
	if os.Getenv("OPENCV_LOG_LEVEL") == "" {
		C.ei_silence()
		gstreamer.Silence()
	}
	if os.Getenv("OPENCV_FFMPEG_LOGLEVEL") == "" {
		_ = os.Setenv("OPENCV_FFMPEG_LOGLEVEL", "-8") // AV_LOG_QUIET, read by OpenCV at the first open
	}
}
