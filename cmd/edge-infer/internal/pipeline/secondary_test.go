package pipeline

import (
	"bytes"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/head"
	"github.com/edge-infer/edge-infer/postprocess/predict"
	"github.com/edge-infer/edge-infer/postprocess/predict/cascade"
)

// colours knows an attribute of every track from its second frame on.
type colours struct {
	frames  int
	changed []uint64
	scratch [1]postprocess.Attribute
	vector  [2]float32
}

func (c *colours) Process(f *cascade.Frame) []uint64 {
	c.frames++
	c.changed = c.changed[:0]
	if c.frames == 5 {
		for i := range f.Tracks {
			c.changed = append(c.changed, f.Tracks[i].ID)
			f.OnEmbedding(f.Tracks[i].ID, c.vector[:])
		}
	}
	return c.changed
}

func (c *colours) Attributes(_ string, track uint64) []postprocess.Attribute {
	c.scratch[0] = postprocess.Attribute{Name: "colour", Value: "red", Votes: int(track)}
	return c.scratch[:]
}

func (c *colours) Embedding(string, uint64) []float32 {
	c.vector = [2]float32{1, 0}
	return c.vector[:]
}

// secondaryLoop returns a frame loop with secondary networks, and what passes one frame through it.
func secondaryLoop(t *testing.T, networks SecondaryNetworks, labels []string, sinks []Sink) (p *Pipeline, frame func()) {
	notify := make(signal, 1)
	camera := &boxCamera{box: capture.Mailbox{Notify: notify.Signal}}
	t.Cleanup(func() { camera.pool.Close() })
	own := []string{"a", "b", "c", "d", "e", "f"}
	tracker := &Tracker{Labels: own, Confidence: 0.25}
	require.NoError(t, tracker.Open())
	p = open(t, newSlowEngine(0, 1), notify, sinks, Camera{Name: "a", Source: camera, Tracker: tracker})
	p.Secondary = &SecondaryStage{Networks: networks, Labels: labels}
	require.NoError(t, p.Open())
	return p, func() {
		camera.put(t)
		require.True(t, p.gather(&p.requests[0]))
		p.submit(0)
		p.finish(0)
	}
}

// snapshots of results, as a sink sees them.
type observer struct{ seen []string }

func (o *observer) Frame(in *Result) {
	text := fmt.Sprint(in.Seq, in.Time.UnixNano(), in.Detections, in.IDs, in.Frame != nil)
	for i := range in.Tracks {
		text += fmt.Sprint(in.Tracks[i].ID, in.Tracks[i].Box, in.Attributes.Of(in.Tracks[i].ID))
	}
	if in.Events != nil {
		for _, e := range in.Events.Events {
			text += fmt.Sprint(e.Kind, e.Object.Track, in.Attributes.Of(e.Object.Track), in.Attributes.Embedding(e.Object.Track))
		}
	}
	o.seen = append(o.seen, text)
}

// TestResultsAreCompleteBeforeSinksSeeThem: every sink sees the same attributes and events, in whatever order the sinks are.
func TestResultsAreCompleteBeforeSinksSeeThem(t *testing.T) {
	observers := []*observer{{}, {}, {}, {}}
	var sinks []Sink
	for _, o := range observers {
		sinks = append(sinks, o)
	}
	attributed := 0
	sinks = append(sinks, sinkFunc(func(in *Result) {
		for _, e := range in.Events.Events {
			require.Equal(t, "red", in.Attributes.Of(e.Object.Track)[0].Value)
			require.EqualValues(t, e.Object.Track, in.Attributes.Of(e.Object.Track)[0].Votes)
			require.Equal(t, []float32{1, 0}, in.Attributes.Embedding(e.Object.Track))
			attributed++
		}
	}))
	p, frame := secondaryLoop(t, new(colours), []string{"a", "b", "c", "d", "e", "f"}, nil)
	for range 40 {
		rand.Shuffle(len(sinks), func(i, j int) { sinks[i], sinks[j] = sinks[j], sinks[i] })
		p.sinks = sinks
		frame()
	}
	p.finishObjects((*p.streams.Load())[0]) // the last events have attributes as well
	for _, o := range observers {
		require.Equal(t, observers[0].seen, o.seen)
	}
	require.Len(t, observers[0].seen, 41)
	require.Positive(t, attributed)
}

func TestOtherModelsHaveNoSecondaryNetworks(t *testing.T) {
	networks := new(colours)
	_, frame := secondaryLoop(t, networks, []string{"person"}, []Sink{sinkFunc(func(in *Result) {
		require.Nil(t, in.Attributes)
		require.Nil(t, in.Attributes.Of(1))
	})})
	frame()
	require.Zero(t, networks.frames)
}

func TestSecondaryNetworksAllocateNothingPerFrame(t *testing.T) {
	_, frame := secondaryLoop(t, new(colours), []string{"a", "b", "c", "d", "e", "f"}, []Sink{discard{}})
	for range 300 {
		frame()
	}
	require.Zero(t, testing.AllocsPerRun(1000, frame))
}

// delayed is a classifier to which everything is red. It takes a time for each request, and never returns while that is negative.
type delayed struct {
	engine.Memory
	took   atomic.Int64
	goOn   chan struct{} // releases a request that does not return
	count  int
	result predict.BatchResult
}

func (d *delayed) Model() predict.Model {
	return predict.Model{
		Model:      engine.Model{Path: "colour.onnx", MaxBatch: 8, Metadata: engine.Metadata{Labels: []string{"red"}}},
		Recognised: head.Recognition{Description: head.Description{Task: engine.Classify}, Classes: 1},
	}
}
func (d *delayed) Slots() int                  { return 1 }
func (d *delayed) Tune(predict.Decoding) error { return nil }

func (d *delayed) Submit(_ int, images []engine.Image) error {
	d.count = len(images)
	return nil
}

func (d *delayed) Wait(int) (*predict.BatchResult, error) {
	if took := time.Duration(d.took.Load()); took < 0 {
		<-d.goOn
	} else {
		time.Sleep(took)
	}
	d.result.Results = d.result.Results[:0]
	for range d.count {
		d.result.Results = append(d.result.Results, predict.Result{Detections: []postprocess.Detection{{Score: 1}}})
	}
	return &d.result, nil
}

func (d *delayed) Close() error {
	d.Memory.Close()
	return nil
}

// TestASecondaryNetworkThatDoesNotReturn runs the frame loop with a network that hangs, recovers, is slow, keeps up again, and hangs at the
// end: no frame waits for it, each change is logged once, and Close leaves it behind.
func TestASecondaryNetworkThatDoesNotReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		labels := []string{"a", "b", "c", "d", "e", "f"}
		network := &delayed{goOn: make(chan struct{})}
		network.took.Store(-1)
		var log bytes.Buffer
		logged := func(text string, count int) {
			t.Helper()
			require.Equal(t, count, strings.Count(log.String(), text), "%s: %s", text, &log)
		}
		secondary := &cascade.Secondary{
			Labels: labels, Logger: slog.New(slog.NewTextHandler(&log, nil)),
			Stages: []cascade.Stage{{Name: "colour", Predictor: network, Interval: time.Second}},
		}
		require.NoError(t, secondary.Open())
		attributed := 0
		p, frame := secondaryLoop(t, secondary, labels, []Sink{sinkFunc(func(in *Result) {
			for i := range in.Tracks {
				attributed += len(in.Attributes.Of(in.Tracks[i].ID))
			}
		})})
		camera := (*p.streams.Load())[0].Source.(*boxCamera)
		frames := func(seconds int) cascade.Stats {
			t.Helper()
			for range 2 * seconds {
				camera.seq = 1 // the object stays where it is
				begun := time.Now()
				frame()
				require.Zero(t, time.Since(begun), "the frame loop waits")
				time.Sleep(500 * time.Millisecond)
			}
			return secondary.Stats()[0]
		}

		stats := frames(9)
		require.False(t, stats.Hangs)
		stats = frames(11)
		require.True(t, stats.Hangs)
		require.EqualValues(t, 1, stats.Failed)
		require.Positive(t, stats.Missed)
		require.True(t, stats.Last.IsZero())
		require.Zero(t, attributed)
		logged("secondary network hangs, attributes are not updated", 1)

		network.took.Store(0)
		network.goOn <- struct{}{}
		stats = frames(25)
		require.False(t, stats.Hangs || stats.Slow)
		require.Empty(t, stats.Error)
		require.InDelta(t, 26, stats.Crops, 3)
		require.Less(t, time.Since(stats.Last), 3*time.Second)
		require.Positive(t, attributed)
		logged("secondary network works again", 1)
		logged("too slow", 0)

		network.took.Store(int64(4 * time.Second))
		stats = frames(25)
		require.True(t, stats.Slow)
		require.False(t, stats.Hangs)
		network.took.Store(0)
		stats = frames(35)
		require.False(t, stats.Slow)
		logged("secondary network is too slow, crops are missed", 1)
		logged("secondary network keeps up again", 1)

		network.took.Store(-1)
		frames(5)
		begun := time.Now()
		require.NoError(t, secondary.Close())
		require.LessOrEqual(t, time.Since(begun), 2*time.Second)
		logged("secondary network hangs, it is not closed", 1)
		network.goOn <- struct{}{} // for the bubble; the program ends
	})
}
