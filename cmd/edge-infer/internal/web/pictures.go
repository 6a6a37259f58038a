package web

import (
	"fmt"
	"io"
	"net/http"
	"time"
)

// watchable is how many cameras one stream may show.
const watchable = 64

// boundary separates the pictures of a stream.
const boundary = "picture"

// servePictures streams several cameras over one connection, of which a browser has few. Each part tells its camera by its number in the
// request, and the frame, so that boxes are drawn on the picture that they belong to.
func (s *Server) servePictures(w http.ResponseWriter, r *http.Request) {
	s.stream(w, r, r.URL.Query()["camera"], "multipart/mixed")
}

// serveStream is motion JPEG of one camera, as other programs understand it.
func (s *Server) serveStream(w http.ResponseWriter, r *http.Request) {
	s.stream(w, r, []string{r.PathValue("camera")}, "multipart/x-mixed-replace")
}

// watch joins the viewers of cameras, or answers why it cannot be.
func (s *Server) watch(w http.ResponseWriter, cameras []string) (watched []*preview, leave func(), ok bool) {
	if len(cameras) == 0 || len(cameras) > watchable {
		http.Error(w, fmt.Sprintf("name 1 to %d cameras", watchable), http.StatusBadRequest)
		return nil, nil, false
	}
	for _, name := range cameras {
		if _, known := s.labels(name); !known {
			http.Error(w, fmt.Sprintf("no camera %q", name), http.StatusNotFound)
			return nil, nil, false
		}
	}
	watched, leave, err := s.join(false, cameras)
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return nil, nil, false
	}
	return watched, leave, true
}

func (s *Server) stream(w http.ResponseWriter, r *http.Request, cameras []string, kind string) {
	watched, leave, ok := s.watch(w, cameras)
	if !ok {
		return
	}
	defer leave()
	w.Header().Set("Content-Type", kind+"; boundary="+boundary)
	out := newStreamWriter(w, s.limits.write)
	if out.flush() != nil {
		return
	}
	shown := make([]*view, len(watched))
	for {
		news := s.news.listen()
		for i, p := range watched {
			next := p.latest.Load()
			if next == shown[i] {
				continue
			}
			shown[i] = next
			if writePart(out, i, next) != nil {
				return
			}
		}
		if out.flush() != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-news:
		case <-time.After(s.limits.heartbeat): // a dead client is noticed by writing to it
			if _, err := io.WriteString(out, "\r\n"); err != nil {
				return
			}
		}
	}
}

func writePart(out io.Writer, camera int, p *view) error {
	_, err := fmt.Fprintf(out, "--%s\r\nContent-Type: image/jpeg\r\nContent-Length: %d\r\nX-Camera: %d\r\nX-Sequence: %d\r\nX-Size: %dx%d\r\n\r\n",
		boundary, len(p.jpeg), camera, p.seq, p.width, p.height)
	if err == nil {
		_, err = out.Write(p.jpeg)
	}
	if err == nil {
		_, err = io.WriteString(out, "\r\n")
	}
	return err
}

// servePicture is the camera's next picture.
func (s *Server) servePicture(w http.ResponseWriter, r *http.Request) {
	watched, leave, ok := s.watch(w, []string{r.PathValue("camera")})
	if !ok {
		return
	}
	defer leave()
	deadline := time.After(s.limits.write)
	for {
		news := s.news.listen()
		if p := watched[0].latest.Load(); p != nil {
			w.Header().Set("Content-Type", "image/jpeg")
			w.Header().Set("X-Sequence", fmt.Sprint(p.seq))
			_, _ = w.Write(p.jpeg) // the client may be gone
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-news:
		case <-deadline:
			http.Error(w, "the camera gives no pictures", http.StatusServiceUnavailable)
			return
		}
	}
}
