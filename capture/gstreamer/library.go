// Package gstreamer reads images from GStreamer pipelines and feeds access units to GStreamer's decoders. GStreamer is loaded at run time:
// a program that imports this package starts without it, and Available reports why it cannot be used.
package gstreamer

// #cgo LDFLAGS: -ldl -lpthread
// #include <stdlib.h>
//
// #include "ei_gstreamer.h"
import "C"

import (
	"errors"
	"os"
	"strings"
	"unsafe"

	"github.com/edge-infer/edge-infer/capture"
)

// Available loads GStreamer, once per process, and returns an *Error if that fails. A later call tries again.
func Available() error {
	if forwarded(os.Getenv("DISPLAY")) {
		_ = os.Unsetenv("DISPLAY") // fails for invalid names only
	}
	return load("")
}

// forwarded reports whether a display belongs to another machine, as with ssh -X. EGL cannot use it, and NVIDIA's elements fail with it.
func forwarded(display string) bool {
	host, _, found := strings.Cut(display, ":")
	return found && host != "" && host != "unix"
}

// load appends the names of the libraries to prefix.
func load(prefix string) error {
	text := C.CString(prefix)
	defer C.free(unsafe.Pointer(text))
	var reason C.ei_gst_error
	defer C.ei_gst_error_clear(&reason)
	if C.ei_gst_load(text, &reason) == 0 {
		return nil
	}
	return &capture.Error{
		Op: "open", Kind: capture.ErrUnavailable, Message: "GStreamer cannot be used",
		Hint: "install gstreamer1.0-plugins-base, gstreamer1.0-plugins-good, gstreamer1.0-plugins-bad and gstreamer1.0-libav",
		Err:  errors.New(C.GoString(reason.message)),
	}
}

// Version returns "GStreamer 1.22.0", or "" unless GStreamer is loaded.
func Version() string {
	text := C.ei_gst_version()
	defer C.free(unsafe.Pointer(text))
	return C.GoString(text)
}

// Silence drops the messages that GLib and GStreamer write to standard error, for the life of the process and also if they are loaded
// later. Errors of pipelines are returned in any case. GLib allows one log writer per process, so nothing else may set one.
func Silence() { C.ei_gst_silence() }
