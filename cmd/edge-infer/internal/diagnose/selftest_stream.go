package diagnose

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/capture/rtsp/rtsptest"
	"github.com/edge-infer/edge-infer/capture/source"
)

// videos holds two seconds of the demo scene in 1280x720 at 30 frames per second for each codec, made by x264 (with B-frames) and x265.
//
//go:embed videos
var videos embed.FS

const (
	streamRate  = 30 // frames per second of the videos
	streamCount = 8  // most streams at once
	streamTime  = 2 * time.Second
	streamLimit = 30 * time.Second // until the first image
	reopenings  = 5
	// enoughRate is the share of the rate that must be decoded.
	enoughRate = 0.9
)

// streams plays a video on loopback as so many RTSP cameras do, reads it as the daemon reads cameras, and sends a check for 1, 4 and 8 of
// them at once and one for repeated openings.
func (r *request) streams(ctx context.Context, send func(any)) error {
	name := map[string]string{"h264": "RTSP H.264", "h265": "RTSP H.265"}[r.Codec]
	server, closeServer, err := serveVideo(r.Codec)
	if err != nil {
		return err
	}
	defer closeServer()
	for _, count := range []int{1, 4, streamCount} {
		r.note(fmt.Sprintf("%s, %d at once", name, count))
		c := r.readStreams(ctx, server, count)
		c.Name = fmt.Sprintf("%s, %d at once", name, count)
		send(c)
		if c.Status == Fail {
			return nil
		}
	}
	r.note(name + ", opened again")
	c := r.reopenStream(ctx, server)
	c.Name = name + ", opened again"
	send(c)
	return nil
}

// serveVideo serves the embedded video of a codec.
func serveVideo(codec string) (server *rtsptest.Server, closeServer func(), err error) {
	data, err := videos.ReadFile("videos/" + codec + ".ts")
	if err != nil {
		return nil, nil, err
	}
	dir, err := os.MkdirTemp("", "edge-infer-selftest-")
	if err != nil {
		return nil, nil, err
	}
	file := filepath.Join(dir, codec+".ts")
	server = &rtsptest.Server{Files: []string{file}, Paths: streamCount}
	err = os.WriteFile(file, data, 0o600)
	if err == nil {
		err = server.Start()
	}
	if err != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(dir))
	}
	return server, func() {
		server.Close()
		_ = os.RemoveAll(dir)
	}, nil
}

// streamReader reads a camera and discards its frames.
type streamReader struct {
	camera *capture.Camera
	fresh  chan struct{} // holds a token after an image
	ended  chan struct{}
	begun  time.Time
	first  time.Duration // until the first image
}

// openStream starts reading an address until ctx ends.
func (r *request) openStream(ctx context.Context, uri string) *streamReader {
	s := &streamReader{fresh: make(chan struct{}, 1), ended: make(chan struct{}), begun: time.Now()}
	s.camera = &capture.Camera{
		Name: "selftest", URI: uri, Open: source.Open, GPU: r.Engine.FirstGPU(), Logger: slog.New(slog.DiscardHandler),
		Notify: func() {
			select {
			case s.fresh <- struct{}{}:
			default:
			}
		},
	}
	go func() {
		defer close(s.ended)
		_ = s.camera.Run(ctx) // Stats has the reason
	}()
	return s
}

// take takes frames until a time; with untilFirst only the first one. It returns false if there was none.
func (s *streamReader) take(until time.Time, untilFirst bool) bool {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			return s.first > 0
		case <-s.fresh:
		}
		f, found := s.camera.Take()
		if !found {
			continue
		}
		f.Release()
		if s.first == 0 {
			s.first = time.Since(s.begun)
		}
		if untilFirst {
			return true
		}
	}
}

// readStreams reads so many streams at once.
func (r *request) readStreams(ctx context.Context, server *rtsptest.Server, count int) Check {
	ctx, cancel := context.WithCancel(ctx)
	readers := make([]*streamReader, count)
	results := make(chan bool, count)
	defer func() {
		cancel()
		for _, s := range readers {
			_ = s.camera.Close()
		}
	}()
	for i := range readers {
		readers[i] = r.openStream(ctx, server.URL(i))
	}
	for _, s := range readers {
		go func() { results <- s.take(time.Now().Add(streamLimit), true) }()
	}
	missing := 0
	for range readers {
		if !<-results {
			missing++
		}
	}
	before := make([]uint64, count)
	for i, s := range readers {
		before[i] = s.camera.Stats().Captured
	}
	begun := time.Now()
	for _, s := range readers {
		go func() { results <- s.take(begun.Add(streamTime), false) }()
	}
	for range readers {
		<-results
	}
	took := time.Since(begun).Seconds()
	slowest, latest := float64(streamRate), time.Duration(0)
	for i, s := range readers {
		slowest = min(slowest, float64(s.camera.Stats().Captured-before[i])/took)
		latest = max(latest, s.first)
	}
	now := readers[0].camera.Stats()
	if count > 1 { // why it is not another decoder was reported with one stream
		now.Decoder, _, _ = strings.Cut(now.Decoder, " (")
	}
	detail := fmt.Sprintf("%dx%d at %.1f of %d fps, first image after %.2f s, %s",
		now.Width, now.Height, slowest, streamRate, latest.Seconds(), now.Decoder)
	switch {
	case missing > 0:
		return fail("", "edge-infer doctor names missing decoders", "%d of %d streams give no image: %s", missing, count, reasons(readers))
	case slowest < enoughRate*streamRate:
		return warn("", "use the smaller stream of cameras, or a lower frame rate", "%s", detail)
	}
	return ok("", "%s", detail)
}

// reasons returns why the first stream without an image has none.
func reasons(readers []*streamReader) string {
	for _, s := range readers {
		if s.first == 0 {
			now := s.camera.Stats()
			return string(now.State) + ": " + now.Reason
		}
	}
	return ""
}

// reopenStream opens a stream several times, each until its first image.
func (r *request) reopenStream(ctx context.Context, server *rtsptest.Server) Check {
	var first []time.Duration
	for range reopenings {
		inner, cancel := context.WithCancel(ctx)
		s := r.openStream(inner, server.URL(0))
		found := s.take(time.Now().Add(streamLimit), true)
		reason := s.camera.Stats().Reason
		cancel()
		<-s.ended
		_ = s.camera.Close()
		if !found {
			return fail("", "", "opened %d of %d times: %s", len(first), reopenings, reason)
		}
		first = append(first, s.first)
	}
	return ok("", "opened %d times, first image after %.2f s at most", reopenings, slices.Max(first).Seconds())
}
