package media

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/capture/source"
)

// reading decodes files ahead of whoever runs them. Of every image there is a place in a queue before anybody decodes it, so that they
// come out in order; and a place costs a token, which is there again when the image has been given back. Tokens are taken in the order
// of the places, so the image that everybody waits for always has its own.
type reading struct {
	pool   capture.Pool
	tokens chan struct{}
	places chan chan img
	jobs   chan job
	short  func(path string, reached, told time.Duration) // Run's
}

// job is an image to decode into its place.
type job struct {
	path  string
	place chan img
}

func newReading(room int, memory capture.Alloc) *reading {
	return &reading{
		pool:   capture.Pool{Buffers: room, Alloc: memory},
		tokens: make(chan struct{}, room), places: make(chan chan img, room), jobs: make(chan job, room),
	}
}

// files reads all files, single images on several goroutines, videos on this one, until the context ends.
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

// place waits for a token and takes the next place in the queue; nil when the context has ended.
func (r *reading) place(ctx context.Context) chan img {
	select {
	case r.tokens <- struct{}{}:
	case <-ctx.Done():
		return nil
	}
	place := make(chan img, 1)
	r.places <- place
	return place
}

func open(ctx context.Context, path string) (capture.Source, error) {
	return source.Open(ctx, path, capture.Options{EveryFrame: true, MaxPixels: capture.MaxPixels})
}

// one reads the image of a file.
func (r *reading) one(ctx context.Context, path string) img {
	p := img{path: path}
	opened, err := open(ctx, path)
	if err == nil {
		defer opened.Close()
		p.frame, err = opened.Next(&r.pool)
	}
	p.seen.Err, p.read = err, err == nil
	return p
}

// video reads every image of a file; one that is damaged costs no other. It reports whether other files may follow.
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
		p := img{path: path, number: number}
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

// ended looks whether a video has ended where it says: containers that were cut off give their images without a word. The last image
// stands for a while, sound may go on for longer, and some headers round.
func (r *reading) ended(path string, opened capture.Source) {
	video, ok := opened.(capture.Video)
	if !ok || r.short == nil {
		return
	}
	if reached, told := video.Progress(); told-reached > max(time.Second, told/10) {
		r.short(path, reached, told)
	}
}

// gather makes requests of so many images each.
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

// release gives the images' memory and their tokens back.
func (r *reading) release(q *request) {
	for i := range q.images {
		if p := &q.images[i]; p.read {
			p.frame.Release()
			<-r.tokens
		}
	}
	q.images = nil
}
