package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// attackHold is the time that a faulty camera or server stays as it is.
const attackHold = 200 * time.Millisecond

// damagedStream is a camera with an MJPEG stream, right while fault is 0.
type damagedStream struct {
	address string
	fault   atomic.Int32
	images  [][]byte
}

// streamFaults is the number of faults of a camera.
const streamFaults = 9

func newDamagedStream(t *testing.T) *damagedStream {
	s := &damagedStream{}
	for _, size := range []image.Point{{160, 120}, {320, 240}} {
		img := image.NewRGBA(image.Rectangle{Max: size})
		for i := range img.Pix {
			img.Pix[i] = byte(i * i >> 7)
		}
		img.Set(1, 1, color.White)
		var text bytes.Buffer
		require.NoError(t, jpeg.Encode(&text, img, nil))
		s.images = append(s.images, text.Bytes())
	}
	server := httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	s.address = server.Listener.Addr().String()
	return s
}

// serve streams until the client goes.
func (s *damagedStream) serve(w http.ResponseWriter, r *http.Request) {
	switch s.fault.Load() {
	case 1:
		http.Error(w, "no", http.StatusInternalServerError)
		return
	case 2:
		http.Redirect(w, r, r.URL.Path, http.StatusFound)
		return
	}
	w.Header().Set("Content-Type", "multipart/x-mixed-replace; boundary=image")
	random := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 1))
	for r.Context().Err() == nil {
		time.Sleep(time.Second / attackCameraRate)
		img := bytes.Clone(s.images[0])
		length := len(img)
		head := "--image\r\nContent-Type: image/jpeg\r\n"
		switch s.fault.Load() {
		case 3: // hangs
			continue
		case 4:
			for range 20 {
				img[random.IntN(len(img))] = byte(random.Uint32())
			}
		case 5:
			img = img[:random.IntN(len(img))]
			length = len(img)
		case 6: // says that it is 65,535 pixels wide and high
			if at := bytes.Index(img, []byte{0xff, 0xc0}); at >= 0 {
				copy(img[at+5:], []byte{0xff, 0xff, 0xff, 0xff})
			}
		case 7:
			length = random.IntN(math.MaxInt32)
		case 8: // a header without end
			head += "X-Noise: " + string(bytes.Repeat([]byte("x"), 1<<20))
		case 9: // another size with each image
			img = s.images[random.IntN(len(s.images))]
			length = len(img)
		}
		if _, err := fmt.Fprintf(w, "%sContent-Length: %d\r\n\r\n%s\r\n", head, length, img); err != nil {
			return
		}
		if http.NewResponseController(w).Flush() != nil {
			return
		}
	}
}

// attackCamera gives the camera another fault.
func (a *arena) attackCamera() {
	a.stream.fault.Store(int32(1 + a.random.IntN(streamFaults)))
	time.Sleep(attackHold)
}

// damager is an inference server before the right one, which changes its answers; right while fault is 0.
type damager struct {
	address string
	fault   atomic.Int32
}

// answerFaults is the number of faults of an inference server.
const answerFaults = 7

func newDamager(t *testing.T, server string) *damager {
	d := &damager{}
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: server})
	proxy.ModifyResponse = d.damage
	proxy.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if d.fault.Load() == 1 { // hangs, until the client or the test ends
			_, _ = io.Copy(io.Discard, r.Body) // without this the server does not see that the client is gone
			select {
			case <-r.Context().Done():
			case <-t.Context().Done():
			}
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { front.CloseClientConnections(); front.Close() })
	d.address = front.Listener.Addr().String()
	return d
}

// damage changes an answer.
func (d *damager) damage(r *http.Response) error {
	fault := d.fault.Load()
	if fault == 0 || r.StatusCode != http.StatusOK || r.Request.Method != http.MethodPost {
		return nil
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	random := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 2))
	head, _ := strconv.Atoi(r.Header.Get("Inference-Header-Content-Length"))
	switch fault {
	case 2: // NaN
		for at := head; at+4 <= len(body); at += 4 {
			binary.LittleEndian.PutUint32(body[at:], math.Float32bits(float32(math.NaN())))
		}
	case 3: // out of all bounds
		for at := head; at+4 <= len(body); at += 4 {
			binary.LittleEndian.PutUint32(body[at:], math.Float32bits(1e30))
		}
	case 4:
		body = body[:random.IntN(len(body))]
	case 5:
		for range 8 {
			body[random.IntN(len(body))] = byte(random.Uint32())
		}
	case 6:
		r.Header.Set("Inference-Header-Content-Length", strconv.Itoa(random.IntN(2*len(body))))
	case 7: // far too long
		body = append(body, make([]byte, 32<<20)...)
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	r.Header.Set("Content-Length", strconv.Itoa(len(body)))
	return nil
}

// attackInference gives the inference server another fault.
func (a *arena) attackInference() {
	a.damager.fault.Store(int32(1 + a.random.IntN(answerFaults)))
	time.Sleep(attackHold)
}

// attackReloads adds and removes a camera, and damages the configuration.
func (a *arena) attackReloads() {
	a.reloaded = true
	more := choose(a, "", "- {name: guest, uri: 'demo?width=160&height=120&fps=2'}\n", "- {name: guest, uri: 'nothing://x'}\n",
		"- {name: left, uri: demo}\n", "detekt: {}\n", "detect: {confidence: 7}\n")
	a.configure(more)
	if a.random.IntN(3) == 0 {
		text, err := os.ReadFile(a.path("edge-infer.yaml"))
		require.NoError(a.t, err)
		at := bytes.Index(text, []byte("cameras:")) // a damaged address of the broker would be a right configuration
		a.write("edge-infer.yaml", string(text[:at])+string(a.damaged(append([]byte(nil), more...)))+string(text[at:]))
	}
	require.NoError(a.t, a.gate.Command.Process.Signal(syscall.SIGHUP))
	time.Sleep(attackHold)
}

// attackDescriptors leaves the daemon a few free file descriptors and connects to it.
func (a *arena) attackDescriptors() {
	pid := a.gate.Command.Process.Pid
	used, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	require.NoError(a.t, err)
	var before unix.Rlimit
	require.NoError(a.t, unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &before))
	few := before
	few.Cur = uint64(len(used) + a.random.IntN(6))
	require.NoError(a.t, unix.Prlimit(pid, unix.RLIMIT_NOFILE, &few, nil))
	for range 20 {
		a.send(choose(a, a.broker, a.gate.address), []byte("G"), true)
	}
	time.Sleep(attackHold)
	require.NoError(a.t, unix.Prlimit(pid, unix.RLIMIT_NOFILE, &before, nil))
	for len(a.open) > 0 {
		a.closeOldest()
	}
	time.Sleep(attackHold)
}

// attackKill kills a daemon with events in flight.
func (a *arena) attackKill() { a.storage.kill(a.random) }

// attackPowerCut cuts the power of a daemon's disk.
func (a *arena) attackPowerCut() { a.storage.cut(a.random) }

// attackBitRot damages files of a daemon's state directory between two runs.
func (a *arena) attackBitRot() { a.storage.rot(a) }

// attackFullDisk gives a daemon a full disk.
func (a *arena) attackFullDisk() { a.storage.full(a) }
