// Package source opens everything that delivers images: V4L2 and CSI cameras, RTSP and HTTP streams, video files, directories of images,
// GStreamer pipelines and the rendered demo scene. Images are decoded directly into lent buffers or copied there once.
package source

import (
	"context"
	"time"

	"github.com/edge-infer/edge-infer/capture"
)

// settings are the options of one source, with defaults applied.
type settings struct {
	capture.Options
	backend backend // reader of URLs and files; empty selects the better one
}

func (s *settings) setDefaults() {
	if s.OpenTimeout <= 0 {
		s.OpenTimeout = 10 * time.Second
	}
	if s.ReadTimeout <= 0 {
		s.ReadTimeout = 5 * time.Second
	}
	if s.MaxPixels <= 0 {
		s.MaxPixels = capture.DefaultMaxPixels
	}
}

// Open is a capture.Opener. Cancelling the context ends an HTTP source, a directory, a GStreamer pipeline and the demo; a decoder that
// hangs inside OpenCV or a driver cannot be interrupted, which capture.Camera handles.
func Open(ctx context.Context, uri string, options capture.Options) (capture.Source, error) {
	return open(ctx, uri, settings{Options: options})
}

func open(ctx context.Context, uri string, options settings) (capture.Source, error) {
	u, err := capture.ParseURI(uri)
	if err != nil {
		return nil, err
	}
	options.setDefaults()
	switch u.Kind {
	case capture.Demo:
		return openDemo(ctx, u)
	case capture.HTTP:
		return openHTTP(ctx, u, options)
	case capture.File:
		return openFile(ctx, u, options)
	case capture.Device:
		return openDevice(u, options)
	case capture.CSI:
		return openCSI(ctx, u, options)
	case capture.RTSP:
		return openRTSP(ctx, u, options)
	}
	return openPipeline(ctx, u, options)
}
