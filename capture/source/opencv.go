package source

// #include "opencv.h"
import "C"

import (
	"os"
	"unsafe"

	"gocv.io/x/gocv"
)

// grab waits for the next frame and reports whether there is one.
func grab(from *gocv.VideoCapture) bool {
	// The struct holds the cv::VideoCapture's address and nothing else.
	return C.ei_capture_grab(*(*unsafe.Pointer)(unsafe.Pointer(from))) != 0
}

// SilenceDecoders keeps OpenCV and FFmpeg from writing to standard error for the life of the process. A program with a terminal calls it once, before
// the first Open. The variables OPENCV_LOG_LEVEL and OPENCV_FFMPEG_LOGLEVEL still win where the user has set them. GLib's messages about a
// malformed pipeline are dropped, and GStreamer says nothing unless GST_DEBUG is set; libjpeg's warning about a damaged image cannot be
// kept back.
func SilenceDecoders() {
	if os.Getenv("OPENCV_LOG_LEVEL") == "" {
		C.ei_silence()
	}
	if os.Getenv("OPENCV_FFMPEG_LOGLEVEL") == "" {
		_ = os.Setenv("OPENCV_FFMPEG_LOGLEVEL", "-8") // AV_LOG_QUIET, read by OpenCV at the first open
	}
}
