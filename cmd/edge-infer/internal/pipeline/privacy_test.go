package pipeline

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/zone"
)

// TestPrivateObjectsStayHidden: also weak ones, ones that were found a moment ago, lost ones where they are expected, and none of others.
func TestPrivateObjectsStayHidden(t *testing.T) {
	c, err := newConcealer(&Privacy{Labels: []string{"face"}, Score: 0.2}, Region{}, []string{"car", "face"})
	require.NoError(t, err)
	frame := &capture.Frame{Time: time.Unix(1e9, 0), Captured: int64(time.Hour)}
	face := postprocess.Detection{Box: postprocess.Box{X1: 100, Y1: 100, X2: 200, Y2: 150}, Score: 0.21, Class: 1}
	hidden := postprocess.Box{X1: 90, Y1: 90, X2: 210, Y2: 160}
	car := face
	car.Class = 0
	require.Equal(t, []postprocess.Box{hidden}, c.conceal(frame, []postprocess.Detection{face, car}, nil).Boxes)

	advance := func(by time.Duration) {
		frame.Time = frame.Time.Add(by)
		frame.Captured += int64(by)
	}
	advance(holdHidden / 2)
	require.Equal(t, []postprocess.Box{hidden}, c.conceal(frame, nil, nil).Boxes, "not found for a moment")
	moved := face
	moved.Box = postprocess.Box{X1: 110, Y1: 100, X2: 210, Y2: 150}
	require.Equal(t, []postprocess.Box{{X1: 100, Y1: 90, X2: 220, Y2: 160}}, c.conceal(frame, []postprocess.Detection{moved}, nil).Boxes)
	advance(holdHidden + 1)
	weak := face
	weak.Score = 0.19
	require.Empty(t, c.conceal(frame, []postprocess.Detection{weak}, nil).Boxes)

	lost := postprocess.Track{Detection: face, State: postprocess.Lost, Index: -1, Last: frame.Time}
	require.Equal(t, []postprocess.Box{hidden}, c.conceal(frame, nil, []postprocess.Track{lost}).Boxes)
	lost.Last = frame.Time.Add(-time.Minute)
	advance(holdHidden + 1)
	require.Empty(t, c.conceal(frame, nil, []postprocess.Track{lost}).Boxes)

	for range 100 { // as many as are there, however long
		advance(10 * time.Millisecond)
		require.Len(t, c.conceal(frame, []postprocess.Detection{face}, nil).Boxes, 1)
	}
	require.Zero(t, testing.AllocsPerRun(100, func() { c.conceal(frame, []postprocess.Detection{face}, nil) }))
}

func TestWhatIsHidden(t *testing.T) {
	region := []zone.Point{{}, {X: 1}, {Y: 1}}
	none, err := newConcealer(&Privacy{}, Region{}, nil)
	require.NoError(t, err)
	require.Nil(t, none.conceal(&capture.Frame{}, nil, nil))

	c, err := newConcealer(&Privacy{Regions: [][]zone.Point{region}}, Region{Width: 0.5, Height: 1}, []string{"car"})
	require.NoError(t, err)
	require.Equal(t, &Hidden{Regions: [][]zone.Point{region}}, c.conceal(&capture.Frame{}, []postprocess.Detection{{Score: 1}}, nil))

	_, err = newConcealer(&Privacy{Labels: []string{"persn"}}, Region{}, []string{"person"})
	require.EqualError(t, err, `privacy.labels: the model has no class "persn"; edge-infer inspect lists its classes`)

	// Nobody looks for objects around the part that the network is given.
	c, err = newConcealer(&Privacy{Labels: []string{"car"}}, Region{X: 0.25, Y: 0.5, Width: 0.75, Height: 0.25}, []string{"car"})
	require.NoError(t, err)
	require.Equal(t, [][]zone.Point{
		{{}, {X: 1}, {X: 1, Y: 0.5}, {Y: 0.5}}, {{Y: 0.75}, {X: 1, Y: 0.75}, {X: 1, Y: 1}, {Y: 1}}, {{}, {X: 0.25}, {X: 0.25, Y: 1}, {Y: 1}},
	}, c.hidden.Regions)
}

// TestPrivateObjectsAreHiddenForSinks: objects of private classes are hidden also if their class is not reported.
func TestPrivateObjectsAreHiddenForSinks(t *testing.T) {
	camera := &boxCamera{}
	defer camera.pool.Close()
	settings := &Settings{Detect: true, Confidence: 0.25, Interval: 1, Classes: []string{"b"}}
	var hidden []postprocess.Box
	var detections int
	see := sinkFunc(func(in *Result) {
		hidden = append([]postprocess.Box(nil), in.Hidden.Boxes...)
		detections = len(in.Detections)
	})
	p := open(t, newSlowEngine(0, 1), nil, []Sink{see}, Camera{
		Name: "a", Source: camera, Settings: settings, Privacy: &Privacy{Labels: []string{"a", "c", "d", "e", "f"}, Score: 0.1},
	})
	camera.put(t)
	require.True(t, p.gather(&p.requests[0]))
	p.submit(0)
	p.finish(0)
	require.Zero(t, detections)
	require.Len(t, hidden, 1)
	_, err := p.newStreams(nil, []Camera{{Name: "a", Source: camera, Privacy: &Privacy{Labels: []string{"x"}}}}, p.Model().Metadata.Labels)
	require.EqualError(t, err, `camera a: privacy.labels: the model has no class "x"; edge-infer inspect lists its classes`)
}
