package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/enginetest"
	"github.com/edge-infer/edge-infer/engine/kserve"
	"github.com/edge-infer/edge-infer/engine/kserve/server"
	"github.com/edge-infer/edge-infer/engine/onnxruntime"
	"github.com/edge-infer/edge-infer/engine/triton"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// secret is long enough for a token.
const secret = "secret-secret-secret"

var quiet = slog.New(slog.DiscardHandler)

// run serves the test network until the test ends, and gives its address.
func run(t *testing.T, change func(*Serve)) string {
	path := filepath.Join(t.TempDir(), "image.onnx")
	require.NoError(t, os.WriteFile(path, enginetest.Network(t, "image").Bytes, 0o600))
	c := config.Default()
	c.Model.Path, c.Engine.Backend = path, "onnxruntime"
	started := make(chan string, 1)
	s := &Serve{
		Listen: []string{"127.0.0.1:0"}, Queue: 8, Connections: 8, Release: "1.2", Config: c, Logger: quiet,
		Started: func(_, _ string, addresses []string) { started <- addresses[0] },
	}
	if change != nil {
		change(s)
	}
	require.NoError(t, s.Check())
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	select {
	case address := <-started:
		return address
	case err := <-ended:
		ended <- err
		require.NoError(t, err)
		return ""
	}
}

func ask(t *testing.T, method, url, token string, body []byte) (int, string) {
	r, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewReader(body))
	require.NoError(t, err)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(r)
	require.NoError(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return answer.StatusCode, string(text)
}

// What this program serves it can also use, with labels and all, over both transports and with a token.
func TestServedToItself(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(token, []byte(secret+"\n"), 0o600))
	address := run(t, func(s *Serve) { s.TokenFile = token })
	o := enginetest.Network(t, "image")
	local, err := onnxruntime.Open(o)
	require.NoError(t, err)
	defer local.Close()
	img := []engine.Image{{Data: bytes.Repeat([]byte{200}, 96*64), Width: 96, Height: 64, Stride: 96, Format: engine.GRAY8}}
	infer := func(e engine.Engine) []byte {
		require.NoError(t, e.Submit(0, img))
		result, err := e.Wait(0)
		require.NoError(t, err)
		return bytes.Clone(result.Outputs[0].Data)
	}
	want := infer(local)
	for _, scheme := range []string{"grpc", "http"} {
		remote := engine.Options{MaxBatch: 100, Remote: engine.Remote{
			Timeout: programtest.Patience, Authorization: func() (string, error) { return "Bearer " + secret, nil },
		}}
		e, err := triton.Open(t.Context(), scheme+"://"+address+"/image", remote, quiet)
		require.NoError(t, err)
		require.Equal(t, want, infer(e))
		require.Equal(t, local.Model().Metadata.Labels, e.Model().Metadata.Labels)
		require.Equal(t, local.Model().Outputs, e.Model().Outputs)
		require.Equal(t, defaultBatch, e.Model().MaxBatch)
		require.NoError(t, e.Close())
		remote.Remote.Authorization = nil
		_, err = triton.Open(t.Context(), scheme+"://"+address+"/image", remote, quiet)
		require.ErrorContains(t, err, "the token is missing or another one")
	}
	for path, want := range map[string]int{"/v2/health/live": 200, "/v2/health/ready": 200, "/v2": 401, "/v2/models/image": 401} {
		code, _ := ask(t, http.MethodGet, "http://"+address+path, "wrong", nil)
		require.Equal(t, want, code, path)
	}
}

func TestRefusals(t *testing.T) {
	address := run(t, func(s *Serve) { s.Largest = 4000 })
	url := "http://" + address + "/v2/"
	input := func(rest string) []byte { return []byte(`{"inputs":[{"name":"images",` + rest + `}]}`) }
	for _, test := range []struct {
		method, path string
		body         []byte
		code         int
		want         string
	}{
		{"GET", "models/other", nil, 404, `unknown model \"other\", there is \"image\"`},
		{"GET", "models/image/versions/2", nil, 404, `no version \"2\", there is 1`},
		{"GET", "models/image/infer", nil, 400, "a request for a run is a POST"},
		{"GET", "nothing", nil, 404, "no such path"},
		{"POST", "models/image/infer", []byte("{"), 400, "no JSON"},
		{"POST", "models/image/infer", bytes.Repeat([]byte(" "), 5000), 429, "the request has more than 4000 bytes"},
		{"POST", "models/image/infer", []byte(`{"inputs":[]}`), 400, `input \"images\" is missing`},
		{"POST", "models/image/infer", input(`"datatype":"FP64","shape":[1],"data":[1]`), 400, `type \"FP64\" is not read`},
		{"POST", "models/image/infer", input(`"datatype":"FP32","shape":[1,3,64,96],"data":[1]`), 400, "4 bytes instead of 73728"},
		{"POST", "models/image/infer", input(`"datatype":"FP32","shape":[1],"data":[1]`), 400, "has shape [1], the model takes [-1 3 64 96]"},
		{
			"POST", "models/image/infer", input(`"datatype":"FP32","shape":[1],"parameters":{"shared_memory_region":"r","shared_memory_byte_size":4}`),
			501, "is in shared memory, which this server does not have: send the tensor itself",
		},
		{
			"POST", "models/image/infer",
			[]byte(`{"inputs":[],"outputs":[{"name":"output0","parameters":{"classification":5}}]}`),
			501, `\"output0\" with the parameter classification: this server returns whole outputs, sort them yourself`,
		},
		{"POST", "repository/models/image/load", []byte("{}"), 501, "models are neither loaded nor unloaded while this server runs"},
		{"POST", "repository/models/image/unload", []byte("{}"), 501, "models are neither loaded nor unloaded while this server runs"},
		{"GET", "trace/setting", nil, 501, "this server writes no traces"},
		{"GET", "models/image/trace/setting", nil, 501, "this server writes no traces"},
		{"POST", "logging", []byte("{}"), 501, "log settings do not change while this server runs"},
		{"POST", "systemsharedmemory/region/r/register", []byte("{}"), 501, "no shared memory"},
	} {
		code, text := ask(t, test.method, url+test.path, "", test.body)
		require.Equal(t, test.code, code, "%s: %s", test.path, text)
		require.Contains(t, text, test.want, test.path)
		require.True(t, json.Valid([]byte(text)), text)
	}
	code, text := ask(t, "GET", url+"models/image/stats", "", nil)
	require.Equal(t, 200, code)
	require.Contains(t, text, `"inference_count":0`)
}

// opened is a served model with its worker, that waits that long for others.
func opened(t *testing.T, name string, change func(*engine.Options)) *model {
	o := enginetest.Network(t, name)
	change(&o)
	e, err := onnxruntime.Open(o)
	require.NoError(t, err)
	m, err := newModel(predict.WrapRaw(e), engine.Size{}, "net", 8, programtest.Patience)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.close()) })
	return m
}

// Requests of several clients are run as one, and everybody gets the rows that are its own.
func TestRequestsAreRunTogether(t *testing.T) {
	m := opened(t, "image", func(o *engine.Options) { o.MaxBatch = 4 })
	var group sync.WaitGroup
	answers := make([][]byte, 3)
	for i, rows := range []int64{1, 2, 1} {
		group.Go(func() {
			data := bytes.Repeat([]byte{0, 0, byte(i + 1), 63}, int(rows)*3*64*96)
			r := &kserve.InferRequest{Inputs: []kserve.Tensor{{Name: "images", Datatype: "FP32", Shape: []int64{rows, 3, 64, 96}, Data: data}}}
			assert.NoError(t, m.Infer(t.Context(), r, func(a *kserve.InferResponse) error {
				assert.Equal(t, []int64{rows, 3, 8, 12}, a.Outputs[0].Shape)
				answers[i] = a.Outputs[0].Data
				return a.Outputs[0].Check()
			}))
		})
	}
	group.Wait()
	for i, data := range answers {
		require.Equal(t, bytes.Repeat([]byte{0, 0, byte(i + 1), 63}, len(data)/4), data, i)
	}
	stats := m.Statistics()
	require.EqualValues(t, 4, stats.InferenceCount)
	require.EqualValues(t, 1, stats.ExecutionCount)
	require.EqualValues(t, 4, stats.Batches[0].BatchSize)
}

func TestQueueIsBounded(t *testing.T) {
	m := opened(t, "image", func(o *engine.Options) { o.MaxBatch = 1 })
	full := &model{
		name: "net", about: m.about, metadata: m.metadata, config: m.config, queue: make(chan *request), stop: make(chan struct{}),
	}
	data := make([]byte, 4*3*64*96)
	r := &kserve.InferRequest{Inputs: []kserve.Tensor{{Name: "images", Datatype: "FP32", Shape: []int64{1, 3, 64, 96}, Data: data}}}
	err := full.Infer(t.Context(), r, nil)
	require.EqualError(t, err, "Exceeds maximum queue size of 0")
	require.EqualValues(t, 1, full.Statistics().Infer.Fail.Count)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, m.Infer(gone, r, nil), context.Canceled)
}

func TestCheck(t *testing.T) {
	for want, change := range map[string]func(*Serve){
		"--listen 0.0.0.0:1 is reachable from other machines: set --token-file, or listen on 127.0.0.1": func(s *Serve) { s.Listen = []string{"0.0.0.0:1"} },
		`--listen "8000" must be host:port`:                 func(s *Serve) { s.Listen = []string{"8000"} },
		"--listen needs an address":                         func(s *Serve) { s.Listen = nil },
		"--certificate and --key: one needs the other":      func(s *Serve) { s.Key = "k" },
		"--queue-delay must be 0 to 1s":                     func(s *Serve) { s.Delay = -1 },
		"--queue and --connections must be 1 to 4096":       func(s *Serve) { s.Queue = 0 },
		"--max-request must be 0 to 4294967296":             func(s *Serve) { s.Largest = -1 },
		`--name "../x" must be letters, digits, dots, dash`: func(s *Serve) { s.Name = "../x" },
	} {
		s := &Serve{Listen: []string{"127.0.0.1:1"}, Queue: 1, Connections: 1}
		require.NoError(t, s.Check())
		change(s)
		require.ErrorContains(t, s.Check(), want)
	}
	s := &Serve{Config: config.Default()}
	for path, want := range map[string]string{"": "demo", "/a/yolo11n.onnx": "yolo11n", "my model.plan": "my_model"} {
		s.Config.Model.Path = path
		require.Equal(t, want, s.name())
	}
}

// FuzzServer sends anything as a request over both transports.
func FuzzServer(f *testing.F) {
	o := enginetest.Network(f, "image")
	e, err := onnxruntime.Open(o)
	require.NoError(f, err)
	m, err := newModel(predict.WrapRaw(e), engine.Size{}, "net", 8, 0)
	require.NoError(f, err)
	f.Cleanup(func() { require.NoError(f, m.close()) })
	s := &server.Server{Models: map[string]server.Model{"net": m}, MaxBytes: 1 << 20}
	f.Add([]byte(`{"inputs":[{"name":"images","datatype":"FP32","shape":[1],"data":[1]}]}`), "models/net/infer", 10)
	f.Add([]byte("\x00\x00\x00\x00\x05\x0a\x03net"), "ModelInfer", -1)
	f.Fuzz(func(t *testing.T, body []byte, path string, head int) {
		if strings.ContainsFunc(path, func(r rune) bool { return r <= ' ' || r > '~' || r == '%' || r == '?' || r == '#' }) {
			return
		}
		for prefix, kind := range map[string]string{"/v2/": kserve.ContentType, "/inference.GRPCInferenceService/": "application/grpc"} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://host"+prefix+path, bytes.NewReader(body))
			if err != nil {
				return
			}
			r.Header.Set("Content-Type", kind)
			r.Header.Set(kserve.HeaderLength, fmt.Sprint(head))
			s.ServeHTTP(discard{http.Header{}}, r)
		}
	})
}

// discard is a response that nobody reads.
type discard struct{ header http.Header }

func (d discard) Header() http.Header         { return d.header }
func (d discard) Write(b []byte) (int, error) { return len(b), nil }
func (d discard) WriteHeader(int)             {}
