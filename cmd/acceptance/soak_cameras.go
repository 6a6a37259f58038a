package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/jpeg"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/edge-infer/edge-infer/capture/scene"
)

// faultyCameras serves MJPEG streams that stall or change their resolution.
type faultyCameras struct {
	server         *http.Server
	address        string
	stalled, large atomic.Bool
	small, big     [][]byte // JPEG images of two sizes
	dir            string   // holds one image
}

// faultyRate is the frame rate of the streams.
const faultyRate = 5

func openFaultyCameras(dir string) (*faultyCameras, error) {
	o := &faultyCameras{dir: filepath.Join(dir, "images")}
	tiny, err := drawn(160, 120)
	if err == nil {
		err = os.Mkdir(o.dir, 0o700)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(o.dir, "image.jpg"), tiny[0], 0o600)
	}
	if err != nil {
		return nil, err
	}
	if o.small, err = drawn(640, 480); err != nil {
		return nil, err
	}
	if o.big, err = drawn(1280, 720); err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	o.address = listener.Addr().String()
	o.server = &http.Server{Handler: http.HandlerFunc(o.stream), ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = o.server.Serve(listener) }()
	return o, nil
}

func (o *faultyCameras) close() { _ = o.server.Close() }

func (o *faultyCameras) url(name string) string { return "http://" + o.address + "/" + name }

// stall makes the stream /stalls pause with its connection open.
func (o *faultyCameras) stall(on bool) func(context.Context) error {
	return func(context.Context) error { o.stalled.Store(on); return nil }
}

// resize makes the stream /resizes switch between two sizes every second.
func (o *faultyCameras) resize(on bool) func(context.Context) error {
	return func(context.Context) error { o.large.Store(on); return nil }
}

func (o *faultyCameras) stream(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "multipart/x-mixed-replace; boundary=image")
	ticker := time.NewTicker(time.Second / faultyRate)
	defer ticker.Stop()
	for i := 0; ; i++ {
		select {
		case <-r.Context().Done():
			return
		case <-ticker.C:
		}
		if r.URL.Path == "/stalls" && o.stalled.Load() {
			continue
		}
		images := o.small
		if r.URL.Path == "/resizes" && o.large.Load() && i/faultyRate%2 == 0 {
			images = o.big
		}
		img := images[i%len(images)]
		_, err := fmt.Fprintf(w, "--image\r\nContent-Type: image/jpeg\r\nContent-Length: %d\r\n\r\n%s\r\n", len(img), img)
		if errors.Join(err, http.NewResponseController(w).Flush()) != nil {
			return
		}
	}
}

// drawn returns one second of the demo scene as JPEG files.
func drawn(width, height int) (images [][]byte, err error) {
	s := scene.Scene{Width: width, Height: height, Rate: faultyRate, Seed: 9}
	if err := s.Open(); err != nil {
		return nil, err
	}
	pixels, img := make([]byte, 3*width*height), image.NewRGBA(image.Rect(0, 0, width, height))
	for frame := range faultyRate {
		if _, err := s.Draw(frame, pixels, 3*width, nil); err != nil {
			return nil, err
		}
		for i := range width * height {
			copy(img.Pix[4*i:], []byte{pixels[3*i+2], pixels[3*i+1], pixels[3*i], 255})
		}
		var encoded bytes.Buffer
		if err := jpeg.Encode(&encoded, img, nil); err != nil {
			return nil, err
		}
		images = append(images, encoded.Bytes())
	}
	return images, nil
}
