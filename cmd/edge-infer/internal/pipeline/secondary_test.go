package pipeline

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/postprocess"
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
func secondaryLoop(t *testing.T, networks *colours, labels []string, sinks []Sink) (p *Pipeline, frame func()) {
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
		p.Sinks = sinks
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
