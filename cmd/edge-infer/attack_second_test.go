package main

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/edge-infer/edge-infer/capture/scene"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
	"github.com/edge-infer/edge-infer/engine/onnx"
	"github.com/edge-infer/edge-infer/engine/onnx/testnet"
)

// lies are second networks that are right until an image is red: then one gives NaN, one another shape than before, and one is slow.
var lies = map[string]func(b *testnet.Builder, scores, red string) string{
	"invalid": func(b *testnet.Builder, scores, red string) string {
		return b.Node("Add", "/invalid", []string{scores, b.Node("Sqrt", "/sqrt", []string{b.Node("Neg", "/neg", []string{red})})})
	},
	"contradictory": func(b *testnet.Builder, scores, red string) string {
		more := b.Node("Cast", "/cast", []string{red}, onnx.Int("to", int64(onnx.TensorProto_INT64)))
		columns := b.Node("Add", "/columns", []string{more, b.Ints("one", 1)})
		return b.Node("Tile", "/contradictory", []string{scores, b.Node("Concat", "/repeats", []string{b.Ints("rows", 1), columns},
			onnx.Int("axis", 0))})
	},
	"slow": func(b *testnet.Builder, scores, red string) string {
		side := b.Node("Cast", "/side", []string{b.Node("Mul", "/times", []string{red, b.Floats("size", []float32{2000}, 1)})},
			onnx.Int("to", int64(onnx.TensorProto_INT64)))
		side = b.Node("Add", "/least", []string{side, b.Ints("some", 1)})
		square := b.Node("ConstantOfShape", "/square", []string{b.Node("Concat", "/shape", []string{side, side}, onnx.Int("axis", 0))})
		product := b.Node("MatMul", "/product", []string{square, square})
		return b.Node("Add", "/slow", []string{scores, b.Node("ReduceMax", "/max", []string{product}, onnx.Int("keepdims", 0))})
	},
}

// writeLies writes these networks. Until an image is red, each says which of three colours there is most of.
func writeLies(t *testing.T) (paths map[string]string) {
	paths = map[string]string{}
	for name, lie := range lies {
		b := testnet.NewBuilder(1)
		x := b.Input("images", -1, 3, 32, 32)
		means := b.Node("Flatten", "/flat", []string{b.Node("GlobalAveragePool", "/pool", []string{x})})
		channel := func(name string, index int64) string {
			return b.Node("Gather", name, []string{means, b.Scalar("channel", index)}, onnx.Int("axis", 1))
		}
		difference := b.Node("Sub", "/difference", []string{channel("/red", 0), channel("/blue", 2)})
		reddest := b.Node("ReduceMax", "/reddest", []string{difference}, onnx.Int("keepdims", 1))
		greater := b.Node("Greater", "/greater", []string{reddest, b.Floats("threshold", []float32{lieThreshold}, 1)})
		red := b.Node("Cast", "/is", []string{greater}, onnx.Int("to", int64(onnx.TensorProto_FLOAT)))
		sharpened := b.Node("Mul", "/sharpen", []string{means, b.Floats("sharpness", []float32{60})})
		b.Output(b.Rename(lie(b, b.Node("Softmax", "/softmax", []string{sharpened}), red), "scores"), -1, 3)
		m := b.Model(17)
		m.SetMetadata("task", "classify")
		m.SetMetadata("names", "{0: 'red', 1: 'green', 2: 'blue'}")
		data, err := proto.Marshal(m.Proto)
		require.NoError(t, err)
		paths[name] = filepath.Join(t.TempDir(), name+".onnx")
		require.NoError(t, os.WriteFile(paths[name], data, 0o600))
	}
	return paths
}

const (
	// lieThreshold is the difference of red and blue, 0 to 1, from which an image is red.
	lieThreshold = 0.3
	// lieFrames is the number of images that a stream repeats.
	lieFrames = 40
)

// redStream is a camera with the demo scene, all of it red while red is set.
type redStream struct {
	address string
	red     atomic.Bool
	images  [2][][]byte
}

func newRedStream(t *testing.T) *redStream {
	s := &redStream{}
	belt := scene.Scene{Width: 320, Height: 240, Rate: attackCameraRate, Seed: 7}
	require.NoError(t, belt.Open())
	pixels := make([]byte, 3*belt.Width*belt.Height)
	for frame := range lieFrames {
		_, err := belt.Draw(frame, pixels, 3*belt.Width, nil)
		require.NoError(t, err)
		for variant := range s.images {
			img := image.NewRGBA(image.Rect(0, 0, belt.Width, belt.Height))
			for i := range belt.Width * belt.Height {
				c := color.RGBA{pixels[3*i+2], pixels[3*i+1], pixels[3*i], 255}
				if variant == 1 {
					c.R = c.R/2 + 127
					c.B /= 3
				}
				img.SetRGBA(i%belt.Width, i/belt.Width, c)
			}
			var text bytes.Buffer
			require.NoError(t, jpeg.Encode(&text, img, &jpeg.Options{Quality: 90}))
			s.images[variant] = append(s.images[variant], text.Bytes())
		}
	}
	server := httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	s.address = server.Listener.Addr().String()
	return s
}

func (s *redStream) serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "multipart/x-mixed-replace; boundary=image")
	ticker := time.NewTicker(time.Second / attackCameraRate)
	defer ticker.Stop()
	for frame := 0; r.Context().Err() == nil; frame++ {
		<-ticker.C
		variant := 0
		if s.red.Load() {
			variant = 1
		}
		img := s.images[variant][frame%lieFrames]
		if _, err := fmt.Fprintf(w, "--image\r\nContent-Type: image/jpeg\r\nContent-Length: %d\r\n\r\n%s\r\n", len(img), img); err != nil {
			return
		}
		if http.NewResponseController(w).Flush() != nil {
			return
		}
	}
}

// secondNetworks is a daemon whose second networks lie while the attack wants it. It runs during that attack only.
type secondNetworks struct {
	arena   *arena
	paths   map[string]string
	stream  *redStream
	program *attacked // nil between attacks
	begun   time.Time
	before  cameraCount
}

// secondCameras are that daemon's. The first one shows what makes the networks lie.
func secondCameras() []string { return []string{"red", "other"} }

func newSecondNetworks(a *arena) *secondNetworks {
	s := &secondNetworks{arena: a, paths: writeLies(a.t), stream: newRedStream(a.t)}
	text := "name: second\nmodel: {path: demo}\ncascade:\n"
	for name, path := range s.paths {
		text += fmt.Sprintf("- {name: %s, model: %s, every: 100ms}\n", name, path)
	}
	text += fmt.Sprintf("cameras:\n- {name: red, uri: 'http://%s/stream'}\n", s.stream.address)
	text += fmt.Sprintf("- {name: other, uri: 'demo?width=320&height=240&fps=%d&seed=3'}\n", attackCameraRate)
	a.write("second.yaml", text)
	return s
}

// attackSecondNetworks makes the second networks lie for a moment.
func (a *arena) attackSecondNetworks() {
	s := a.second
	if s.program == nil {
		s.program = a.start("the daemon with second networks", "/api/status", func(address string) []string {
			return []string{"--config", a.path("second.yaml"), "--json", "--mqtt", "off", "--web", address, "--engine", "onnxruntime=cpu"}
		})
		s.requireAttributes("at the start")
		s.before, s.begun = s.program.counted(secondCameras()), time.Now()
	}
	s.stream.red.Store(true)
	time.Sleep(3 * attackHold)
	s.stream.red.Store(false)
	time.Sleep(attackHold)
	require.False(a.t, s.program.ended(), "the daemon with second networks ended: %s", tail(s.program.Stderr))
}

// stop ends the daemon. Its networks must have lied, and be right again; in a timed run no camera may have lost more than its share.
func (s *secondNetworks) stop() {
	if s.program == nil {
		return
	}
	t := s.arena.t
	after, seconds := s.program.counted(secondCameras()), time.Since(s.begun).Seconds()
	frames, lost := after.frames-s.before.frames, after.lost-s.before.lost
	t.Logf("beside second networks that lie: %d frames in %.1f s, %d lost", frames, seconds, lost)
	require.Positive(t, frames)
	if s.arena.timed {
		expected := seconds * attackCameraRate * float64(len(secondCameras()))
		assert.GreaterOrEqual(t, float64(frames), attackRate*expected, "rate beside second networks")
	}
	s.stream.red.Store(true) // on a busy machine the tries may have been too short to be seen
	for _, name := range []string{"invalid", "contradictory"} {
		require.Eventually(t, func() bool { return failedCrops(t, s.metrics(), name) > 0 }, programtest.Patience, 100*time.Millisecond,
			"%s: no failure is counted: %s", name, tail(s.program.Stderr))
	}
	s.stream.red.Store(false)
	s.requireAttributes("after the attack")
	require.NoError(t, s.program.Command.Process.Signal(syscall.SIGTERM))
	<-s.program.finished
	require.NoError(t, s.program.result, "%s", tail(s.program.Stderr))
	s.program = nil
}

// requireAttributes waits until every network says something about an object of the camera that is not red.
func (s *secondNetworks) requireAttributes(when string) {
	for name := range s.paths {
		require.Eventually(s.arena.t, func() bool {
			return strings.Contains(s.program.last(), strconv.Quote(name)+":{")
		}, programtest.Patience, time.Millisecond, "%s: no attribute %s: %s %s", when, name, s.program.last(), tail(s.program.Stderr))
	}
}

func (s *secondNetworks) metrics() string {
	t := s.arena.t
	code, body := programtest.Get(t, programtest.Visitor(t), "http://"+s.program.address+"/metrics")
	require.Equal(t, http.StatusOK, code)
	return string(body)
}

// failedCrops returns the number of a network's objects without a valid result.
func failedCrops(t *testing.T, metrics, network string) float64 {
	found := regexp.MustCompile(`(?m)^edge_infer_secondary_failed_total\{network="` + network + `"\} (.+)$`).FindStringSubmatch(metrics)
	require.NotNil(t, found, "%s", metrics)
	count, err := strconv.ParseFloat(found[1], 64)
	require.NoError(t, err)
	return count
}
