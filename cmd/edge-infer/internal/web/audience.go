package web

import (
	"errors"
	"maps"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
)

// audience is what somebody looks at. It is never changed, only replaced.
type audience struct {
	detections bool
	previews   map[string]*preview // by camera
	pause      time.Duration       // between two pictures of a camera
}

// Frame implements pipeline.Sink. With nobody looking it costs an atomic load. Otherwise it copies: the detections of every frame, the pixels
// of a few a second. Who is behind misses frames; nobody is waited for.
func (s *Server) Frame(in *pipeline.Inferred) {
	if in.Happened != nil && len(in.Happened.Events) > 0 {
		s.observer.note(in)
	}
	a := s.audience.Load()
	if a == nil {
		return
	}
	if a.detections { // also when the pictures have stopped and nothing is seen any more
		s.observer.observe(in)
	}
	if p := a.previews[in.Camera]; p != nil && in.Frame != nil {
		p.take(in, a.pause)
	}
}

// picturesAtOnce is how many pictures a second are encoded of all cameras together.
const picturesAtOnce = 48

var (
	errTooMany  = errors.New("too many viewers")
	errStopping = errors.New("the server stops")
)

// join makes room for one more stream, which looks at detections or at the pictures of cameras. leave must be called when it ends.
func (s *Server) join(detections bool, cameras []string) (watched []*preview, leave func(), err error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.stopping {
		return nil, nil, errStopping
	}
	if s.viewers >= s.Viewers {
		return nil, nil, errTooMany
	}
	s.viewers++
	if detections {
		s.detectionViewers++
	}
	for _, name := range cameras {
		p := s.previews[name]
		if p == nil {
			p = s.startPreview(name)
		}
		p.viewers++
		watched = append(watched, p)
	}
	s.gather()
	return watched, func() {
		s.mutex.Lock()
		defer s.mutex.Unlock()
		s.viewers--
		if detections {
			s.detectionViewers--
		}
		for _, p := range watched {
			if p.viewers--; p.viewers == 0 {
				p.stop()
				delete(s.previews, p.camera)
			}
		}
		s.gather()
	}, nil
}

// gather tells the frame goroutine who looks. The lock is held.
func (s *Server) gather() {
	if s.viewers == 0 {
		s.audience.Store(nil)
		return
	}
	s.audience.Store(&audience{
		detections: s.detectionViewers > 0, previews: maps.Clone(s.previews),
		pause: max(time.Second/time.Duration(s.PictureRate), time.Duration(len(s.previews))*time.Second/picturesAtOnce),
	})
}
