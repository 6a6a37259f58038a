package live

import (
	"fmt"
	"io"
	"net/http"
	"time"
)

// MaxStreamCameras is the maximum number of cameras in one stream.
const MaxStreamCameras = 64

// boundary separates the images of a stream.
const boundary = "image"

// ServeImages streams several cameras over one connection, because browsers limit connections. The headers of each part hold the index of
// its camera in the request and the sequence number of its frame.
func (f *Feed) ServeImages(w http.ResponseWriter, r *http.Request) {
	f.stream(w, r, r.URL.Query()["camera"], "multipart/mixed")
}

// ServeStream streams one camera as motion JPEG.
func (f *Feed) ServeStream(w http.ResponseWriter, r *http.Request) {
	f.stream(w, r, []string{r.PathValue("camera")}, "multipart/x-mixed-replace")
}

// check reports whether the cameras of a request exist, or writes an error response.
func (f *Feed) check(w http.ResponseWriter, cameras []string) bool {
	if len(cameras) == 0 || len(cameras) > MaxStreamCameras {
		http.Error(w, fmt.Sprintf("specify 1 to %d cameras", MaxStreamCameras), http.StatusBadRequest)
		return false
	}
	for _, name := range cameras {
		if !f.Known(name) {
			http.Error(w, fmt.Sprintf("no camera %q", name), http.StatusNotFound)
			return false
		}
	}
	return true
}

// watch subscribes to images of cameras, or writes an error response.
func (f *Feed) watch(w http.ResponseWriter, cameras []string) (watched []*preview, leave func(), ok bool) {
	if !f.check(w, cameras) {
		return nil, nil, false
	}
	watched, leave, err := f.subscribe(false, cameras)
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return nil, nil, false
	}
	return watched, leave, true
}

func (f *Feed) stream(w http.ResponseWriter, r *http.Request, cameras []string, kind string) {
	watched, leave, ok := f.watch(w, cameras)
	if !ok {
		return
	}
	defer leave()
	w.Header().Set("Content-Type", kind+"; boundary="+boundary)
	out := newStreamWriter(w, f.Write)
	if out.flush() != nil {
		return
	}
	shown := make([]*view, len(watched))
	for {
		next := f.fresh.wait()
		for i, p := range watched {
			newest := p.latest.Load()
			if newest == shown[i] {
				continue
			}
			shown[i] = newest
			if f.Memory.Reserve(int64(len(newest.jpeg))) != nil {
				f.missed.Add(1)
				continue
			}
			err := writePart(out, i, newest)
			f.Memory.Release(int64(len(newest.jpeg)))
			if err != nil {
				return
			}
		}
		if out.flush() != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-next:
		case <-time.After(f.Heartbeat): // detects a disconnected client
			if _, err := io.WriteString(out, "\r\n"); err != nil {
				return
			}
		}
	}
}

func writePart(out io.Writer, camera int, p *view) error {
	_, err := fmt.Fprintf(out,
		"--%s\r\nContent-Type: image/jpeg\r\nContent-Length: %d\r\nX-Camera: %d\r\nX-Sequence: %d\r\nX-Size: %dx%d\r\n\r\n",
		boundary, len(p.jpeg), camera, p.seq, p.width, p.height)
	if err == nil {
		_, err = out.Write(p.jpeg)
	}
	if err == nil {
		_, err = io.WriteString(out, "\r\n")
	}
	return err
}

// ServeImage responds with the next image of a camera.
func (f *Feed) ServeImage(w http.ResponseWriter, r *http.Request) {
	watched, leave, ok := f.watch(w, []string{r.PathValue("camera")})
	if !ok {
		return
	}
	defer leave()
	deadline := time.After(f.Write)
	for {
		next := f.fresh.wait()
		if p := watched[0].latest.Load(); p != nil {
			if err := f.Memory.Reserve(int64(len(p.jpeg))); err != nil {
				http.Error(w, err.Error(), http.StatusServiceUnavailable)
				return
			}
			defer f.Memory.Release(int64(len(p.jpeg)))
			w.Header().Set("Content-Type", "image/jpeg")
			w.Header().Set("X-Sequence", fmt.Sprint(p.seq))
			_, _ = w.Write(p.jpeg) // the client may have disconnected
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-next:
		case <-deadline:
			http.Error(w, "the camera delivers no images", http.StatusServiceUnavailable)
			return
		}
	}
}
