package source

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/capture/rtsp"
)

const streamHint = "check whether ffplay or VLC can play it"

// maxRefusals is how often a camera may refuse package rtsp's client before the decoder's own is used; refusalPause is the time between.
const (
	maxRefusals  = 3
	refusalPause = 200 * time.Millisecond
)

// stream is an RTSP camera: package rtsp reads it once, and the first decoder that works decodes it.
type stream struct {
	capture.Source // of the decoder's images

	ctx        context.Context
	uri        capture.URI
	options    settings
	camera     *rtsp.Stream // nil if the decoder has connected to the camera itself
	connection string
	decoder    string     // how the video is decoded
	ways       []decoding // that have not been tried
	reasons    []string   // why the ways before decoder are not used
}

func openRTSP(ctx context.Context, u capture.URI, options settings) (capture.Source, error) {
	camera, err := connect(ctx, u, options)
	if err != nil {
		return openWithoutClient(ctx, u, options, err)
	}
	s := &stream{ctx: ctx, uri: u, options: options, camera: camera, connection: camera.Connection()}
	s.ways = s.decodings()
	if err := s.openDecoder(nil); err != nil {
		_ = camera.Close()
		return nil, withHint(err, streamHint)
	}
	return s, nil
}

// connect tries maxRefusals times while the camera refuses.
func connect(ctx context.Context, u capture.URI, options settings) (camera *rtsp.Stream, err error) {
	for range maxRefusals {
		camera, err = rtsp.Open(ctx, u, rtsp.Options{
			OpenTimeout: options.OpenTimeout, ReadTimeout: options.ReadTimeout, KeepUnits: options.KeepUnits,
		})
		if err == nil || !errors.Is(err, rtsp.ErrRefused) {
			return camera, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(refusalPause):
		}
	}
	return nil, err
}

// openWithoutClient lets the decoder connect to a camera that has refused package rtsp's client, unless that would leave a certificate
// unverified.
func openWithoutClient(ctx context.Context, u capture.URI, options settings, refusal error) (capture.Source, error) {
	var why *capture.Error
	if !errors.Is(refusal, rtsp.ErrRefused) || !errors.As(refusal, &why) {
		return nil, refusal
	}
	refusal = withHint(refusal, streamHint)
	if u.Scheme() == "rtsps" && u.Certificate != "insecure" {
		return nil, refusal
	}
	opened, library, err := decodeURL(ctx, u, u.Address, options)
	if err != nil {
		return nil, refusal // more specific than the decoder's error
	}
	connection := "RTSP client of the decoder, because the camera refused ours: " + why.Err.Error()
	return &stream{Source: opened, ctx: ctx, uri: u, connection: connection, decoder: library}, nil
}

// Connection describes how the camera is read.
func (s *stream) Connection() string { return s.connection }

// Decoder names what decodes the video, and why nothing better does.
func (s *stream) Decoder() string {
	if len(s.reasons) == 0 {
		return s.decoder
	}
	return s.decoder + " (" + strings.Join(s.reasons, "; ") + ")"
}

// Ring implements capture.Packets.
func (s *stream) Ring() *capture.Ring {
	if s.camera == nil {
		return nil
	}
	return s.camera.Ring()
}

// Next implements capture.Source. When a decoder fails, the next one goes on with the stream.
func (s *stream) Next(lend capture.Lender) (capture.Frame, error) {
	f, err := s.Source.Next(lend)
	var failed *decoderError
	if errors.As(err, &failed) {
		return capture.Frame{}, s.replaceDecoder(failed)
	}
	if errors.Is(err, capture.ErrUnavailable) && s.camera != nil {
		if ended := s.camera.Err(); ended != nil {
			err = s.uri.NewError("read", capture.ErrUnavailable, "", "", ended)
		}
	}
	return f, err
}

// closeGrace is how long a decoder that has failed may take to close; one that hangs in a driver is left behind.
const closeGrace = 500 * time.Millisecond

// replaceDecoder goes on with the next decoder. The image that the last one failed at counts as damaged.
func (s *stream) replaceDecoder(failed *decoderError) error {
	closed := make(chan struct{})
	go func(broken capture.Source) {
		_ = broken.Close()
		close(closed)
	}(s.Source)
	select {
	case <-closed:
	case <-time.After(closeGrace):
	}
	s.Source = noSource{}
	s.fail(failed)
	if err := s.openDecoder(failed); err != nil {
		return withHint(err, streamHint)
	}
	return s.uri.NewError("read", capture.ErrImage, failed.Error(), "", nil)
}

// noSource is what a stream has after its last decoder.
type noSource struct{ capture.Source }

// Close implements capture.Source.
func (noSource) Close() error { return nil }

// Close implements capture.Source.
func (s *stream) Close() error {
	if s.camera != nil { // first, so that a read that waits for packets returns
		_ = s.camera.Close()
	}
	return s.Source.Close()
}
