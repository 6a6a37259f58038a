package live

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/jpegimage"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
)

// jpegQuality is the quality of preview images.
const jpegQuality = 75

// preview encodes a camera's frames as JPEG while there are viewers. The frame goroutine copies the pixels, a goroutine of the preview
// encodes them, and viewers take the newest image when they are ready.
type preview struct {
	camera  string
	width   int        // maximum width of a JPEG in pixels
	ready   *broadcast // signalled at every image
	encoded *atomic.Uint64
	missed  *atomic.Uint64
	logger  *slog.Logger
	stop    context.CancelFunc
	viewers int // guarded by the feed's mutex

	due int64 // frame goroutine only: when the next image may be taken, CLOCK_MONOTONIC

	mutex  sync.Mutex // guards the fields below; the frame goroutine only uses TryLock
	pixels jpegimage.Pixels
	seq    uint64
	time   time.Time

	fresh  chan struct{} // holds a token if the pixels are new
	latest atomic.Pointer[view]
}

// view is an immutable JPEG of a frame.
type view struct {
	jpeg          []byte
	width, height int // of the frame in pixels
	seq           uint64
	time          time.Time
}

// startPreview starts encoding images of a camera. The lock is held.
func (f *Feed) startPreview(camera string) *preview {
	ctx, cancel := context.WithCancel(context.Background())
	p := &preview{
		camera: camera, width: f.ImageWidth, ready: &f.fresh, encoded: &f.encoded, missed: &f.missed, logger: f.Logger, stop: cancel,
		fresh: make(chan struct{}, 1),
	}
	f.previews[camera] = p
	f.parts.Go(func() { p.encode(ctx) })
	return p
}

// take copies the frame's pixels if an image is due and the encoder is not reading the previous one. Frame goroutine only.
func (p *preview) take(in *pipeline.Result, pause time.Duration) {
	if in.Captured < p.due {
		return
	}
	if !p.mutex.TryLock() {
		p.missed.Add(1)
		return
	}
	// Adding to the due time keeps the rate; after a pause it restarts.
	p.due = max(p.due+int64(pause), in.Captured+int64(pause)/2)
	if err := p.pixels.CopySmall(in, p.width); err != nil {
		p.mutex.Unlock() // the GPU fails, which the pipeline reports with the next frame
		return
	}
	p.seq, p.time = in.Seq, in.Time
	p.mutex.Unlock()
	select {
	case p.fresh <- struct{}{}:
	default:
	}
}

// encode encodes images until ctx ends.
func (p *preview) encode(ctx context.Context) {
	encoder := jpegimage.Encoder{Quality: jpegQuality, MaxWidth: p.width}
	defer encoder.Close()
	var lastError string
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.fresh:
		}
		p.mutex.Lock()
		next := &view{width: p.pixels.Width, height: p.pixels.Height, seq: p.seq, time: p.time}
		err := encoder.Load(&p.pixels, p.pixels.Bounds())
		p.mutex.Unlock()
		if err == nil {
			next.jpeg, err = encoder.JPEG()
		}
		if err != nil {
			if err.Error() != lastError {
				lastError = err.Error()
				p.logger.Warn("image for the web page not encoded", "camera", p.camera, "error", err)
			}
			continue
		}
		p.latest.Store(next)
		p.encoded.Add(1)
		p.ready.signal()
	}
}
