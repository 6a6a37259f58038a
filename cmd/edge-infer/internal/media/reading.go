package media

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/capture/source"
)

// reading decodes files ahead of inference. Every image gets a place in a queue before it is decoded, so that the order is kept. A place
// needs a token, which returns when the image is released. Tokens are taken in the order of the places, so the next image always has one.
type reading struct {
	pool   capture.Pool
	tokens chan struct{}
	places chan chan item
	jobs   chan job
	short  func(path string, reached, duration time.Duration) // Run's
}

// job is an image to decode.
type job struct {
	path  string
	place chan item
}

func newReading(room int, memory capture.Alloc) *reading {
	return &reading{
		pool:   capture.Pool{Buffers: room, Alloc: memory},
		tokens: make(chan struct{}, room), places: make(chan chan item, room), jobs: make(chan job, room),
	}
}

// files reads all files, images on several goroutines, videos on the calling one, until the context ends.
func (r *reading) files(ctx context.Context, paths []string, readers int) {
	defer close(r.places)
	defer close(r.jobs)
	for range readers {
		go func() {
			for j := range r.jobs {
				j.place <- r.one(ctx, j.path)
			}
		}()
	}
	for _, path := range paths {
		if source.IsImage(path) {
			place := r.place(ctx)
			if place == nil {
				return
			}
			r.jobs <- job{path, place}
			continue
		}
		if !r.video(ctx, path) {
			return
		}
	}
}

// place waits for a token and appends a place to the queue; it returns nil when the context has ended.
func (r *reading) place(ctx context.Context) chan item {
	select {
	case r.tokens <- struct{}{}:
	case <-ctx.Done():
		return nil
	}
	place := make(chan item, 1)
	r.places <- place
	return place
}

func open(ctx context.Context, path string) (capture.Source, error) {
	return source.Open(ctx, path, capture.Options{EveryFrame: true, MaxPixels: maxPixels()})
}

// one reads an image file.
func (r *reading) one(ctx context.Context, path string) item {
	p := item{path: path}
	opened, err := open(ctx, path)
	if err == nil {
		defer opened.Close()
		p.frame, err = opened.Next(&r.pool)
	}
	p.seen.Err, p.read = err, err == nil
	return p
}

// video reads every frame of a video; a damaged frame does not end it. It returns false when the context has ended.
func (r *reading) video(ctx context.Context, path string) bool {
	opened, err := open(ctx, path)
	if err == nil {
		defer opened.Close()
	}
	for number := 0; ; number++ {
		place := r.place(ctx)
		if place == nil {
			return false
		}
		p := item{path: path, number: number}
		if p.seen.Err = err; err == nil {
			p.frame, p.seen.Err = opened.Next(&r.pool)
		}
		p.read = p.seen.Err == nil
		p.last = !p.read && (err != nil || !errors.Is(p.seen.Err, capture.ErrImage))
		if place <- p; p.last {
			if errors.Is(p.seen.Err, io.EOF) {
				r.ended(path, opened)
			}
			return true
		}
	}
}

// ended checks the duration of a video, because truncated containers end without an error. The last frame has a duration, audio may be
// longer, and some headers are rounded, so small differences are ignored.
func (r *reading) ended(path string, opened capture.Source) {
	video, ok := opened.(capture.Video)
	if !ok || r.short == nil {
		return
	}
	if reached, duration := video.Progress(); duration-reached > max(time.Second, duration/10) {
		r.short(path, reached, duration)
	}
}

// gather makes requests of batch images each.
func (r *reading) gather(ctx context.Context, batch int, requests chan<- *request) {
	defer close(requests)
	q, read := &request{}, 0
	send := func() {
		select {
		case requests <- q:
		case <-ctx.Done():
			r.release(q)
		}
		q, read = &request{number: q.number + 1}, 0
	}
	for place := range r.places {
		p := <-place
		if !p.read {
			<-r.tokens
		} else if read++; read == batch {
			q.images = append(q.images, p)
			send()
			continue
		}
		if !errors.Is(p.seen.Err, io.EOF) { // of a video
			q.images = append(q.images, p)
		}
	}
	if len(q.images) > 0 {
		send()
	}
}

// release frees the images and returns their tokens.
func (r *reading) release(q *request) {
	for i := range q.images {
		if p := &q.images[i]; p.read {
			p.frame.Release()
			<-r.tokens
		}
	}
	q.images = nil
}
