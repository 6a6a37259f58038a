// Package samples keeps the frames that a network was unsure about, with its boxes as a first draft of labels, for a person to correct and
// train on. They are a bounded data set in Ultralytics' layout: images, a text file of labels for each, and data.yaml.
package samples

import (
	"context"
	"fmt"
	"image"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/jpegimage"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/postprocess"
)

const (
	quality = 90 // JPEG
	// queue is how many frames may wait for the disk; more are dropped, and others are kept later.
	queue = 2
)

// Settings are the values of a Recorder that may change while it runs.
type Settings struct {
	Enabled  bool
	MaxBytes int64 // of all images
	PerHour  int   // frames of each camera
}

// Recorder keeps frames. Set the fields, call Open, have it be a sink, and call Run. The frame loop never waits for the disk.
type Recorder struct {
	Directory string
	// Threshold returns the confidence of a camera.
	Threshold func(camera string) float32
	Logger    *slog.Logger

	settings atomic.Pointer[Settings]
	cameras  map[string]*camera // frame loop only
	free     chan *sample
	full     chan *sample // their pixels are in the leased frames
	copied   chan *sample

	mu     sync.Mutex
	status Status
}

// Status is the state of a Recorder.
type Status struct {
	Frames   int    `json:"frames"` // on the disk
	Bytes    int64  `json:"bytes"`  // of their images
	Failures uint64 `json:"failures"`
	Error    string `json:"error,omitempty"` // why the newest frame was not kept; empty if it was
}

// camera is a camera's share of the frames.
type camera struct {
	choice
	last int64 // capture time of the newest one that was kept, CLOCK_MONOTONIC
}

// sample is a frame on its way to the disk.
type sample struct {
	camera, reason string
	time           time.Time
	width, height  int
	pixels         jpegimage.Pixels
	objects        []object
	labels         []string
}

// object is a line of the labels.
type object struct {
	class int
	box   postprocess.Box
}

var _ pipeline.Sink = (*Recorder)(nil)

// Open makes the recorder ready. It does not touch the disk.
func (r *Recorder) Open(settings Settings) {
	r.settings.Store(&settings)
	r.cameras = map[string]*camera{}
	r.free, r.full, r.copied = make(chan *sample, queue), make(chan *sample, queue), make(chan *sample, queue)
	for range queue {
		r.free <- new(sample)
	}
}

// Set changes the settings.
func (r *Recorder) Set(settings Settings) { r.settings.Store(&settings) }

// Status returns the state, nil while nothing is kept.
func (r *Recorder) Status() *Status {
	if !r.settings.Load().Enabled {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.status
	return &s
}

// Frame implements pipeline.Sink.
func (r *Recorder) Frame(in *pipeline.Result) {
	settings := r.settings.Load()
	if !settings.Enabled || in.Frame == nil {
		return
	}
	c := r.cameras[in.Camera]
	if c == nil {
		c = new(camera)
		r.cameras[in.Camera] = c
	}
	gone := c.lost(in)
	if c.last != 0 && in.Captured-c.last < int64(time.Hour)/int64(settings.PerHour) {
		return
	}
	reason := lost
	if !gone {
		if !isUnsure(in, r.Threshold(in.Camera)) {
			return
		}
		reason = unsure
	}
	select {
	case s := <-r.free:
		if _, err := s.pixels.Lease(in, image.Rect(0, 0, in.Frame.Width, in.Frame.Height)); err != nil {
			r.free <- s // the GPU fails, which the pipeline reports with the next frame
			return
		}
		c.last = in.Captured
		s.describe(in, reason)
		r.full <- s
	default:
	}
}

// describe takes over what is known of a frame but its pixels.
func (s *sample) describe(in *pipeline.Result, reason string) {
	s.camera, s.reason, s.time = strings.Clone(in.Camera), reason, in.Time
	s.width, s.height, s.labels = in.Width, in.Height, in.Labels
	s.objects = s.objects[:0]
	for i := range in.Detections {
		s.objects = append(s.objects, object{in.Detections[i].Class, in.Detections[i].Box})
	}
}

// Run writes frames until ctx ends, which must not be before the frame loops have ended.
func (r *Recorder) Run(ctx context.Context) error {
	var fetching sync.WaitGroup
	fetching.Go(func() { r.fetch(ctx) })
	defer fetching.Wait()
	set := dataset{directory: r.Directory}
	encoder := jpegimage.Encoder{Quality: quality}
	defer encoder.Close()
	for {
		select {
		case <-ctx.Done():
			return nil
		case s := <-r.copied:
			r.kept(&set, s, r.keep(&set, &encoder, s))
			r.free <- s
		}
	}
}

// fetch copies the pixels of leased frames, so that none waits for the disk.
func (r *Recorder) fetch(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			select {
			case s := <-r.full:
				s.pixels.Fetch() // gives the frame back
			default:
			}
			return
		case s := <-r.full:
			s.pixels.Fetch()
			r.copied <- s // there is room for all
		}
	}
}

// keep writes a frame with its labels.
func (r *Recorder) keep(set *dataset, encoder *jpegimage.Encoder, s *sample) error {
	if err := encoder.Load(&s.pixels, s.pixels.Bounds()); err != nil {
		return err
	}
	data, err := encoder.JPEG()
	if err != nil {
		return err
	}
	return set.add(s, data, r.settings.Load().MaxBytes)
}

// kept records whether a frame was kept. A failure is logged when it is new.
func (r *Recorder) kept(set *dataset, s *sample, err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	r.mu.Lock()
	news := text != "" && text != r.status.Error
	r.status.Frames, r.status.Bytes, r.status.Error = len(set.files), set.bytes, text
	if err != nil {
		r.status.Failures++
	}
	r.mu.Unlock()
	if news {
		r.Logger.Warn("frame not kept for labelling", "camera", s.camera, "error", err)
	}
}

// name is the name of a frame's files, without suffix; names are in the order of time.
func (s *sample) name() string {
	safe := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '.' {
			return r
		}
		return '_'
	}, s.camera)
	return fmt.Sprintf("%s_%.64s_%s", s.time.UTC().Format("20060102T150405.000"), safe, s.reason)
}
