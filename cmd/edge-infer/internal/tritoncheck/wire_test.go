package tritoncheck

import (
	"image/jpeg"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/triton"
)

// What an image is sent as is chosen, and the server makes of it what the network takes: half of the bytes, a quarter, or JPEG.
func TestWhatGoesOverTheWire(t *testing.T) {
	repository := exported(t, "--wire", "fp16,uint8,jpeg")
	configs, err := filepath.Glob(filepath.Join(repository, "*/config.pbtxt"))
	require.NoError(t, err)
	require.Len(t, configs, 7)
	parsed := python(t, "parse.py", configs...)
	require.Contains(t, parsed, "demo_jpeg ensemble 8 [] {}\n")
	require.Contains(t, parsed, "demo_jpeg_input python 8 [] {}\n")
	s := start(t, repository)
	images := filepath.Join(programtest.Scenes(t, 40, 7), "images")
	local := look(t, images, "--engine", "onnxruntime=cpu")
	for _, c := range []struct {
		wire          string
		score, pixels float64
		missed        int // objects of the local engine's that may not be found, of 251
	}{{"fp32", 1e-3, 0.1, 0}, {"fp16", 0.01, 0.5, 0}, {"uint8", 1e-3, 0.1, 0}, {"jpeg", 0.2, 8, 13}} {
		for _, scheme := range []string{"grpc", "http"} {
			remote := look(t, images, "--engine", "triton="+s.at(scheme, "demo"), "--remote-wire", c.wire, "--batch", "4")
			found, missed := match(t, local, remote, c.score, c.pixels)
			require.LessOrEqual(t, missed, c.missed)
			e, p50 := timed(t, s, scheme, c.wire)
			require.Equal(t, c.wire, e.Status().Servers[0].Wire)
			t.Logf("%s over %s: %d of %d objects as here, %.0f bytes a frame, request p50 %.2f ms", c.wire, scheme, found, found+missed,
				e.Status().Servers[0].SentFrame, p50)
		}
	}
	// The model that takes JPEG may also be named; images of another size are refused in words.
	require.Contains(t, edge(t, "inspect", "--engine", "triton="+s.at("grpc", "demo_jpeg")), "uint8 [-1 416 416 3]")
	about := programtest.Command(t, "inspect", "--engine", "triton="+s.at("grpc", "demo_uint8"), "--remote-wire", "jpeg")
	said, err := about.CombinedOutput()
	require.Error(t, err)
	require.Contains(t, strings.Join(strings.Fields(string(said)), " "),
		"model demo_uint8 takes uint8, and the server has no model demo_uint8_jpeg that takes jpeg (edge-infer export triton --wire jpeg writes one")
}

// match counts the objects of want that are in got as well.
func match(t *testing.T, want, got []seen, score, pixels float64) (found, missed int) {
	require.Len(t, got, len(want))
	for i := range want {
		require.Equal(t, want[i].File, got[i].File)
		for _, w := range want[i].Detections {
			same := false
			for _, g := range got[i].Detections {
				near := w.Label == g.Label && max(w.Score-g.Score, g.Score-w.Score) <= score
				for k := range w.Box {
					near = near && max(w.Box[k]-g.Box[k], g.Box[k]-w.Box[k]) <= pixels
				}
				same = same || near
			}
			if same {
				found++
			} else {
				missed++
			}
		}
	}
	require.Positive(t, found)
	return found, missed
}

// timed is the engine after requests with images of the belt, sent as wire.
func timed(t *testing.T, s *server, scheme, wire string) (*triton.Engine, float64) {
	options := engine.Options{Remote: engine.Remote{Timeout: programtest.Patience, SharedMemory: triton.NoMemory, Encoding: wire}}
	e, err := triton.Open(t.Context(), s.at(scheme, "demo"), options, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	img := []engine.Image{decoded(t, filepath.Join(programtest.Scenes(t, 40, 7), "images/000000.jpg"))}
	_, _, took := turns(t, 1, func() error { return nil }, func() error {
		if err := e.Submit(0, img); err != nil {
			return err
		}
		_, err := e.Wait(0)
		return err
	})
	return e, median(took)
}

// decoded is an image of a file.
func decoded(t *testing.T, path string) engine.Image {
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	img, err := jpeg.Decode(file)
	require.NoError(t, err)
	size := img.Bounds().Size()
	im := engine.Image{Data: make([]byte, 3*size.X*size.Y), Width: size.X, Height: size.Y, Stride: 3 * size.X, Format: engine.BGR}
	for y := range size.Y {
		for x := range size.X {
			r, g, b, _ := img.At(x, y).RGBA()
			copy(im.Data[y*im.Stride+3*x:], []byte{byte(b >> 8), byte(g >> 8), byte(r >> 8)})
		}
	}
	return im
}
