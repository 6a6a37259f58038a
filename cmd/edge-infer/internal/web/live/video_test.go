package live

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/mp4/mp4test"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/web/live/livetest"
	"github.com/edge-infer/edge-infer/engine"
)

const patience = 30 * time.Second

// videoServer serves the video of one camera, cam0, from a ring that a test fills.
type videoServer struct {
	*Feed
	*httptest.Server
	ring atomic.Pointer[capture.Ring]
}

func newVideoServer(t testing.TB) *videoServer {
	s := &videoServer{Feed: opened()}
	s.Known = func(camera string) bool { return camera == "cam0" }
	s.Units = func(string) *capture.Ring { return s.ring.Load() }
	s.Write, s.Heartbeat = time.Minute, time.Second
	s.Server = httptest.NewServer(http.HandlerFunc(s.ServeVideo))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Server.Close()
		s.Stop()
	})
	return s
}

func (s *videoServer) dial(t testing.TB, header http.Header) (*websocket.Conn, *http.Response, error) {
	conn, response, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(s.URL, "http")+"/?camera=cam0", header)
	if response != nil {
		t.Cleanup(func() { _ = response.Body.Close() })
	}
	if err == nil {
		t.Cleanup(func() { _ = conn.Close() })
		require.NoError(t, conn.SetReadDeadline(time.Now().Add(patience)))
	}
	return conn, response, err
}

// watch connects a viewer.
func (s *videoServer) watch(t testing.TB) *websocket.Conn {
	conn, _, err := s.dial(t, nil)
	require.NoError(t, err)
	return conn
}

// put adds units to the newest ring as if they had arrived just now.
func (s *videoServer) put(units []capture.Unit) (received []int64) {
	for _, unit := range units {
		unit.Received = capture.Monotonic()
		received = append(received, unit.Received)
		s.ring.Load().Put(unit)
	}
	return received
}

// readDescription reads a text message.
func readDescription(t *testing.T, conn *websocket.Conn) (d videoDescription) {
	kind, data, err := conn.ReadMessage()
	require.NoError(t, err)
	require.Equal(t, websocket.TextMessage, kind)
	require.NoError(t, json.Unmarshal(data, &d))
	return d
}

// readVideo reads a binary message: the time in the video, when it was received in microseconds, and the data's first box.
func readVideo(t *testing.T, conn *websocket.Conn) (shown, received float64, box string) {
	kind, data, err := conn.ReadMessage()
	require.NoError(t, err)
	require.Equal(t, websocket.BinaryMessage, kind, "%s", data)
	require.Zero(t, binary.BigEndian.Uint32(data))
	shown = math.Float64frombits(binary.BigEndian.Uint64(data[4:]))
	received = math.Float64frombits(binary.BigEndian.Uint64(data[12:]))
	return shown, received, string(data[videoHeader+4 : videoHeader+8])
}

// TestVideo: a viewer gets each image once with its times, goes on over a new connection to the camera, and learns of another size.
func TestVideo(t *testing.T) {
	s := newVideoServer(t)
	conn := s.watch(t)
	require.Empty(t, readDescription(t, conn).Codec, "the camera is not connected yet")
	units := mp4test.Encode(t, "libx264", 2, time.Second)
	s.ring.Store(new(capture.Ring))
	received := s.put(units[:25])
	d := readDescription(t, conn)
	require.Regexp(t, `^avc1\.[0-9a-f]{6}$`, d.Codec)
	require.Equal(t, []int{160, 120}, []int{d.Width, d.Height})
	shown, _, box := readVideo(t, conn)
	require.Equal(t, -1.0, shown)
	require.Equal(t, "ftyp", box)
	for i, at := range received { // the last one although no other follows
		shown, received, box := readVideo(t, conn)
		require.InDelta(t, float64(i)*0.04, shown, 1e-4)
		require.Equal(t, float64(at/1000), received)
		require.Equal(t, "moof", box)
	}

	s.ring.Load().End(errors.New("lost"))
	s.ring.Store(new(capture.Ring))
	received = s.put(units[25:])
	again, at, box := readVideo(t, conn)
	require.Greater(t, again, 0.96)
	require.Equal(t, float64(received[0]/1000), at)
	require.Equal(t, "moof", box, "no new description: the video is the same")
	for range received[1:] {
		readVideo(t, conn)
	}

	s.put(mp4test.Encode(t, "libx264", 1, time.Second, "-vf", "scale=320:240"))
	require.Equal(t, 320, readDescription(t, conn).Width)
	shown, _, _ = readVideo(t, conn)
	require.Equal(t, -1.0, shown)
	shown, _, _ = readVideo(t, conn)
	require.Zero(t, shown)
}

// TestCamerasWithoutVideo have images only: before they are connected, those that send JPEGs, and after the video has ended.
func TestCamerasWithoutVideo(t *testing.T) {
	s := newVideoServer(t)
	conn := s.watch(t)
	require.Empty(t, readDescription(t, conn).Codec)
	s.ring.Store(new(capture.Ring))
	s.put([]capture.Unit{{Codec: capture.MJPEG, Data: []byte("JPEG"), Key: true}})
	s.ring.Load().End(errors.New("lost"))
	s.ring.Store(new(capture.Ring))
	s.put(mp4test.Encode(t, "libx264", 1, time.Second)[:5])
	require.NotEmpty(t, readDescription(t, conn).Codec, "JPEGs change nothing")
	for range 5 {
		readVideo(t, conn)
	}
	s.ring.Load().End(errors.New("lost"))
	s.ring.Store(nil)
	for {
		kind, data, err := conn.ReadMessage()
		require.NoError(t, err)
		if kind == websocket.TextMessage {
			require.JSONEq(t, `{"camera": 0, "codec": "", "width": 0, "height": 0}`, string(data))
			return
		}
	}
}

// TestOtherPagesGetNoVideo: browsers send the cookie of a login along with the WebSockets of other pages.
func TestOtherPagesGetNoVideo(t *testing.T) {
	s := newVideoServer(t)
	_, response, err := s.dial(t, http.Header{"Origin": {"http://elsewhere.example"}})
	require.Error(t, err)
	require.Equal(t, http.StatusForbidden, response.StatusCode)
	own, err := url.Parse(s.URL)
	require.NoError(t, err)
	_, response, err = s.dial(t, http.Header{"Origin": {"http://" + own.Host}})
	require.NoError(t, err)
	require.Equal(t, http.StatusSwitchingProtocols, response.StatusCode)
	response, err = http.Get(s.URL + "/?camera=other")
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusNotFound, response.StatusCode)
}

// TestVideoCostsTheFrameLoopNothing: viewers of video take no pixels, and leave nothing behind.
func TestVideoCostsTheFrameLoopNothing(t *testing.T) {
	s := newVideoServer(t)
	in := livetest.Result(livetest.Noise(engine.BGR, 64, 48, 3*64), 1, 0)
	conn := s.watch(t)
	readDescription(t, conn)
	require.Equal(t, 1, s.Feed.Stats().Viewers)
	require.Empty(t, s.watched.Load().previews)
	require.Zero(t, testing.AllocsPerRun(100, func() { s.Frame(in) }))
	require.Zero(t, s.Feed.Stats().Images)
	require.NoError(t, conn.Close())
	require.Eventually(t, func() bool { return s.Feed.Stats().Viewers == 0 }, patience, time.Millisecond)
	require.Nil(t, s.watched.Load())
	s.Stop() // returns: nobody reads the ring any more
}

// TestViewersThatTakeNoVideoAreDropped after the timeout for a write; what waits for them is in the ring, not in memory of their own.
func TestViewersThatTakeNoVideoAreDropped(t *testing.T) {
	s := newVideoServer(t)
	s.Write = 200 * time.Millisecond
	s.ring.Store(new(capture.Ring))
	units := mp4test.Encode(t, "libx264", 1, time.Second, "-vf", "scale=640:480,noise=alls=60:allf=t", "-b:v", "50M")
	s.watch(t) // and never reads
	require.Eventually(t, func() bool { return s.Feed.Stats().Viewers == 1 }, patience, time.Millisecond)
	require.Eventually(t, func() bool {
		s.put(units)
		return s.Feed.Stats().Viewers == 0
	}, patience, time.Millisecond)
}

// TestSlowViewersGoOnWithAKeyFrame that is newer, and are told if that does not help.
func TestSlowViewersGoOnWithAKeyFrame(t *testing.T) {
	s := newVideoServer(t)
	units := mp4test.Encode(t, "libx264", 2, time.Second)
	ctx, cancel := context.WithCancelCause(t.Context())
	conns := make(chan *websocket.Conn, 1)
	upgrade := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := new(websocket.Upgrader).Upgrade(w, r, nil)
		assert.NoError(t, err)
		conns <- conn
	}))
	defer upgrade.Close()
	client, response, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(upgrade.URL, "http"), nil)
	require.NoError(t, err)
	defer response.Body.Close()
	defer client.Close()
	stream := videoStream{viewer: &videoViewer{conn: <-conns, timeout: patience}}
	stream.pace.behind = capture.Monotonic() - catchUp // the viewer is behind for long
	old := capture.Unit{Codec: units[0].Codec, Data: units[0].Data, Key: true, Received: capture.Monotonic() - 2*maxLag}
	require.NoError(t, stream.take(&old))
	require.True(t, stream.pace.seeking)
	require.Nil(t, stream.video, "nothing is sent")

	ring := new(capture.Ring)
	s.ring.Store(ring)
	stream.ring = s.ring.Load
	s.put(units[1:30])
	ring.End(errors.New("lost"))
	require.NoError(t, stream.follow(ctx, ring))
	require.NotEmpty(t, readDescription(t, client).Codec)
	readVideo(t, client)
	for i := range 4 { // of 25 to 29; the last one waits
		shown, _, _ := readVideo(t, client)
		require.InDelta(t, float64(i)*0.04, shown, 1e-4)
	}
	cancel(errTooSlow)
	stream.viewer.close(context.Cause(ctx))
	_, _, err = client.ReadMessage()
	require.True(t, websocket.IsCloseError(err, websocket.CloseTryAgainLater), "%v", err)
	require.ErrorContains(t, err, "the connection is too slow")
}

func TestPace(t *testing.T) {
	const second = int64(time.Second)
	type step struct {
		now, received int64
		want          string
	}
	for name, steps := range map[string][]step{
		"in time": {{10, 9, "send"}, {100, 98, "send"}},
		"from a key frame of long ago": {
			{100, 90, "send"}, {101, 94, "send"}, {102, 100, "send"}, {200, 199, "send"},
		},
		"does not catch up": {
			{100, 90, "send"}, {104, 94, "skip"}, {105, 104, "send"}, {200, 199, "send"},
		},
		"behind now and then": {
			{100, 90, "send"},
			{104, 90, "skip"},
			{105, 105, "send"},
			{200, 190, "send"},
			{204, 190, "skip"},
			{205, 205, "send"},
			{300, 290, "send"},
			{304, 290, "skip"},
			{305, 305, "send"},
			{400, 390, "send"},
			{404, 390, "skip"},
			{405, 405, "send"},
		},
		"always behind": {
			{100, 90, "send"},
			{104, 90, "skip"},
			{105, 95, "send"},
			{108, 95, "skip"},
			{109, 95, "send"},
			{113, 95, "skip"},
			{114, 95, "send"},
			{118, 95, errTooSlow.Error()},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var p pace
			for i, step := range steps {
				send, err := p.judge(step.now*second, step.received*second)
				got := map[bool]string{true: "send", false: "skip"}[send]
				if err != nil {
					got = err.Error()
				}
				require.Equal(t, step.want, got, fmt.Sprint(i))
				require.Equal(t, got == "skip", err == nil && p.seeking)
			}
		})
	}
}
