package update

import (
	"context"
	"image"
	"sync"
	"sync/atomic"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/jpegimage"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
)

const (
	sampleImages  = 32 // of a comparison
	sampleWidth   = 1920
	sampleQuality = 95
	// emptyShare is one in how many images may be without objects, where objects are wanted.
	emptyShare = 4
)

// sampler collects images of cameras as they come, a few and in memory only. Private parts are pixelated as in every image. It costs the
// frame loop nothing while nothing is collected.
type sampler struct {
	collecting atomic.Pointer[collection]
	lend       chan *lentImage // holds the one lent image; frame loop and fetch goroutine
	full       chan *lentImage
}

// lentImage is an image on its way to the encoder.
type lentImage struct {
	to     *collection
	pixels jpegimage.Pixels
}

// collection is the images for one comparison.
type collection struct {
	has     func(camera string) bool // selects the cameras
	objects bool                     // most images must show objects
	pause   int64                    // nanoseconds between two images

	last  int64 // CLOCK_MONOTONIC; frame loop only
	empty int   // images without objects; frame loop only

	mu     sync.Mutex
	images [][]byte
	done   chan struct{} // closed when there are sampleImages
}

func newSampler() *sampler {
	s := &sampler{lend: make(chan *lentImage, 1), full: make(chan *lentImage, 1)}
	s.lend <- new(lentImage)
	return s
}

// Frame implements pipeline.Sink.
func (s *sampler) Frame(in *pipeline.Result) {
	c := s.collecting.Load()
	if c == nil || in.Frame == nil || in.Captured-c.last < c.pause || !c.has(in.Camera) {
		return
	}
	if c.objects && len(in.Detections) == 0 && c.empty >= sampleImages/emptyShare {
		return
	}
	select {
	case lent := <-s.lend:
		_, err := lent.pixels.Lease(in, image.Rect(0, 0, in.Frame.Width, in.Frame.Height))
		if err != nil { // the GPU fails, which the pipeline reports with the next frame
			s.lend <- lent
			return
		}
		c.last = in.Captured
		if len(in.Detections) == 0 {
			c.empty++
		}
		lent.to = c
		s.full <- lent
	default:
	}
}

// Run encodes images until ctx ends. The frame loops must have ended then, or never wait for the sampler.
func (s *sampler) Run(ctx context.Context) {
	encoder := jpegimage.Encoder{Quality: sampleQuality, MaxWidth: sampleWidth}
	defer encoder.Close()
	for {
		select {
		case <-ctx.Done():
			select {
			case lent := <-s.full:
				lent.pixels.Fetch() // gives the frame back
			default:
			}
			return
		case lent := <-s.full:
			lent.pixels.Fetch()
			err := encoder.Load(&lent.pixels, lent.pixels.Bounds())
			var data []byte
			if err == nil {
				data, err = encoder.JPEG()
			}
			if err == nil {
				lent.to.add(data)
			}
			s.lend <- lent
		}
	}
}

// begin starts to collect in the place of an earlier collection.
func (s *sampler) begin(c *collection) {
	c.done = make(chan struct{})
	s.collecting.Store(c)
}

// end stops collecting.
func (s *sampler) end() { s.collecting.Store(nil) }

func (c *collection) add(data []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.images) == sampleImages {
		return
	}
	c.images = append(c.images, data)
	if len(c.images) == sampleImages {
		close(c.done)
	}
}

// taken returns the images so far.
func (c *collection) taken() [][]byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.images[:len(c.images):len(c.images)]
}
