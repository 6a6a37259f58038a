package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/capture/scene"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/predict"
	"github.com/edge-infer/edge-infer/postprocess/zone"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testPatience is how long a test waits for what must happen.
const testPatience = 30 * time.Second

// stage is a whole run without a network: demo cameras, the frame loop with tracking, and an engine that knows the truth.
type stage struct {
	pipeline *pipeline.Pipeline
	belts    []*belt
	started  time.Time
	truths   [][]scene.Part // of the frames on their way, oldest first; frame goroutine only

	mutex     sync.Mutex
	analytics map[string]zone.Config
	saves     int
	readOnly  error
	published map[string]map[uint64][]postprocess.Detection // by camera and sequence number
	server    atomic.Pointer[Server]                        // gets every frame
}

// bare is the name of a stage's camera that nothing is to be followed or counted at.
const bare = "bare"

// belt is a demo camera.
type belt struct {
	silent atomic.Bool // gives no frames any more
	stage  *stage
	name   string
	runsOn string   // hardware, as the status tells it
	labels []string // and those of the camera's network, with the names of its keypoints
	points []string
	scene  scene.Scene
	pause  time.Duration
	next   time.Time
	frame  int
	memory [4][]byte
}

func yard() zone.Config {
	return zone.Config{
		Zones: []zone.Zone{{
			Name: "inspection", Points: []zone.Point{{X: 0.55, Y: 0.1}, {X: 0.95, Y: 0.1}, {X: 0.95, Y: 0.9}, {X: 0.55, Y: 0.9}},
		}},
		Lines: []zone.Line{{Name: "gate", From: zone.Point{X: 0.4, Y: 0.98}, To: zone.Point{X: 0.4, Y: 0.02}}},
	}
}

// newStage makes a stage of cameras with images of that size.
func newStage(t testing.TB, width, height, rate int, names ...string) *stage {
	s := &stage{started: time.Now(), analytics: map[string]zone.Config{}, published: map[string]map[uint64][]postprocess.Detection{}}
	notify := new(capture.Wakeup)
	s.pipeline = &pipeline.Pipeline{
		Predictor: &seer{
			stage: s,
			slots: make([]predict.BatchResult, 2),
		}, Confidence: 0.25, MinScore: 0.1, Wakeup: notify,
		Logger: slog.New(slog.DiscardHandler),
	}
	for i, name := range names {
		b := &belt{
			stage: s, name: name, runsOn: "Orin (sm_87)", labels: scene.Labels(), pause: time.Second / time.Duration(rate),
			scene: scene.Scene{Width: width, Height: height, Rate: float64(rate), Seed: uint64(i + 1)},
		}
		require.NoError(t, b.scene.Open())
		for k := range b.memory {
			b.memory[k] = make([]byte, 3*width*height)
		}
		s.belts = append(s.belts, b)
		s.published[name] = map[uint64][]postprocess.Detection{}
		if name == bare {
			s.pipeline.Cameras = append(s.pipeline.Cameras, pipeline.Camera{Name: name, Source: b})
			continue
		}
		s.analytics[name] = yard()
		follower := &pipeline.Tracker{Config: yard(), Labels: scene.Labels(), Confidence: 0.25}
		require.NoError(t, follower.Open())
		s.pipeline.Cameras = append(s.pipeline.Cameras, pipeline.Camera{Name: name, Source: b, Tracker: follower})
	}
	s.pipeline.Sinks = []pipeline.Sink{s}
	require.NoError(t, s.pipeline.Open())
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() { _ = s.pipeline.Run(ctx, nil) })
	done.Go(func() {
		ticker := time.NewTicker(time.Second / time.Duration(rate) / 4)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			notify.Signal()
		}
	})
	t.Cleanup(func() {
		cancel()
		done.Wait()
	})
	return s
}

// Take implements pipeline.Source.
func (b *belt) Take() (capture.Frame, bool) {
	now := time.Now()
	if now.Before(b.next) || b.silent.Load() {
		return capture.Frame{}, false
	}
	b.next = now.Add(b.pause)
	memory := b.memory[b.frame%len(b.memory)]
	truth, err := b.scene.Draw(b.frame, memory, 3*b.scene.Width, nil)
	if err != nil {
		panic(err)
	}
	b.stage.truths = append(b.stage.truths, truth)
	frame := capture.Frame{
		Data: memory, Width: b.scene.Width, Height: b.scene.Height, Stride: 3 * b.scene.Width, Seq: uint64(b.frame),
		Captured: capture.Monotonic(), Time: now,
	}
	b.frame++
	return frame, true
}

// see appends what is there in the oldest frame on its way.
func (s *stage) see(dst []postprocess.Detection) []postprocess.Detection {
	truth := s.truths[0]
	s.truths = s.truths[1:]
	for _, part := range truth {
		if part.Visible < 0.5 {
			continue
		}
		dst = append(dst, postprocess.Detection{
			Box:   postprocess.Box{X1: float32(part.X0), Y1: float32(part.Y0), X2: float32(part.X1), Y2: float32(part.Y1)},
			Score: float32(0.97 - 0.2*(1-part.Visible) - 0.01*float64(part.ID%5)), Class: int(part.Class),
		})
	}
	return dst
}

// Frame implements pipeline.Sink: it remembers what is published, and has the server see it.
func (s *stage) Frame(in *pipeline.Result) {
	if server := s.server.Load(); server != nil {
		server.Frame(in)
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.published[in.Camera][in.Seq] = append([]postprocess.Detection(nil), in.Detections...)
}

// Status implements Source.
func (s *stage) Status() Status {
	status := Status{
		Device: "line-4", Version: "1.0.0", Started: s.started, Broker: "connected to tcp://127.0.0.1:1883",
		Engine: Engine{
			Backend: "tensorrt", Version: "10.3.0", Reason: "first choice, engine plan from the cache", Device: "Orin (sm_87)",
			Model: "parts-320.onnx", Task: "detect", Precision: "fp16", Width: 320, Height: 320, MaxBatch: 4, Labels: scene.Labels(),
			Inference: s.pipeline.InferenceTime(),
		},
		Readings: []Reading{
			{"temperature", "cpu-thermal", 51.5, "celsius"},
			{"temperature", "gpu-thermal", 49, "celsius"},
			{"power", "VDD_IN", 7.42, "watts"},
			{"load", "gpu", 0.38, "ratio"},
		},
		Queues: []Queue{{"detections", 4211, 4203, 0, 7, 1}, {"state", 310, 288, 22, 0, 0}, {"events", 96, 96, 0, 0, 0}},
	}
	totals := s.pipeline.Totals()
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for i, b := range s.belts {
		status.Cameras = append(status.Cameras, Camera{
			Capture: capture.Stats{
				Name: b.name, URI: "demo", State: capture.Running, LastImage: time.Now(), Captured: totals[i].Inferred, FPS: totals[i].FPS,
				Width: b.scene.Width, Height: b.scene.Height,
			},
			Pipeline: totals[i], Analytics: s.analytics[b.name], Tracked: b.name != bare, Hardware: b.runsOn,
			Labels: b.labels, Points: b.points, Settings: Settings{Detect: true, Threshold: 0.25, Interval: 1},
		})
	}
	return status
}

var _ Zones = (*stage)(nil)

// Get implements Zones.
func (s *stage) Get(camera string) (zone.Config, string, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.analytics[camera], fmt.Sprint(s.saves), nil
}

// Set implements Zones.
func (s *stage) Set(camera, version string, analytics zone.Config) (string, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if version != "" && version != fmt.Sprint(s.saves) {
		return "", ErrOutdated
	}
	if len(analytics.Zones) > 3 {
		return "", errors.New("write /var/lib/edge-infer/zones.yaml: no space left on device")
	}
	s.analytics[camera] = analytics
	s.saves++
	return fmt.Sprint(s.saves), nil
}

// Writable implements Zones.
func (s *stage) Writable() error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.readOnly
}

func (s *stage) kept(camera string) zone.Config {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.analytics[camera]
}

// seer is a predictor that answers after a few milliseconds with what is there.
type seer struct {
	stage *stage
	slots []predict.BatchResult
	count int
}

func (p *seer) Slots() int { return len(p.slots) }

func (p *seer) Model() predict.Model {
	return predict.Model{Model: engine.Model{MaxBatch: 4, Metadata: engine.Metadata{Labels: scene.Labels()}}}
}

func (p *seer) Submit(slot int, images []engine.Image) error {
	p.slots[slot].Results = make([]predict.Result, len(images))
	return nil
}

func (p *seer) Wait(slot int) (*predict.BatchResult, error) {
	p.count++
	time.Sleep(7*time.Millisecond + time.Duration(p.count*7919%13)*100*time.Microsecond)
	for i := range p.slots[slot].Results {
		p.slots[slot].Results[i].Detections = p.stage.see(nil)
	}
	return &p.slots[slot], nil
}

// serve opens and runs a server that sees the stage's frames, until the test ends or stop is called.
func (s *stage) serve(t testing.TB, server *Server) (stop func()) {
	stop = serve(t, server, s)
	s.server.Store(server)
	t.Cleanup(func() { s.server.CompareAndSwap(server, nil) })
	return stop
}

// serve opens and runs a server until the test ends or stop is called.
func serve(t testing.TB, server *Server, source Source) (stop func()) {
	if server.Address == "" {
		server.Address = "127.0.0.1:0"
	}
	if server.Logger == nil {
		server.Logger = slog.New(slog.DiscardHandler)
	}
	server.Source = source
	require.NoError(t, server.Open())
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- server.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-done:
			require.NoError(t, err)
		case <-time.After(testPatience):
			require.Fail(t, "the server does not stop")
		}
		require.NoError(t, server.Close())
	})
	t.Cleanup(stop)
	return stop
}

// freeAddress is one that a server can take, give up and take again.
func freeAddress(t testing.TB) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	return listener.Addr().String()
}
