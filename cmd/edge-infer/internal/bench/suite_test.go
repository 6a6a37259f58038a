package bench

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/enginetest"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// small is a benchmark of little work.
func small(frames uint64) *Bench {
	b := newTestBench()
	b.Cameras, b.Images, b.Width, b.Height, b.Level = 1, 2, 320, 240, -1
	b.Warmup, b.Duration = extent{frames: 2}, extent{frames: frames}
	b.Contenders[0].Engine = "onnxruntime=cpu"
	b.Contenders[0].Config.Engine.Backend = "onnxruntime=cpu"
	return b
}

// valid checks a document against the published schema.
func valid(t *testing.T, data []byte) {
	t.Helper()
	schema, err := jsonschema.NewCompiler().Compile("schema.json")
	require.NoError(t, err)
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	require.NoError(t, err)
	require.NoError(t, schema.Validate(document))
}

// Every part, every drive, two batch sizes: the document matches its schema.
func TestSuite(t *testing.T) {
	b := small(8)
	b.What, b.Drives, b.Batches, b.Rate, b.Cameras = []string{"all"}, []string{"closed", "flat-out", "paced"}, []int{1, 2}, 5, 2
	dir := t.TempDir()
	b.Output = filepath.Join(dir, "a.json")
	b.Require = "p99>=0ms,throughput@loop>=0.001,lost<=0"
	require.NoError(t, b.Check())
	report, err := b.Run(t.Context())
	require.NoError(t, err)
	require.NoError(t, b.Judge(report))
	data, err := os.ReadFile(b.Output)
	require.NoError(t, err)
	valid(t, data)
	require.Len(t, report.Results, 2*(1+3+3))
	seen := map[string]bool{}
	for i := range report.Results {
		r := &report.Results[i]
		seen[r.Name()] = true
		require.GreaterOrEqual(t, r.Frames, uint64(8), r.Name())
		require.Positive(t, r.P50, r.Name())
		require.LessOrEqual(t, r.P50, r.P90)
		require.LessOrEqual(t, r.P99, r.Max)
		require.NotEmpty(t, r.Curve)
		require.Positive(t, r.Memory)
		require.NotNil(t, r.Others)
		if r.Drive != Paced {
			require.InDelta(t, r.Batch, r.Filled, 0, r.Name())
		}
	}
	require.Len(t, seen, len(report.Results), "names tell the runs apart")
	read, err := ParseReport(data)
	require.NoError(t, err)
	same := Compare(read, read)
	require.Len(t, same.Rows, len(report.Results))
	require.Empty(t, same.Only)
	for _, row := range same.Rows {
		require.InDelta(t, 1, row.Figures[0].Ratio, 0, row.Run)
	}
}

// Images and requests are counted together, whenever somebody asks.
func TestImagesAndRequestsAreCountedTogether(t *testing.T) {
	r := &requests{Predictor: idle{}}
	var submitting sync.WaitGroup
	submitting.Go(func() {
		for range 100_000 {
			_ = r.Submit(0, make([]engine.Image, 1))
		}
	})
	for made := uint64(0); made < 100_000; {
		var images uint64
		made, images = r.counts()
		require.Equal(t, made, images)
	}
	submitting.Wait()
}

// idle is a predictor that accepts every image.
type idle struct{ predict.Predictor }

func (idle) Submit(int, []engine.Image) error { return nil }

// A paced run whose engine cannot keep up shows the wait: latency grows from the moments at which requests were due.
func TestPacedLatencyCountsFromTheDueMoment(t *testing.T) {
	b := small(20)
	b.What, b.Rate = []string{"transfers"}, 1e5
	require.NoError(t, b.Check())
	report, err := b.Run(t.Context())
	require.NoError(t, err)
	r := report.Results[0]
	require.Equal(t, Paced, r.Drive)
	require.InEpsilon(t, 1e5, r.Rate, 1e-9)
	each := 1e3 / r.FPS // milliseconds
	require.Greater(t, r.Max, 15*each, "the last one waited for all before it")
}

// A network without an image input is measured on tensors, one request at a time.
func TestAnyNetwork(t *testing.T) {
	model := filepath.Join(t.TempDir(), "tensors.onnx")
	require.NoError(t, os.WriteFile(model, enginetest.Network(t, "tensors").Bytes, 0o600))
	b := small(50)
	b.Contenders[0].Config.Model.Path = model
	require.NoError(t, b.Check())
	_, err := b.Run(t.Context())
	require.EqualError(t, err, `input "values" leaves side 3 open: specify its size, as in --shape values=1,2,64`)
	b.Shapes = []string{"values=1,2,16"}
	require.NoError(t, b.Check())
	report, err := b.Run(t.Context())
	require.NoError(t, err)
	require.Len(t, report.Results, 2)
	require.Equal(t, Engine, report.Results[0].What)
	require.Equal(t, Transfers, report.Results[1].What)
	require.Equal(t, Closed, report.Results[1].Drive)
	require.GreaterOrEqual(t, report.Results[1].Frames, uint64(50))

	b.What = []string{"loop"}
	_, err = b.Run(t.Context())
	require.ErrorContains(t, err, "the model takes no images")
}

// Contenders stand beside the last one; one that this machine cannot run is told, and the others are measured.
func TestContenders(t *testing.T) {
	b := small(6)
	second, third := config.Default(), config.Default()
	second.Engine.Backend, third.Engine.Backend = "tensorrt", "onnxruntime"
	third.Engine.Threads = 1
	third.Engine.Library = b.Contenders[0].Config.Engine.Library
	b.Contenders = append(b.Contenders, Contender{"tensorrt", second}, Contender{"onnxruntime", third})
	second.Engine.Library = filepath.Join(t.TempDir(), "libnvinfer.so.10")
	b.What = []string{"transfers"}
	require.NoError(t, b.Check())
	report, err := b.Run(t.Context())
	require.ErrorContains(t, err, "tensorrt: ")
	require.Len(t, report.Results, 2)
	first, last := report.Results[0], report.Results[1]
	require.InEpsilon(t, first.FPS/last.FPS, first.SpeedUp, 1e-9)
	require.InDelta(t, 1, last.SpeedUp, 0)
	require.Nil(t, last.Agreement)
	require.NotNil(t, first.Agreement)
	require.InDelta(t, 1, *first.Agreement.Rate, 0)
	require.Equal(t, 2, first.Agreement.Images)
	data, err := json.Marshal(report)
	require.NoError(t, err)
	valid(t, data)
	var text bytes.Buffer
	require.NoError(t, report.Print(&text))
	require.Contains(t, text.String(), "1.0000")
}

// --wait-idle gives up after its time.
func TestWaitIdleGivesUp(t *testing.T) {
	stop := make(chan struct{}, 1)
	defer func() { stop <- struct{}{} }()
	for range 2 { // a CPU is busy, whatever runs beside
		go func() {
			for {
				if len(stop) > 0 {
					return
				}
			}
		}()
	}
	b := small(1)
	b.WaitIdle = time.Millisecond
	_, err := b.Run(t.Context())
	require.ErrorContains(t, err, "the machine is still ")
}

func TestExtent(t *testing.T) {
	var e extent
	for text, want := range map[string]extent{
		"500ms": {time: 500 * time.Millisecond}, "24576x": {frames: 24576}, "0s": {},
	} {
		require.NoError(t, e.Set(text))
		require.Equal(t, want, e, text)
	}
	for _, text := range []string{"", "x", "0x", "-1s", "12", "1e3x", "-5x"} {
		require.EqualError(t, e.Set(text), "must be a time like 10s or a number of frames like 5000x", text)
	}
}
