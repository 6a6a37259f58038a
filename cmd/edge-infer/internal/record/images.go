package record

import (
	"sync/atomic"
	"time"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/jpegimage"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
)

// Clips of cameras without access units (USB, CSI, files, GStreamer) are made of JPEGs of the frames that the loop sees.
const (
	imageInterval = int64(200 * time.Millisecond)
	imageQueue    = 4 // images that wait for the encoder; more are dropped
	imageWidth    = 1280
	imageQuality  = 80
)

// images is the ring of a camera's JPEGs.
type images struct {
	ring atomic.Pointer[capture.Ring] // nil before the first image
	last int64                        // capture time of the newest, CLOCK_MONOTONIC; frame goroutine only
}

// picked is a frame on its way to the encoder.
type picked struct {
	ring     *capture.Ring
	pixels   jpegimage.Pixels
	captured int64
}

// pick leases a frame for the encoder, if one is due.
func (r *Recorder) pick(c *camera, in *pipeline.Result) {
	if in.Captured-c.images.last < r.imagePause.Load() {
		return
	}
	select {
	case p := <-r.free:
		ring := c.images.ring.Load()
		if ring == nil {
			ring = &capture.Ring{Keep: r.KeepUnits(), Bytes: capture.KeptRingBytes}
			c.images.ring.Store(ring)
		}
		err := p.pixels.LeaseSmall(in, imageWidth)
		if err != nil { // the GPU fails, which the pipeline reports with the next frame
			r.free <- p
			return
		}
		c.images.last = in.Captured
		p.ring, p.captured = ring, in.Captured
		r.full <- p
	default:
	}
}

// fetch copies the pixels of leased frames until Close, so that none waits for the encoder.
func (r *Recorder) fetch() {
	for p := range r.full {
		p.pixels.Fetch()
		r.copied <- p
	}
	close(r.copied)
}

// encode puts JPEGs into the cameras' rings until Close.
func (r *Recorder) encode() {
	defer close(r.encoded)
	encoder := jpegimage.Encoder{Quality: imageQuality, MaxWidth: imageWidth}
	defer encoder.Close()
	for p := range r.copied {
		begun := time.Now()
		err := encoder.Load(&p.pixels, p.pixels.Bounds())
		var data []byte
		if err == nil {
			data, err = encoder.JPEG()
		}
		if err == nil {
			p.ring.Put(capture.Unit{
				Codec: capture.MJPEG, Data: data, Key: true, PTS: time.Duration(p.captured), Received: p.captured,
			})
		} else {
			r.Logger.Debug("frame not recorded", "error", err)
		}
		p.ring = nil
		r.shareEncoder(time.Since(begun))
		r.free <- p
	}
}

// shareEncoder sets the time between two images of a camera: longer than imageInterval where the encoder, for which an image has taken so
// long, is too slow for all cameras. Otherwise those that are asked first would leave it no time for the others.
func (r *Recorder) shareEncoder(took time.Duration) {
	cameras := int64(0)
	for _, c := range *r.cameras.Load() {
		if c.images.ring.Load() != nil {
			cameras++
		}
	}
	needed := max(imageInterval, cameras*int64(took))
	before := r.imagePause.Load()
	r.imagePause.Store(before + (needed-before)/imageQueue)
}
