package track_test

import (
	"flag"
	"log/slog"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture/scene"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/predict"
	"github.com/edge-infer/edge-infer/postprocess/track"
	"github.com/edge-infer/edge-infer/postprocess/zone"
)

// faults are what a simulated detector does wrong.
type faults struct{ noise, miss, fake float64 }

// detect gives the true boxes with faults.
func (f faults) detect(random *rand.Rand, truth []scene.Part) []postprocess.Detection {
	var out []postprocess.Detection
	for _, p := range truth {
		side := float64(p.X1-p.X0+p.Y1-p.Y0) / 2
		off := func() float32 { return float32(random.NormFloat64() * f.noise * side) }
		// What is hidden more is seen worse.
		score := float32(0.25 + 0.65*p.Visible + 0.05*random.NormFloat64())
		if p.Visible < scene.MinLabelledShare || random.Float64() < f.miss {
			continue
		}
		box := postprocess.Box{X1: float32(p.X0) + off(), Y1: float32(p.Y0) + off(), X2: float32(p.X1) + off(), Y2: float32(p.Y1) + off()}
		out = append(out, postprocess.Detection{Box: box, Score: min(score, 1), Class: int(p.Class)})
	}
	if random.Float64() < f.fake {
		x, y := random.Float32()*width, random.Float32()*height
		out = append(out, postprocess.Detection{Box: postprocess.Box{X1: x, Y1: y, X2: x + 40, Y2: y + 40}, Score: random.Float32()})
	}
	return out
}

// network is the demo model on ONNX Runtime.
type network struct{ *predict.Network }

func openNetwork(t *testing.T) *network {
	t.Helper()
	o := predict.Options{
		Backend: "onnxruntime=cpu", Decoding: predict.Decoding{MinScore: track.DefaultLowThreshold}, Log: slog.New(slog.DiscardHandler),
	}
	o.Threads = 2
	n, err := predict.Open(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, n.Close()) })
	return &network{n}
}

func (n *network) detect(t *testing.T, img engine.Image) []postprocess.Detection {
	t.Helper()
	seen, err := predict.Run(n, img)
	require.NoError(t, err)
	require.NoError(t, seen[0].Err)
	return seen[0].Detections
}

const width, height, rate = 640, 480, 30

// shot is a frame of the belt, free and with a post in front of it that hides everything that passes behind.
type shot struct{ free, post view }

// view is what can be seen on an image, truly and by the demo model.
type view struct {
	truth      []scene.Part
	detections []postprocess.Detection
}

// video draws the belt once for all cases; n is nil without a model.
func video(t *testing.T, n *network, seed uint64, frames int) []shot {
	t.Helper()
	world := scene.Scene{Width: width, Height: height, Rate: rate, Seed: seed}
	require.NoError(t, world.Open())
	img := engine.Image{Data: make([]byte, 3*width*height), Width: width, Height: height, Stride: 3 * width, Format: engine.BGR}
	look := func(parts []scene.Part) view {
		v := view{truth: parts}
		if n != nil {
			v.detections = n.detect(t, img)
		}
		return v
	}
	shots := make([]shot, frames)
	for frame := range shots {
		parts, err := world.Draw(frame, img.Data, img.Stride, nil)
		require.NoError(t, err)
		shots[frame].free = look(parts)
		shots[frame].post = look(hide(img, parts))
	}
	return shots
}

// play tracks the views of a video and measures the tracks on every frame, those that the detector skips included. It counts the parts that
// cross a line, truly and by analytics.
func play(t *testing.T, views []view, every int) (result trackingScores, crossed, counted int) {
	t.Helper()
	tracker := &track.Tracker{TrackBuffer: 3 * time.Second, Width: width, Height: height}
	require.NoError(t, tracker.Open())
	analytics := &zone.Analytics{
		Config: zone.Config{Lines: []zone.Line{{Name: "gate", From: zone.Point{X: 0.75, Y: 0}, To: zone.Point{X: 0.75, Y: 1}}}},
		Labels: scene.Labels(), Width: width, Height: height,
	}
	require.NoError(t, analytics.Open())
	var measured trackingScorer
	start := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	before := map[int64]float64{}
	for frame, seen := range views {
		var truth []identified
		var hardly []postprocess.Box
		for _, p := range seen.truth {
			const gate = width * 3 / 4
			centre := float64(p.X0+p.X1) / 2
			if last, known := before[p.ID]; known && last < gate && centre >= gate {
				crossed++
			}
			before[p.ID] = centre
			box := postprocess.Box{X1: float32(p.X0), Y1: float32(p.Y0), X2: float32(p.X1), Y2: float32(p.Y1)}
			if p.Visible < scene.MinLabelledShare {
				hardly = append(hardly, box)
				continue
			}
			truth = append(truth, identified{Box: box, ID: p.ID})
		}
		at := start.Add(time.Duration(frame) * time.Second / rate)
		var tracks []postprocess.Track
		if frame%every == 0 {
			tracks = tracker.Update(at, seen.detections)
		} else {
			tracks = tracker.Predict(at)
		}
		analytics.Update(uint64(frame), at, tracks)
		var shown []identified
		for _, tr := range tracks {
			if tr.State == postprocess.Active && !showsHidden(tr.Box, truth, hardly) {
				shown = append(shown, identified{Box: tr.Box, ID: int64(tr.ID)})
			}
		}
		measured.add(truth, shown)
	}
	line := analytics.Line(0)
	for class := range line.In {
		counted += line.In[class] + line.Out[class]
	}
	return measured.result(), crossed, counted
}

// hide paints a post over the middle of the image and cuts the truth accordingly.
func hide(img engine.Image, parts []scene.Part) []scene.Part {
	from, to := img.Width*9/20, img.Width*11/20
	for y := range img.Height {
		clear(img.Data[y*img.Stride+3*from : y*img.Stride+3*to])
	}
	var seen []scene.Part
	for _, p := range parts {
		whole := p.X1 - p.X0
		if p.X0 >= from && p.X0 < to {
			p.X0 = min(to, p.X1)
		}
		if p.X1 > from && p.X1 <= to {
			p.X1 = max(from, p.X0)
		}
		if p.X0 < p.X1 {
			p.Visible *= float64(p.X1-p.X0) / float64(whole)
			seen = append(seen, p)
		}
	}
	return seen
}

// showsHidden reports whether a box is on a part that the truth leaves out because little of it can be seen: finding it is no mistake.
func showsHidden(b postprocess.Box, truth []identified, hardly []postprocess.Box) bool {
	most := float32(0)
	for _, o := range truth {
		most = max(most, o.IoU(b))
	}
	for _, h := range hardly {
		if h.IoU(b) > max(most, 0.3) {
			return true
		}
	}
	return false
}

var (
	frames = flag.Int("frames", 180, "length of the video of the belt")
	seed   = flag.Uint64("seed", 77, "seed of the belt")
)

func TestTrackingOnTheDemoBelt(t *testing.T) {
	var n *network
	if os.Getenv("EDGE_INFER_ONNXRUNTIME") != "" {
		n = openNetwork(t)
	}
	shots := video(t, n, *seed, *frames)
	const perfect, faulty, model = 0, 1, 2
	for _, c := range []struct {
		name     string
		detector int
		every    int
		post     bool
		idf1     float64
	}{
		{"true boxes", perfect, 1, false, 0.95},
		{"true boxes behind a post", perfect, 1, true, 0.95},
		{"faulty boxes, every third frame", faulty, 3, false, 0.90},
		{"faulty boxes behind a post, every third frame", faulty, 3, true, 0.90},
		{"demo model", model, 1, false, 0.95},
		{"demo model, every third frame", model, 3, false, 0.90},
		{"demo model behind a post", model, 1, true, 0.88},
		{"demo model behind a post, every third frame", model, 3, true, 0.87},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.detector == model && n == nil {
				t.Skip("needs ONNX Runtime: EDGE_INFER_ONNXRUNTIME is not set")
			}
			random := rand.New(rand.NewPCG(1, 1))
			var views []view
			for _, s := range shots {
				seen := s.free
				if c.post {
					seen = s.post
				}
				switch c.detector {
				case perfect:
					seen.detections = faults{}.detect(random, seen.truth)
				case faulty:
					seen.detections = faults{0.03, 0.05, 0.2}.detect(random, seen.truth)
				}
				views = append(views, seen)
			}
			result, crossed, counted := play(t, views, c.every)
			t.Logf("MOTA %.3f IDF1 %.3f HOTA %.3f, %d switches, %d missed, %d false of %d; %d parts as %d; %d crossed, %d counted",
				result.MOTA, result.IDF1, result.HOTA, result.IDSwitches, result.Missed, result.FalseAlarms, result.Truths,
				result.Identities, result.TrackerCount, crossed, counted)
			assert.GreaterOrEqual(t, result.IDF1, c.idf1)
			// The video may end while a part is on the line.
			assert.InDelta(t, crossed, counted, max(1, 0.01*float64(crossed)))
		})
	}
}
