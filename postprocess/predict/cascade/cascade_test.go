package cascade_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/onnx"
	"github.com/edge-infer/edge-infer/engine/onnx/testnet"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/head"
	"github.com/edge-infer/edge-infer/postprocess/predict"
	"github.com/edge-infer/edge-infer/postprocess/predict/cascade"
)

// colours is a real classifier: the probabilities that what it sees is red, green or blue.
func colours(t testing.TB, batch int) *predict.Network {
	b := testnet.NewBuilder(1)
	x := b.Input("images", -1, 3, 32, 32)
	x = b.Node("GlobalAveragePool", "/pool", []string{x})
	x = b.Node("Flatten", "/flat", []string{x})
	x = b.Node("Mul", "/sharpen", []string{x, b.Floats("sharpness", []float32{8})})
	b.Output(b.Rename(b.Node("Softmax", "/softmax", []string{x}), "scores"), -1, 3)
	m := b.Model(17)
	m.SetMetadata("task", "classify")
	m.SetMetadata("names", "{0: 'red', 1: 'green', 2: 'blue'}")
	return open(t, m, batch)
}

func open(t testing.TB, m *onnx.Model, batch int) *predict.Network {
	return openNetwork(t, m, batch, head.LayoutAuto)
}

func openAs(t testing.TB, m *onnx.Model, layout head.Layout) *predict.Network {
	return openNetwork(t, m, 1, layout)
}

func openNetwork(t testing.TB, m *onnx.Model, batch int, layout head.Layout) *predict.Network {
	data, err := proto.Marshal(m.Proto)
	require.NoError(t, err)
	o := predict.Options{Model: "colours.onnx", Backend: "onnxruntime=cpu", Log: slog.New(slog.DiscardHandler)}
	o.Decoding.Layout = layout
	o.Bytes, o.MaxBatch, o.Threads = data, batch, 1
	n, err := predict.Open(context.Background(), o)
	require.NoError(t, err)
	return n
}

// scene is an image of coloured boxes, and the first network that knows where they are.
type scene struct {
	engine.Memory
	found  [][]postprocess.Detection // by image
	result predict.BatchResult
	count  int
	closed bool
}

var palette = map[string][3]byte{"red": {0, 0, 255}, "green": {0, 255, 0}, "blue": {255, 0, 0}} // in BGR

// paint draws a box and a detection of that class.
func paint(img *engine.Image, colour string, class int, x, y, w, h int) postprocess.Detection {
	for row := y; row < y+h; row++ {
		for column := x; column < x+w; column++ {
			bgr := palette[colour]
			copy(img.Data[row*img.Stride+3*column:], bgr[:])
		}
	}
	return postprocess.Detection{
		Box:   postprocess.Box{X1: float32(x), Y1: float32(y), X2: float32(x + w), Y2: float32(y + h)},
		Score: 0.9, Class: class,
	}
}

func black(width, height int) engine.Image {
	return engine.Image{Data: make([]byte, 3*width*height), Width: width, Height: height, Stride: 3 * width, Format: engine.BGR}
}

func (s *scene) Model() predict.Model {
	return predict.Model{
		Model:      engine.Model{Path: "scene.onnx", MaxBatch: 8, Metadata: engine.Metadata{Labels: []string{"car", "person"}}},
		Recognised: head.Recognition{Description: head.Description{Task: engine.Detect, Gives: "boxes"}},
	}
}
func (s *scene) Slots() int { return 2 }

func (s *scene) Submit(_ int, images []engine.Image) error {
	s.count = len(images)
	return nil
}

func (s *scene) Tune(predict.Decoding) error { return nil }

func (s *scene) Close() error {
	s.closed = true
	s.Memory.Close()
	return nil
}

func (s *scene) Wait(int) (*predict.BatchResult, error) {
	s.result.Results = s.result.Results[:0]
	for i := range s.count {
		s.result.Results = append(s.result.Results, predict.Result{Detections: append([]postprocess.Detection{}, s.found[i]...)})
	}
	return &s.result, nil
}

// values are the attributes as text.
func values(f *postprocess.Detection) string {
	if f.Detail == nil {
		return ""
	}
	var all []string
	for _, a := range f.Detail.Attributes {
		all = append(all, a.Name+"="+a.Value)
	}
	return strings.Join(all, " ")
}

func TestEveryDetectionIsLookedAt(t *testing.T) {
	one, two := black(200, 100), black(120, 120)
	s := &scene{found: [][]postprocess.Detection{
		{paint(&one, "red", 0, 10, 10, 40, 30), paint(&one, "blue", 1, 60, 20, 30, 60), paint(&one, "green", 0, 120, 50, 60, 40)},
		{paint(&two, "green", 1, 0, 0, 30, 30), paint(&two, "red", 0, 100, 100, 10, 20), paint(&two, "blue", 0, 40, 60, 50, 33)},
	}}
	s.found[1][0].Detail = &postprocess.Detail{Keypoints: []postprocess.Keypoint{{X: 1, Y: 2, Score: 1}}}
	for _, batch := range []int{1, 4, 16} {
		chained := &cascade.Chained{Predictor: s, Stages: []cascade.Stage{
			{Name: "colour", Predictor: colours(t, batch)},
			{Name: "paint", Predictor: colours(t, batch), Classes: []string{"car"}, MinSize: 34, Confidence: 0.5},
		}}
		require.NoError(t, chained.Open())
		require.Equal(t, 1, chained.Slots())
		for range 3 { // what is left of a request must not disturb the next one
			require.NoError(t, chained.Submit(0, []engine.Image{one, two}))
			result, err := chained.Wait(0)
			require.NoError(t, err)
			var got [][]string
			for i := range result.Results {
				var all []string
				for k := range result.Results[i].Detections {
					all = append(all, values(&result.Results[i].Detections[k]))
				}
				got = append(got, all)
			}
			require.Equal(t, [][]string{
				{"colour=red", "colour=blue", "colour=green paint=green"},
				{"colour=green", "", "colour=blue"},
			}, got)
			require.Len(t, result.Results[1].Detections[0].Detail.Keypoints, 1, "what the first network gave is still there")
			first := result.Results[0].Detections[0].Detail.Attributes[0]
			require.Greater(t, first.Score, float32(0.99))
			require.Equal(t, 1, first.Votes)
		}
		require.NoError(t, chained.Submit(0, []engine.Image{one}))
		_, err := chained.Wait(0)
		require.NoError(t, err)
		require.NoError(t, chained.Close())
		require.True(t, s.closed)
		s.Memory = engine.Memory{}
	}
}

// odd is a network whose numbers are no scores.
type odd struct{ predict.Predictor }

var errOdd = &predict.Contradiction{Model: "colour.onnx", Layout: "classify", Images: 30, Reason: "scores that are not from 0 to 1"}

func (o odd) Wait(slot int) (*predict.BatchResult, error) {
	result, err := o.Predictor.Wait(slot)
	if err == nil {
		result.Contradiction = errOdd
	}
	return result, err
}

// What a second network says that contradicts itself is no attribute of anything: the same error ends the work on files.
func TestASecondNetworkThatContradictsItselfIsTold(t *testing.T) {
	one := black(200, 100)
	s := &scene{found: [][]postprocess.Detection{{paint(&one, "red", 0, 10, 10, 40, 30)}}}
	chained := &cascade.Chained{Predictor: s, Stages: []cascade.Stage{{Name: "colour", Predictor: odd{colours(t, 1)}}}}
	require.NoError(t, chained.Open())
	require.NoError(t, chained.Submit(0, []engine.Image{one}))
	_, err := chained.Wait(0)
	require.ErrorIs(t, err, errOdd)
	require.EqualError(t, err, "cascade colour: model colour.onnx is not classify: 30 images in a row had scores that are not from 0 to 1 "+
		"(select another --layout; edge-infer inspect shows the outputs)")
	require.NoError(t, chained.Close())
}

func TestStagesThatCannotBe(t *testing.T) {
	n := colours(t, 1)
	defer n.Close()
	for want, stage := range map[string]cascade.Stage{
		"a cascade has no name": {Predictor: n},
		`cascade colour: first model: label "bus" is not one of the model's: car, person`: {
			Name: "colour", Predictor: n, Classes: []string{"bus"},
		},
		"cascade colour: 33 votes must be 1 to 32": {Name: "colour", Predictor: n, Votes: 33},
		"cascade colour: margin 2 must be 0 to 1":  {Name: "colour", Predictor: n, Margin: 2},
		"cascade colour: model scene.onnx outputs boxes (a cascade needs a classifier, a text reader or an embedding network)": {
			Name: "colour", Predictor: &scene{},
		},
	} {
		require.EqualError(t, (&cascade.Chained{Predictor: &scene{}, Stages: []cascade.Stage{stage}}).Open(), want)
		require.EqualError(t, (&cascade.Secondary{Labels: (&scene{}).Model().Metadata.Labels, Stages: []cascade.Stage{stage}}).Open(), want)
	}
}

// video is one camera whose objects change their colours.
type video struct {
	img   engine.Image
	frame cascade.Frame
}

func newVideo(camera string, objects int) *video {
	f := &video{img: black(640, 480), frame: cascade.Frame{Camera: camera, Time: time.Unix(2e9, 0), Wait: true}}
	for i := range objects {
		f.frame.Tracks = append(f.frame.Tracks, postprocess.Track{ID: uint64(i + 1), State: postprocess.Active, Index: i})
	}
	f.frame.Image = f.img
	return f
}

// show paints the object.
func (f *video) show(track int, colour string) {
	f.frame.Tracks[track].Detection = paint(&f.img, colour, 0, 60*track, 40, 50, 80)
}

func (f *video) next(a *cascade.Secondary, after time.Duration) []uint64 {
	f.frame.Time = f.frame.Time.Add(after)
	return append([]uint64{}, a.Process(&f.frame)...)
}

func attend(t testing.TB, logger *slog.Logger, stages ...cascade.Stage) *cascade.Secondary {
	a := &cascade.Secondary{Stages: stages, Labels: []string{"car", "person"}, Logger: logger}
	require.NoError(t, a.Open())
	return a
}

func known(a *cascade.Secondary, camera string, track uint64) (value string, looks int) {
	for _, said := range a.Attributes(camera, track) {
		value, looks = value+said.Value, said.Votes
	}
	return value, looks
}

func TestLooksVote(t *testing.T) {
	a := attend(t, nil, cascade.Stage{Name: "colour", Predictor: colours(t, 4), Interval: time.Second, Votes: 3})
	defer a.Close()
	f := newVideo("gate", 2)
	f.show(0, "red")
	f.show(1, "green")
	require.Equal(t, []uint64{1, 2}, f.next(a, 0))
	value, looks := known(a, "gate", 1)
	require.Equal(t, "red 1", value+" "+string(rune('0'+looks)))

	require.Empty(t, f.next(a, 400*time.Millisecond), "a second has not passed")
	require.Equal(t, uint64(2), a.Stats()[0].Crops)
	f.show(0, "blue")
	require.Empty(t, f.next(a, 600*time.Millisecond), "one look of two says something else")
	value, looks = known(a, "gate", 1)
	require.Equal(t, "red", value)
	require.Equal(t, 2, looks)
	require.Equal(t, []uint64{1}, f.next(a, time.Second), "two of three do")
	value, _ = known(a, "gate", 1)
	require.Equal(t, "blue", value)
	said := a.Attributes("gate", 1)[0]
	require.InDelta(t, 0.67, said.Score, 0.01, "the looks that said otherwise count")
	require.Equal(t, uint64(6), a.Stats()[0].Crops)
	require.Equal(t, uint64(3), a.Stats()[0].Requests, "both objects in one request")
	require.Empty(t, a.Attributes("gate", 3))
	require.Empty(t, a.Attributes("yard", 1), "the numbers of tracks are a camera's own")
}

func TestObjectsAreForgotten(t *testing.T) {
	a := attend(t, nil, cascade.Stage{Name: "colour", Predictor: colours(t, 4)})
	defer a.Close()
	f := newVideo("gate", 1)
	f.show(0, "red")
	f.next(a, 0)
	tracks := f.frame.Tracks
	tracks[0].State, tracks[0].Index = postprocess.Ended, -1
	f.next(a, time.Second)
	f.frame.Tracks, f.frame.Image = nil, engine.Image{} // the camera is over
	f.next(a, 0)
	value, _ := known(a, "gate", 1)
	require.Equal(t, "red", value, "its last event still says it")
	for range 10 {
		f.next(a, 0)
	}
	require.Empty(t, a.Attributes("gate", 1))
	require.Equal(t, uint64(1), a.Stats()[0].Crops)
}

// What is not wanted, too small, not seen in this frame or unsure is not told.
func TestWhatIsNotLookedAt(t *testing.T) {
	a := attend(t, nil, cascade.Stage{Name: "colour", Predictor: colours(t, 4), Classes: []string{"car"}, MinSize: 20, Confidence: 0.9})
	defer a.Close()
	f := newVideo("gate", 5)
	for i := range f.frame.Tracks {
		f.show(i, "red")
	}
	f.frame.Tracks[0].Class = 1                                                 // a person
	f.frame.Tracks[1].X2 = f.frame.Tracks[1].X1 + 19                            // too narrow
	f.frame.Tracks[2].Index = -1                                                // predicted
	f.frame.Tracks[3].Box = postprocess.Box{X1: 400, Y1: 300, X2: 500, Y2: 400} // black: every colour is as likely
	require.Equal(t, []uint64{5}, f.next(a, 0))
	require.Equal(t, uint64(2), a.Stats()[0].Crops)
	require.Empty(t, a.Attributes("gate", 4))
}

// unsteady is a network whose engine fails.
type unsteady struct {
	predict.Predictor
	fail    bool
	invalid bool // the outputs of every crop
}

func (u *unsteady) Submit(slot int, images []engine.Image) error {
	if u.fail {
		return errors.New("the engine is lost")
	}
	return u.Predictor.Submit(slot, images)
}

func (u *unsteady) Wait(slot int) (*predict.BatchResult, error) {
	result, err := u.Predictor.Wait(slot)
	if err == nil && u.invalid {
		for i := range result.Results {
			result.Results[i].Err = &predict.InvalidOutput{Reason: "scores over 1"}
		}
	}
	return result, err
}

// TestFailuresAreReportedOnceAndTriedAgain: a secondary network that fails or gives NaN sets no attributes. Its first failure is logged,
// and every crop counted.
func TestFailuresAreReportedOnceAndTriedAgain(t *testing.T) {
	for reason, set := range map[string]func(*unsteady, bool){
		"the engine is lost": func(u *unsteady, on bool) { u.fail = on },
		"cascade colour: the network's output is invalid: it has scores over 1": func(u *unsteady, on bool) { u.invalid = on },
	} {
		var log bytes.Buffer
		network := &unsteady{Predictor: colours(t, 2)}
		set(network, true)
		a := attend(t, slog.New(slog.NewTextHandler(&log, nil)), cascade.Stage{Name: "colour", Predictor: network, Interval: time.Second})
		f := newVideo("gate", 3)
		for i := range f.frame.Tracks {
			f.show(i, "green")
		}
		for range 4 {
			require.Empty(t, f.next(a, time.Second))
		}
		require.Equal(t, uint64(12), a.Stats()[0].Failed)
		require.Contains(t, a.Stats()[0].Error, reason)
		set(network, false)
		require.Equal(t, []uint64{1, 2, 3}, f.next(a, time.Second))
		require.Empty(t, a.Stats()[0].Error)
		require.NoError(t, a.Close())
		require.NoError(t, a.Close(), "closing twice does nothing")
		require.Equal(t, 1, strings.Count(log.String(), reason))
		require.Equal(t, 1, strings.Count(log.String(), "secondary network works again"))
	}
}

// Live cameras are not held up: while the network is busy their objects gather, and one request looks at those of all.
func TestManyCamerasShareRequests(t *testing.T) {
	gate := &gated{Predictor: colours(t, 64), begun: make(chan int), goOn: make(chan struct{})}
	a := attend(t, nil, cascade.Stage{Name: "colour", Predictor: gate, Interval: time.Second})
	var videos []*video
	for _, name := range []string{"a", "b", "c", "d"} {
		f := newVideo(name, 10)
		f.frame.Wait = false
		for i := range 10 {
			f.show(i, []string{"red", "green", "blue"}[(i+len(videos))%3])
		}
		videos = append(videos, f)
	}
	videos[0].next(a, 0)
	require.Equal(t, 10, <-gate.begun)
	for _, f := range videos[1:] {
		f.next(a, 0) // returns although the network is busy
	}
	gate.goOn <- struct{}{}
	require.Equal(t, 30, <-gate.begun, "those of three cameras are one request")
	gate.goOn <- struct{}{}
	videos[0].frame.Wait = true
	go func() { <-gate.begun; gate.goOn <- struct{}{} }()
	videos[0].next(a, 2*time.Second)
	for at, f := range videos {
		for i := range 10 {
			value, _ := known(a, f.frame.Camera, uint64(i+1))
			require.Equal(t, []string{"red", "green", "blue"}[(i+at)%3], value, "camera %d object %d", at, i)
		}
	}
	require.NoError(t, a.Close())
}

// gated runs a request when it is told to.
type gated struct {
	predict.Predictor
	begun chan int
	goOn  chan struct{}
}

func (g *gated) Submit(slot int, images []engine.Image) error {
	g.begun <- len(images)
	<-g.goOn
	return g.Predictor.Submit(slot, images)
}

// TestAHangingNetworkIsAFailure: it is reported after ten seconds, once, while frames go on; and it works again when it answers.
func TestAHangingNetworkIsAFailure(t *testing.T) {
	network := colours(t, 8) // its goroutines must not be in the bubble
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		gate := &gated{Predictor: network, begun: make(chan int), goOn: make(chan struct{})}
		a := attend(t, slog.New(slog.NewTextHandler(&log, nil)), cascade.Stage{Name: "colour", Predictor: gate, Interval: time.Second})
		f := newVideo("gate", 2)
		f.frame.Wait = false
		f.show(0, "red")
		f.show(1, "green")
		f.next(a, 0)
		require.Equal(t, 2, <-gate.begun)
		time.Sleep(9 * time.Second)
		require.Empty(t, a.Stats()[0].Error)
		time.Sleep(2 * time.Second)
		for range 3 {
			f.next(a, time.Second) // returns although the network hangs
			require.Equal(t, "no result for 10s", a.Stats()[0].Error)
			require.Equal(t, uint64(2), a.Stats()[0].Failed)
		}
		close(gate.goOn)
		go func() {
			for range gate.begun {
			}
		}()
		require.Eventually(t, func() bool { f.next(a, time.Second); return a.Stats()[0].Error == "" }, time.Minute, time.Second)
		require.NoError(t, a.Close())
		close(gate.begun)
		require.Equal(t, 1, strings.Count(log.String(), "no result for 10s"))
		require.Equal(t, 1, strings.Count(log.String(), "secondary network works again"))
	})
}

// requireCount requires how often a text is in a log.
func requireCount(t *testing.T, count int, log *bytes.Buffer, text string) {
	t.Helper()
	require.Equal(t, count, strings.Count(log.String(), text), "%s: %s", text, log)
}

// TestASlowNetworkIsReported: while it takes longer for a request than objects may wait, crops are missed and counted; it is logged once,
// and once when it keeps up again.
func TestASlowNetworkIsReported(t *testing.T) {
	network := colours(t, 8) // its goroutines must not be in the bubble
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		gate := &gated{Predictor: network, begun: make(chan int), goOn: make(chan struct{})}
		var pause atomic.Int64
		pause.Store(int64(5 * time.Second))
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for range gate.begun {
				time.Sleep(time.Duration(pause.Load()))
				gate.goOn <- struct{}{}
			}
		}()
		a := attend(t, slog.New(slog.NewTextHandler(&log, nil)), cascade.Stage{Name: "colour", Predictor: gate, Interval: time.Second})
		f := newVideo("gate", 2)
		f.frame.Wait = false
		f.show(0, "red")
		f.show(1, "green")
		frames := func(count int) {
			for range count {
				begun := time.Now()
				f.next(a, 100*time.Millisecond)
				require.Zero(t, time.Since(begun), "the frame loop waits")
				time.Sleep(100 * time.Millisecond)
			}
		}
		frames(305)
		stats := a.Stats()[0]
		require.True(t, stats.Slow)
		require.False(t, stats.Hangs)
		require.Empty(t, stats.Error)
		require.InDelta(t, 2*30/5, stats.Crops, 2)
		require.Greater(t, stats.Missed, stats.Crops, "of five crops of an object three or four")
		require.Less(t, time.Since(stats.Last), 6*time.Second)
		requireCount(t, 1, &log, "secondary network is too slow, crops are missed")
		pause.Store(int64(100 * time.Millisecond))
		frames(250)
		require.False(t, a.Stats()[0].Slow)
		require.Zero(t, a.Stats()[0].Failed)
		requireCount(t, 1, &log, "secondary network is too slow, crops are missed")
		requireCount(t, 1, &log, "secondary network keeps up again")
		require.NoError(t, a.Close())
		close(gate.begun)
		<-ended
	})
}

// TestCloseAbandonsWhatHangs: Close takes two seconds although two networks do not return, and closes the one that does.
func TestCloseAbandonsWhatHangs(t *testing.T) {
	networks := []*predict.Network{colours(t, 8), colours(t, 8), colours(t, 8)} // their goroutines must not be in the bubble
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		goOn := make(chan struct{})
		var stages []cascade.Stage
		for i, name := range []string{"colour", "state", "kind"} {
			s := cascade.Stage{Name: name, Predictor: networks[i], Interval: time.Second}
			if i < 2 {
				s.Predictor = &gated{Predictor: networks[i], begun: make(chan int, 1), goOn: goOn}
			}
			stages = append(stages, s)
		}
		a := attend(t, slog.New(slog.NewTextHandler(&log, nil)), stages...)
		f := newVideo("gate", 1)
		f.frame.Wait = false
		f.show(0, "red")
		f.next(a, 0)
		require.Eventually(t, func() bool { return a.Stats()[2].Crops == 1 }, time.Second, time.Millisecond)
		begun := time.Now()
		require.NoError(t, a.Close())
		require.Equal(t, 2*time.Second, time.Since(begun))
		requireCount(t, 2, &log, "secondary network hangs, it is not closed")
		require.ErrorIs(t, networks[2].Submit(0, []engine.Image{f.img}), engine.ErrClosed)
		require.NoError(t, a.Close())
		close(goOn)
		synctest.Wait()
		require.ErrorIs(t, networks[0].Submit(0, []engine.Image{f.img}), engine.ErrClosed, "closed when it returns")
	})
}

// TestAVideoDoesNotWaitForAHangingNetwork: a frame that waits goes on after ten seconds, and the next ones at once.
func TestAVideoDoesNotWaitForAHangingNetwork(t *testing.T) {
	network := colours(t, 8) // its goroutines must not be in the bubble
	synctest.Test(t, func(t *testing.T) {
		gate := &gated{Predictor: network, begun: make(chan int, 10), goOn: make(chan struct{})}
		a := attend(t, slog.New(slog.DiscardHandler), cascade.Stage{Name: "colour", Predictor: gate, Interval: time.Second})
		f := newVideo("gate", 1)
		f.show(0, "red")
		begun := time.Now()
		f.next(a, 0)
		require.Equal(t, 10*time.Second, time.Since(begun))
		for range 5 {
			f.next(a, time.Second)
		}
		require.Equal(t, 10*time.Second, time.Since(begun))
		require.Positive(t, a.Stats()[0].Missed)
		close(gate.goOn)
		synctest.Wait()
		require.False(t, a.Stats()[0].Hangs)
		require.Equal(t, []uint64{1}, f.next(a, time.Second), "results count again")
		require.NoError(t, a.Close())
	})

	network = colours(t, 8)
	synctest.Test(t, func(t *testing.T) { // the end of the run
		gate := &gated{Predictor: network, begun: make(chan int, 10), goOn: make(chan struct{})}
		a := attend(t, slog.New(slog.DiscardHandler), cascade.Stage{Name: "colour", Predictor: gate, Interval: time.Second})
		f := newVideo("gate", 1)
		f.show(0, "red")
		begun := time.Now()
		time.AfterFunc(time.Second, a.StopWaiting)
		f.next(a, 0)
		require.Equal(t, time.Second, time.Since(begun))
		close(gate.goOn)
		require.NoError(t, a.Close())
	})
}
