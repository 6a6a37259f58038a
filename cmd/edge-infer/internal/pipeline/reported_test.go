package pipeline

import (
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess/predict"
	"github.com/edge-infer/edge-infer/postprocess/zone"
)

// scene is a slowEngine that finds one box of 20x20 pixels: the frame's number is the index of its centre's x and its score.
type scene struct {
	*slowEngine
	boxes []sceneBox
}

type sceneBox struct{ x, score float32 }

func (s *scene) Submit(slot int, images []engine.Image) error {
	err := s.slowEngine.Submit(slot, images)
	for i := range images {
		box := s.boxes[images[i].Data[0]]
		copy(s.slots[slot].result.Candidates[i].Rows, []float32{box.x - 10, 20, box.x + 10, 40, box.score, 2})
	}
	return err
}

// tally is a sink that keeps the kinds and the lowest score of the events, and the number of reported boxes.
type tally struct {
	kinds  []zone.Kind
	lowest float32
	boxes  int
}

func (c *tally) Frame(in *Result) {
	c.boxes += len(in.Detections)
	for _, e := range in.Events.Events {
		c.lowest = min(c.lowest, e.Object.Score)
		if e.Kind != zone.Update {
			c.kinds = append(c.kinds, e.Kind)
		}
	}
}

// TestOnlyReportedBoxesCount: the frame loop counts what its sinks are given, from the frame on from which a new confidence holds.
func TestOnlyReportedBoxesCount(t *testing.T) {
	notify := make(signal, 1)
	camera := &boxCamera{box: capture.Mailbox{Notify: notify.Signal}}
	defer camera.pool.Close()
	e := &scene{slowEngine: newSlowEngine(0, 1)}
	seen := tally{lowest: 1}
	follower := &Tracker{
		Labels: []string{"a", "b", "c", "d", "e", "f"}, Confidence: 0.25,
		Config: zone.Config{
			Lines: []zone.Line{{Name: "gate", From: zone.Point{X: 0.5}, To: zone.Point{X: 0.5, Y: 1}}},
			Zones: []zone.Zone{{Name: "left", Points: []zone.Point{{}, {X: 0.5}, {X: 0.5, Y: 1}, {Y: 1}}, Inertia: 1}},
		},
	}
	require.NoError(t, follower.Open())
	network, err := predict.Wrap(e, predict.Decoding{MinScore: 0.1})
	require.NoError(t, err)
	p := &Pipeline{
		Predictor: network, Cameras: []Camera{{Name: "a", Source: camera, Lossless: true, Tracker: follower}}, Sinks: []Sink{&seen},
		Wakeup: notify, Confidence: 0.25, MinScore: 0.1, Logger: slog.New(slog.DiscardHandler),
	}
	require.NoError(t, p.Open())
	ended := make(chan struct{})
	var failed error
	var over sync.WaitGroup
	over.Go(func() { failed = p.Run(t.Context(), ended) })
	feed := func(confidence float32, boxes ...sceneBox) {
		t.Helper()
		require.NoError(t, p.SetSettings("a", Settings{Detect: true, Confidence: confidence, Interval: 1}))
		e.boxes = append(e.boxes, boxes...)
		for i := len(e.boxes) - len(boxes); i < len(e.boxes); i++ {
			frame, err := camera.pool.Frame(engine.GRAY8, 64, 64)
			require.NoError(t, err)
			frame.Seq, frame.Captured, frame.Time = uint64(i), capture.Monotonic(), time.Unix(1000, int64(i)*1e8)
			frame.Data[0] = byte(i)
			camera.box.Put(frame)
			for p.Totals()[0].Inferred <= uint64(i) {
				time.Sleep(100 * time.Microsecond)
			}
		}
	}
	count := func() [2]int { return [2]int{follower.LineCount(0).In[2], follower.LineCount(0).Out[2]} }

	feed(0.25, sceneBox{50, .8}, sceneBox{46, .8}, sceneBox{40, .8}, sceneBox{34, .2}, sceneBox{28, .2}, sceneBox{22, .2}, sceneBox{18, .2})
	require.Equal(t, []zone.Kind{zone.New}, seen.kinds, "weak boxes cross and enter nothing")
	feed(0.25, sceneBox{16, .8})
	require.Equal(t, []zone.Kind{zone.New, zone.Enter, zone.Cross}, seen.kinds, "decided when the object is reported")
	feed(0.6, sceneBox{20, .5}, sceneBox{26, .5}, sceneBox{32, .5}, sceneBox{38, .5}, sceneBox{44, .5}, sceneBox{46, .5})
	feed(0.6, slices.Repeat([]sceneBox{{46, .5}}, 10)...)
	require.Equal(t, [2]int{1, 0}, count(), "raised")
	feed(0.15, sceneBox{46, .2})
	require.Equal(t, [2]int{1, 1}, count(), "lowered")
	require.Equal(t, []zone.Kind{zone.New, zone.Enter, zone.Cross, zone.Leave, zone.Cross}, seen.kinds)
	require.InDelta(t, .2, seen.lowest, 1e-6)
	require.Equal(t, 5, seen.boxes)
	// A new object of a low score starts a track under the lowered confidence.
	feed(0.15, sceneBox{12, .3}, sceneBox{12, .3}, sceneBox{12, .3})
	require.Equal(t, zone.New, seen.kinds[5])
	close(ended)
	over.Wait()
	require.NoError(t, failed)
}
