package web

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
)

// preview turns a camera's frames into JPEGs for as long as somebody looks. The frame goroutine copies the pixels, a goroutine of the preview
// does the rest, and viewers take the newest picture when they are ready for it.
type preview struct {
	camera  string
	width   int // of a JPEG in pixels, at most
	news    *bell
	encoded *atomic.Uint64
	behind  *atomic.Uint64
	logger  *slog.Logger
	stop    context.CancelFunc
	viewers int // guarded by the server's mutex

	due int64 // frame goroutine only: when the next picture may be taken, CLOCK_MONOTONIC

	mutex sync.Mutex // held by the encoder while it reads raw; the frame goroutine only tries
	raw   raw

	fresh  chan struct{} // holds a token when raw is new
	latest atomic.Pointer[picture]
}

// raw is a copy of a frame, rows without padding.
type raw struct {
	pixels        []byte
	width, height int
	format        capture.PixelFormat
	seq           uint64
	time          time.Time
}

// picture is a JPEG of a frame. It is never changed.
type picture struct {
	jpeg          []byte
	width, height int // of the frame in pixels
	seq           uint64
	time          time.Time
}

// startPreview begins to look at a camera. The lock is held.
func (s *Server) startPreview(camera string) *preview {
	ctx, cancel := context.WithCancel(context.Background())
	p := &preview{
		camera: camera, width: s.PictureWidth, news: &s.news, encoded: &s.encoded, behind: &s.behind, logger: s.Logger, stop: cancel,
		fresh: make(chan struct{}, 1),
	}
	s.previews[camera] = p
	s.encoders.Go(func() { p.encode(ctx) })
	return p
}

// take copies the frame's pixels when a picture is due and the encoder is not reading the previous one. Frame goroutine only.
func (p *preview) take(in *pipeline.Inferred, pause time.Duration) {
	if in.Captured < p.due {
		return
	}
	if !p.mutex.TryLock() {
		p.behind.Add(1)
		return
	}
	// Counting from the time that was due keeps the rate; after a break it starts anew.
	p.due = max(p.due+int64(pause), in.Captured+int64(pause)/2)
	p.raw.copy(in)
	p.mutex.Unlock()
	select {
	case p.fresh <- struct{}{}:
	default:
	}
}

func (r *raw) copy(in *pipeline.Inferred) {
	f := in.Frame
	row, rows := f.Format.RowBytes(f.Width), f.Format.Rows(f.Height)
	if size := row * rows; cap(r.pixels) < size {
		r.pixels = make([]byte, size)
	} else {
		r.pixels = r.pixels[:size]
	}
	if f.Stride == row {
		copy(r.pixels, f.Data)
	} else {
		for y := range rows {
			copy(r.pixels[y*row:(y+1)*row], f.Data[y*f.Stride:])
		}
	}
	r.width, r.height, r.format, r.seq, r.time = f.Width, f.Height, f.Format, in.Seq, in.Time
}

// encode makes pictures until ctx ends.
func (p *preview) encode(ctx context.Context) {
	var encoder encoder
	defer encoder.close()
	var told string
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.fresh:
		}
		p.mutex.Lock()
		next := &picture{width: p.raw.width, height: p.raw.height, seq: p.raw.seq, time: p.raw.time}
		err := encoder.load(&p.raw, p.width)
		p.mutex.Unlock()
		if err == nil {
			next.jpeg, err = encoder.jpeg()
		}
		if err != nil {
			if err.Error() != told {
				told = err.Error()
				p.logger.Warn("no pictures for the web page", "camera", p.camera, "error", err)
			}
			continue
		}
		p.latest.Store(next)
		p.encoded.Add(1)
		p.news.ring()
	}
}
