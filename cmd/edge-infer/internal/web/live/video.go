package live

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"math"
	"net/http"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/mp4"
)

const (
	// videoPoll is how often a camera without a connection is asked for one, and after which a single image does not wait for the next.
	videoPoll = 250 * time.Millisecond
	// videoHeader is the length of what precedes the data of a binary message: the index of the camera in the request (uint32), the time in
	// the video in seconds, -1 for an initialization segment, and when the image was received, in microseconds of CLOCK_MONOTONIC (both
	// float64). All are big-endian.
	videoHeader = 20
	// viewerBytes bounds a message from a viewer, which is ignored.
	viewerBytes = 512
)

// videoDescription is the text message that precedes the video of a camera, and each change of its format.
type videoDescription struct {
	Camera int    `json:"camera"` // index in the request
	Codec  string `json:"codec"`  // as in RFC 6381; empty while there is no video that a browser may play
	Width  int    `json:"width"`
	Height int    `json:"height"`
}

// ServeVideo streams the video of several cameras over one WebSocket, as the cameras encode it: fragmented MP4 with one image per fragment.
// It begins with the newest key frame. Only pages of this server may connect.
func (f *Feed) ServeVideo(w http.ResponseWriter, r *http.Request) {
	cameras := r.URL.Query()["camera"]
	if !f.check(w, cameras) {
		return
	}
	_, leave, err := f.subscribe(false, nil)
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	defer leave()
	upgrader := websocket.Upgrader{HandshakeTimeout: f.Write, WriteBufferPool: &f.buffers} // it refuses other origins
	conn, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return // it has responded
	}
	defer conn.Close()
	viewer := &videoViewer{conn: conn, timeout: f.Write}
	ctx, cancel := context.WithCancelCause(r.Context())
	var parts sync.WaitGroup
	parts.Go(func() { cancel(viewer.listen(3 * f.Heartbeat)) })
	for i, name := range cameras {
		s := videoStream{ring: func() *capture.Ring { return f.Units(name) }, camera: i, viewer: viewer}
		parts.Go(func() {
			if err := s.run(ctx); err != nil {
				cancel(err)
			}
		})
	}
	viewer.ping(ctx, f.Heartbeat)
	viewer.close(context.Cause(ctx))
	parts.Wait()
}

// videoViewer is the WebSocket of a viewer, shared by the streams of several cameras.
type videoViewer struct {
	conn    *websocket.Conn
	timeout time.Duration
	mutex   sync.Mutex // held while a message is written
}

// write sends a message. Nothing is queued: the viewer's stream waits until the connection has taken it.
func (v *videoViewer) write(kind int, data []byte) error {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	if err := v.conn.SetWriteDeadline(time.Now().Add(v.timeout)); err != nil {
		return err
	}
	return v.conn.WriteMessage(kind, data)
}

// describe announces a format.
func (v *videoViewer) describe(d *videoDescription) error {
	text, err := json.Marshal(d)
	if err != nil {
		return err
	}
	return v.write(websocket.TextMessage, text)
}

// listen returns when the viewer has disconnected or has not answered for some time.
func (v *videoViewer) listen(silence time.Duration) error {
	v.conn.SetReadLimit(viewerBytes)
	alive := func(string) error { return v.conn.SetReadDeadline(time.Now().Add(silence)) }
	v.conn.SetPongHandler(alive)
	_ = alive("")
	for {
		if _, _, err := v.conn.NextReader(); err != nil {
			return err
		}
	}
}

// ping asks for a sign of life until ctx ends.
func (v *videoViewer) ping(ctx context.Context, every time.Duration) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		_ = v.conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(v.timeout)) // listen notices that no answer comes
	}
}

// close ends the connection, with a reason where the viewer was too slow.
func (v *videoViewer) close(cause error) {
	if cause == errTooSlow { //nolint:errorlint // it is never wrapped
		text := websocket.FormatCloseMessage(websocket.CloseTryAgainLater, cause.Error())
		_ = v.conn.WriteControl(websocket.CloseMessage, text, time.Now().Add(v.timeout))
	}
	_ = v.conn.Close()
}

// videoStream sends one camera's video to one viewer, in a goroutine of its own.
type videoStream struct {
	ring   func() *capture.Ring
	camera int
	viewer *videoViewer

	video    *mp4.Video // nil before the first key frame and after a gap that it cannot go on over
	none     bool       // the viewer knows that there is no video
	pace     pace
	sent     int64 // Received of the newest unit that was taken
	shown    time.Duration
	received int64 // of the image that waits for the end of its fragment
}

// run sends the video of one connection to the camera after the other until ctx ends or the viewer is too slow.
func (s *videoStream) run(ctx context.Context) error {
	var ended *capture.Ring
	for ctx.Err() == nil {
		ring := s.ring()
		if ring != nil && ring != ended {
			if err := s.follow(ctx, ring); err != nil {
				return err
			}
			ended = ring
			continue
		}
		if ring == nil {
			if err := s.describeNone(); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(videoPoll):
		}
	}
	return nil
}

// describeNone informs the viewer once that the camera has no video for browsers.
func (s *videoStream) describeNone() error {
	if s.none {
		return nil
	}
	s.none, s.video = true, nil
	return s.viewer.describe(&videoDescription{Camera: s.camera})
}

// follow sends the units of one connection. It returns nil when that has ended or the camera has another.
func (s *videoStream) follow(ctx context.Context, ring *capture.Ring) error {
	reader := ring.Reader()
	if s.video != nil {
		s.video.Rejoin()
	}
	for {
		waiting, cancel := context.WithTimeout(ctx, videoPoll)
		unit, err := reader.Next(waiting)
		timedOut := waiting.Err() != nil
		cancel()
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // run knows
		case err != nil && timedOut:
			if s.ring() != ring {
				return nil
			}
			err = s.flush()
		case err != nil:
			return nil //nolint:nilerr // the connection has ended
		case s.pace.seeking && (!unit.Key || unit.Received <= s.sent):
			continue
		default:
			err = s.take(&unit)
			if s.pace.seeking {
				reader = ring.Reader()
			}
		}
		if err != nil {
			return err
		}
	}
}

// take sends a unit, unless the viewer is behind: then the next one is a later key frame.
func (s *videoStream) take(unit *capture.Unit) error {
	s.sent = unit.Received
	send, err := s.pace.judge(capture.Monotonic(), unit.Received)
	if err != nil {
		return err
	}
	if !send {
		return s.flush()
	}
	if s.video == nil || !s.video.Accepts(unit) {
		if !unit.Key {
			return nil
		}
		if err := s.begin(unit); err != nil || s.video == nil {
			return err
		}
	}
	fragment, err := s.video.Add(unit)
	if err == nil {
		err = s.send(fragment)
	}
	s.shown, s.received = s.video.Shown(), unit.Received
	return err
}

// begin describes the video that begins with a key frame. There is none for the viewer if browsers have no decoder for it.
func (s *videoStream) begin(unit *capture.Unit) error {
	if err := s.flush(); err != nil {
		return err
	}
	if unit.Codec == capture.MJPEG {
		return s.describeNone()
	}
	video, err := mp4.New(unit)
	if err != nil {
		return s.describeNone() // the next key frame may be better
	}
	header, err := video.Header()
	if err != nil {
		return err
	}
	s.video, s.none = video, false
	d := videoDescription{Camera: s.camera, Codec: video.Codec()}
	d.Width, d.Height = video.Size()
	if err := s.viewer.describe(&d); err != nil {
		return err
	}
	return s.viewer.write(websocket.BinaryMessage, s.message(-1, 0, header))
}

// flush sends the image that waits for the next one.
func (s *videoStream) flush() error {
	if s.video == nil {
		return nil
	}
	fragment, err := s.video.Flush()
	if err != nil {
		return err
	}
	return s.send(fragment)
}

// send sends a fragment, which holds the image that was added before the newest one. nil is none.
func (s *videoStream) send(fragment []byte) error {
	if fragment == nil {
		return nil
	}
	return s.viewer.write(websocket.BinaryMessage, s.message(s.shown.Seconds(), s.received, fragment))
}

// message returns a binary message, see videoHeader.
func (s *videoStream) message(shown float64, received int64, data []byte) []byte {
	m := make([]byte, 0, videoHeader+len(data))
	m = binary.BigEndian.AppendUint32(m, uint32(s.camera))
	m = binary.BigEndian.AppendUint64(m, math.Float64bits(shown))
	m = binary.BigEndian.AppendUint64(m, math.Float64bits(float64(received/int64(time.Microsecond))))
	return append(m, data...)
}
