package web

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/capture/rtsp"
	"github.com/edge-infer/edge-infer/capture/rtsp/rtsptest"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/mp4/mp4test"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/web/live/livetest"
	"github.com/edge-infer/edge-infer/engine"
)

// videoCamera reads an RTSP camera, and has detections of every fifth image.
type videoCamera struct {
	t      *testing.T
	name   string
	server *Server
	frame  *capture.Frame
	seq    uint64

	stream  atomic.Pointer[rtsp.Stream]
	readers sync.WaitGroup
}

// connect replaces the connection to the camera.
func (c *videoCamera) connect(address string) {
	uri, err := capture.ParseURI(address)
	require.NoError(c.t, err)
	stream, err := rtsp.Open(context.Background(), uri, rtsp.Options{OpenTimeout: testPatience, ReadTimeout: testPatience})
	require.NoError(c.t, err)
	units := stream.Units()
	c.disconnect()
	c.stream.Store(stream)
	c.readers.Go(func() {
		for {
			unit, err := units.Next(context.Background())
			if err != nil {
				return
			}
			c.seq++
			if c.seq%5 == 0 {
				in := livetest.Result(c.frame, c.seq, time.Duration(unit.Received))
				in.Camera = c.name
				c.server.Frame(in)
			}
		}
	})
}

func (c *videoCamera) disconnect() {
	if stream := c.stream.Load(); stream != nil {
		_ = stream.Close()
		c.readers.Wait()
	}
}

func (c *videoCamera) ring() *capture.Ring {
	if stream := c.stream.Load(); stream != nil {
		return stream.Ring()
	}
	return nil
}

// play serves cameras that play files, one each, until the test ends.
func play(t *testing.T, server *Server, width, height int, files ...string) (*rtsptest.Server, []*videoCamera) {
	cameras := &rtsptest.Server{Files: files}
	require.NoError(t, cameras.Start())
	t.Cleanup(cameras.Close)
	source := &still{}
	var all []*videoCamera
	for i := range files {
		c := &videoCamera{t: t, name: fmt.Sprintf("cam%d", i), server: server}
		c.frame = &capture.Frame{Data: make([]byte, width*height), Width: width, Height: height, Stride: width, Format: engine.GRAY8}
		state := Camera{Capture: capture.Stats{Name: c.name, State: capture.Running}}
		source.status.Cameras = append(source.status.Cameras, state)
		all = append(all, c)
	}
	server.Units = func(name string) *capture.Ring {
		for _, c := range all {
			if c.name == name {
				return c.ring()
			}
		}
		return nil
	}
	serve(t, server, source)
	for i, c := range all {
		c.connect(cameras.URL(i))
		t.Cleanup(c.disconnect)
	}
	return cameras, all
}

// videoTime is the time in the video of cam0 that is on the screen, -1 without a video.
const videoTime = `(window.edgeInfer?.feed.camera("cam0").player?.video.currentTime ?? -1)`

// TestChromiumPlaysTheCamerasVideo: no JPEG is encoded, and each image is shown with its own detections. The video goes on after a silence
// of the camera, over a new connection and with images of another size, and is close to the newest image again each time.
func TestChromiumPlaysTheCamerasVideo(t *testing.T) {
	server := &Server{}
	small := mp4test.Video(t, "libx264", 4, time.Second)
	rtspServer, cameras := play(t, server, 160, 120, small)
	b := newBrowser(t, 1280, 800)
	b.do(chromedp.Navigate(server.URL()))
	b.wait(videoTime + ` > 1`)
	b.wait(`(({captured, of, boxes}) => of && boxes.length > 0 && captured === of)(window.edgeInfer.drawn.cam0)`)
	const width, behind = `window.edgeInfer.feed.camera("cam0").player?.video.videoWidth`, `(({buffered, currentTime}) =>
		buffered.end(buffered.length - 1) - currentTime)(window.edgeInfer.feed.camera("cam0").player.video)`
	require.Equal(t, 160, evaluate[int](b, width))
	b.wait(behind + ` < 1`)
	b.img("video")

	t.Log("the camera is silent")
	rtspServer.SetSilent(true)
	before := evaluate[float64](b, videoTime)
	time.Sleep(2 * time.Second) // the silence itself
	rtspServer.SetSilent(false)
	b.wait(fmt.Sprintf(`%s > %g && %s < 1`, videoTime, before+3, behind))

	t.Log("another connection")
	before = evaluate[float64](b, videoTime)
	cameras[0].connect(rtspServer.URL(0))
	b.wait(fmt.Sprintf(`%s > %g && %s < 1`, videoTime, before+2, behind))

	t.Log("another size")
	large := &rtsptest.Server{Files: []string{mp4test.Video(t, "libx264", 4, time.Second, "-vf", "scale=320:240")}}
	require.NoError(t, large.Start())
	defer large.Close()
	cameras[0].connect(large.URL(0))
	b.wait(fmt.Sprintf(`%s === 320 && %s > 1 && %s < 1`, width, videoTime, behind))
	require.Zero(t, server.feed.Stats().Images)

	t.Log("the page is hidden, and shown again")
	evaluate[any](b, `Object.defineProperty(document, "hidden", {value: true, configurable: true}); document.dispatchEvent(new Event("visibilitychange"))`)
	require.Eventually(t, func() bool { return server.feed.Stats().Viewers == 0 }, testPatience, 10*time.Millisecond)
	evaluate[any](b, `delete document.hidden; document.dispatchEvent(new Event("visibilitychange"))`)
	b.wait(videoTime + ` > 0`)
	require.Empty(t, b.consoleErrors())
}

// TestWhatChromiumCannotPlayIsShownAsImages beside a video, with one WebSocket for all that it plays.
func TestWhatChromiumCannotPlayIsShownAsImages(t *testing.T) {
	server := &Server{}
	play(t, server, 160, 120, mp4test.Video(t, "libx264", 4, time.Second), mp4test.Video(t, "libx265", 4, time.Second))
	b := newBrowser(t, 1280, 800)
	b.do(chromedp.Navigate(server.URL()))
	b.wait(videoTime + ` > 0.5`)
	if evaluate[bool](b, `MediaSource.isTypeSupported('video/mp4; codecs="hvc1.1.6.L30.90"')`) {
		b.wait(`window.edgeInfer.drawn.cam1?.captured`)
		return
	}
	b.wait(`window.edgeInfer.drawn.cam1?.image > 0 && window.edgeInfer.drawn.cam0?.captured`)
	require.False(t, evaluate[bool](b, `window.edgeInfer.feed.camera("cam0").still`))
	require.Empty(t, b.consoleErrors())
}

// TestBoxesMoveBetweenDetections: an image without detections of its own has boxes between those before and after it, if these are not far.
func TestBoxesMoveBetweenDetections(t *testing.T) {
	server := &Server{}
	serve(t, server, frames("cam0"))
	b := newBrowser(t, 800, 600)
	b.do(chromedp.Navigate(server.URL()))
	b.wait(`window.edgeInfer?.feed`)
	const box = `JSON.stringify((() => {
		const {feed} = window.edgeInfer;
		const detected = (captured_us, ...detections) => feed.camera("gate").messages.set(captured_us, {captured_us, detections, lost: []});
		detected(1e6, {track: 1, box: [0, 0, 10, 10]}, {track: 2, box: [1, 1, 2, 2]}, {track: 3, mask: {}, box: [3, 3, 4, 4]});
		detected(2e6, {track: 1, box: [10, 0, 20, 40]}, {track: 3, mask: {}, box: [5, 5, 6, 6]});
		return feed.at("gate", %g)?.detections.map((d) => d.box) ?? null;
	})())`
	for captured, want := range map[float64]string{
		0.9e6: "null", 1e6: "[[0,0,10,10],[1,1,2,2],[3,3,4,4]]", 1.5e6: "[[5,0,15,25],[1,1,2,2],[3,3,4,4]]",
		2.1e6: "[[10,0,20,40],[5,5,6,6]]", 4.1e6: "null",
	} {
		require.Equal(t, want, evaluate[string](b, fmt.Sprintf(box, captured)), captured)
	}
}
