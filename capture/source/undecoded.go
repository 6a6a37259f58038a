package source

import (
	"context"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/capture/rtsp"
)

// undecoded is a stream that is received and not decoded.
type undecoded struct {
	ctx    context.Context
	uri    capture.URI
	camera *rtsp.Stream
	reader *capture.UnitReader // of this goroutine; others have their own
}

// OpenUndecoded is a capture.Opener for RTSP cameras whose access units are read from the source's ring. Options.KeepUnits must be set.
func OpenUndecoded(ctx context.Context, uri string, options capture.Options) (capture.Source, error) {
	u, err := capture.ParseURI(uri)
	if err != nil {
		return nil, err
	}
	if u.Kind != capture.RTSP {
		return nil, u.NewError("open", capture.ErrURI, "not an RTSP address", "give one that begins with rtsp:// or rtsps://", nil)
	}
	own := settings{Options: options}
	own.setDefaults()
	camera, err := connect(ctx, u, own)
	if err != nil {
		return nil, withHint(err, streamHint)
	}
	if camera.Ring() == nil {
		_ = camera.Close()
		const unknown = "its video is neither H.264, H.265 nor Motion JPEG"
		return nil, u.NewError("open", capture.ErrFormat, unknown, "choose another codec in the camera", nil)
	}
	return &undecoded{ctx: ctx, uri: u, camera: camera, reader: camera.Units()}, nil
}

// Next implements capture.Source. It waits for the next access unit and returns capture.ErrNotDecoded.
func (s *undecoded) Next(capture.Lender) (capture.Frame, error) {
	_, err := s.reader.Next(s.ctx)
	switch {
	case s.ctx.Err() != nil:
		return capture.Frame{}, s.ctx.Err()
	case err != nil:
		return capture.Frame{}, s.uri.NewError("read", capture.ErrUnavailable, "", "", err)
	}
	return capture.Frame{}, capture.ErrNotDecoded
}

// Live implements capture.Source.
func (s *undecoded) Live() bool { return true }

// FPS implements capture.Source. The stream does not declare it.
func (s *undecoded) FPS() float64 { return 0 }

// Ring implements capture.Packets.
func (s *undecoded) Ring() *capture.Ring { return s.camera.Ring() }

// Connection describes how the camera is read.
func (s *undecoded) Connection() string { return s.camera.Connection() }

// Decoder returns none.
func (s *undecoded) Decoder() string { return "" }

// Close implements capture.Source.
func (s *undecoded) Close() error { return s.camera.Close() }
