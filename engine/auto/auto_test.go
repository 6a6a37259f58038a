package auto_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/auto"
	"github.com/edge-infer/edge-infer/engine/enginetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is an engine that only describes itself.
type fake struct {
	engine.Engine
	name string
}

func (f fake) Model() engine.Model { return engine.Model{Backend: f.name} }

func works(name, title string) auto.Candidate {
	return auto.Candidate{
		Engine: name, Title: title,
		Open: func(_ context.Context, address string, _ engine.Options, _ *slog.Logger) (engine.Engine, error) {
			return fake{name: title + address}, nil
		},
		Find: func(engine.Options) (string, string, error) { return "/lib/" + name, "1.2", nil },
	}
}

func fails(name, title string, err error) auto.Candidate {
	return auto.Candidate{
		Engine: name, Title: title,
		Open: func(context.Context, string, engine.Options, *slog.Logger) (engine.Engine, error) { return nil, err },
		Find: func(engine.Options) (string, string, error) { return "", "", err },
	}
}

var (
	missing = &engine.Error{Op: "open", Backend: "tensorrt", Kind: engine.ErrUnavailable, Message: "no libnvinfer"}
	strange = &engine.Error{Op: "open", Backend: "tensorrt", Kind: engine.ErrUnsupported, Message: "no such layer"}
	broken  = &engine.Error{Op: "model", Backend: "onnx", Kind: engine.ErrUnsupported, Message: "a PNG image"}
)

// What is looked for in many places and not found takes one short line at a start; what was looked for is for who debugs.
func TestRefusalsAreShort(t *testing.T) {
	wall := &engine.Error{
		Op: "open", Backend: "onnxruntime", Kind: engine.ErrUnavailable,
		Message: "no usable libonnxruntime, tried " + strings.Repeat("/a: no such file; ", 30),
		Hint:    "install it",
	}
	open := func(level slog.Level) string {
		var log bytes.Buffer
		choice := auto.Choice{Candidates: []auto.Candidate{
			fails("tensorrt", "tensorrt", missing), on(fails("onnxruntime", "onnxruntime on CUDA", wall), engine.CUDA),
			on(works("onnxruntime", "onnxruntime on the CPU"), engine.CPU),
		}}
		e, err := auto.Open(t.Context(), engine.Options{}, choice, slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: level})))
		require.NoError(t, err)
		require.Contains(t, e.Model().Reason, "install it")
		return log.String()
	}
	said := open(slog.LevelInfo)
	require.Equal(t, 1, strings.Count(said, "\n"), said)
	require.Contains(t, said, `msg="engine chosen" engine="onnxruntime on the CPU" `+
		`refused="tensorrt (no libnvinfer), onnxruntime on CUDA (no usable libonnxruntime)"`)
	require.Contains(t, open(slog.LevelDebug), "/a: no such file; /a: no such file; ")
}

func only(c auto.Candidate) auto.Candidate {
	c.Explicit = true
	return c
}

func on(c auto.Candidate, provider engine.Provider) auto.Candidate {
	c.Provider = provider
	return c
}

// TestOpen is as long as its table of machines.
func TestOpen(t *testing.T) {
	list := []auto.Candidate{
		fails("tensorrt", "tensorrt", missing), on(fails("onnxruntime", "onnxruntime on CUDA", missing), engine.CUDA),
		on(works("onnxruntime", "onnxruntime on the CPU"), engine.CPU), only(works("triton", "triton at ")),
	}
	for _, test := range []struct {
		name, engine string
		provider     engine.Provider
		candidates   []auto.Candidate
		backend      string
		reason       string
		err          string
		kind         error
		logged       int
	}{
		{
			name: "degrades and says why", engine: "auto", candidates: list, backend: "onnxruntime on the CPU", logged: 2,
			reason: "onnxruntime on the CPU works; tensorrt refused: tensorrt open: no libnvinfer; onnxruntime on CUDA refused: tensorrt open: no libnvinfer",
		},
		{
			name: "empty means auto", candidates: []auto.Candidate{works("tensorrt", "tensorrt"), works("onnxruntime", "ort")},
			backend: "tensorrt", reason: "tensorrt is the first choice and works",
		},
		{
			name: "a named one never degrades", engine: "tensorrt", candidates: list, err: "tensorrt open: no libnvinfer",
			kind: engine.ErrUnavailable,
		},
		{
			name: "by name and provider", engine: "onnxruntime", provider: engine.CPU, candidates: list, backend: "onnxruntime on the CPU",
			reason: "onnxruntime on the CPU was asked for",
		},
		{
			name: "a named provider never degrades", engine: "onnxruntime", provider: engine.CUDA, candidates: list,
			err: "tensorrt open: no libnvinfer", kind: engine.ErrUnavailable,
		},
		{
			name: "by name and provider in one", engine: "onnxruntime=cpu", candidates: list, backend: "onnxruntime on the CPUcpu",
			reason: "onnxruntime on the CPU was asked for",
		},
		{
			name: "a provider that was named never degrades", engine: "onnxruntime=cuda", candidates: list, err: "tensorrt open: no libnvinfer",
			kind: engine.ErrUnavailable,
		},
		{
			name: "no such provider", engine: "onnxruntime=npu", candidates: list,
			err: `engine open: no engine has the provider "npu" (use cpu or cuda)`, kind: engine.ErrUnsupported,
		},
		{
			name: "CUDA first, then the CPU with the reason", engine: "onnxruntime", candidates: list, backend: "onnxruntime on the CPU", logged: 1,
			reason: "onnxruntime on the CPU was asked for; onnxruntime on CUDA refused: tensorrt open: no libnvinfer",
		},
		{name: "address", engine: "triton=host:8001", candidates: list, backend: "triton at host:8001", reason: "triton at  was asked for"},
		{
			name: "unknown", engine: "openvino", candidates: list,
			err: `engine open: "openvino" is no engine (use auto, tensorrt, onnxruntime, triton)`, kind: engine.ErrUnsupported,
		},
		{
			name: "unknown provider", provider: "npu", candidates: list[1:3], err: `engine open: no engine has the provider "npu" (use cpu or cuda)`,
			kind: engine.ErrUnsupported,
		},
		{
			name: "none", candidates: []auto.Candidate{fails("tensorrt", "tensorrt", missing), fails("onnxruntime", "ort", missing)}, logged: 2,
			err: "engine open: no backend runs the model: tensorrt and ort: no libnvinfer " +
				"(edge-infer devices lists what is missing and where it was searched)",
			kind: engine.ErrUnavailable,
		},
		{
			name: "unsupported by all", candidates: []auto.Candidate{fails("tensorrt", "tensorrt", strange), fails("onnxruntime", "ort", strange)},
			logged: 2,
			err: "engine open: no backend runs the model: tensorrt and ort: no such layer " +
				"(edge-infer devices lists what is missing and where it was searched)",
			kind: engine.ErrUnsupported,
		},
		{
			name: "each for its own reason, which is no wall", logged: 2, kind: engine.ErrUnavailable,
			candidates: []auto.Candidate{fails("tensorrt", "tensorrt", &engine.Error{
				Op: "open", Backend: "cuda", Kind: engine.ErrUnavailable, Message: "no CUDA driver: libcuda.so.1" + strings.Repeat(", tried /a", 99),
			}), fails("onnxruntime", "ort", &engine.Error{
				Op: "open", Backend: "onnxruntime", Kind: engine.ErrUnavailable, Message: "no such layer", Hint: strings.Repeat("do this\nor ", 99),
			})},
			err: "engine open: no backend runs the model: tensorrt: no CUDA driver: libcuda.so.1" + strings.Repeat(", tried /a", 10)[:92] +
				" ...; ort: no such layer (do this; edge-infer devices lists what is missing and where it was searched)",
		},
		{
			name: "what a backend that is there says of the model", logged: 2, kind: engine.ErrUnsupported,
			candidates: []auto.Candidate{fails("tensorrt", "tensorrt", strange), fails("onnxruntime", "ort", &engine.Error{
				Op: "open", Backend: "onnxruntime", Kind: engine.ErrUnsupported, Message: "the model is refused",
				Err: errors.New("max IR version: 13"), Hint: "lower it, or wait",
			})},
			err: "engine open: no backend runs the model: tensorrt: no such layer; ort: the model is refused: max IR version: 13 " +
				"(lower it; edge-infer devices lists what is missing and where it was searched)",
		},
		{
			name: "a broken file is told once", candidates: []auto.Candidate{fails("tensorrt", "tensorrt", broken), works("onnxruntime", "ort")},
			err: "onnx model: a PNG image", kind: engine.ErrUnsupported,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			var log bytes.Buffer
			choice := auto.Choice{Engine: test.engine, Candidates: test.candidates}
			e, err := auto.Open(t.Context(), engine.Options{Provider: test.provider}, choice,
				slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))
			assert.Equal(t, test.logged, strings.Count(log.String(), "engine refused"), log.String())
			if test.err != "" {
				require.EqualError(t, err, test.err)
				require.ErrorIs(t, err, test.kind)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, test.backend, e.Model().Backend)
			assert.Equal(t, test.reason, e.Model().Reason)
		})
	}
}

func TestOpenStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := auto.Open(ctx, engine.Options{}, auto.Choice{Candidates: []auto.Candidate{works("a", "a")}}, slog.New(slog.DiscardHandler))
	require.ErrorIs(t, err, context.Canceled)
}

func TestLibraryNeedsItsEngine(t *testing.T) {
	var seen string
	candidates := []auto.Candidate{works("tensorrt", "tensorrt"), {
		Engine: "onnxruntime", Title: "ort",
		Open: func(_ context.Context, _ string, o engine.Options, _ *slog.Logger) (engine.Engine, error) {
			seen = o.Library
			return fake{}, nil
		},
	}}
	options, log := engine.Options{Library: "/lib/some.so"}, slog.New(slog.DiscardHandler)
	_, err := auto.Open(t.Context(), options, auto.Choice{Engine: "onnxruntime", Candidates: candidates}, log)
	require.NoError(t, err)
	assert.Equal(t, "/lib/some.so", seen)
	_, err = auto.Open(t.Context(), options, auto.Choice{Candidates: candidates}, log)
	require.EqualError(t, err,
		"engine open: library /lib/some.so is named, but not the engine it belongs to (name the engine as well: tensorrt, onnxruntime)")
}

func TestReport(t *testing.T) {
	report, err := auto.Report(engine.Options{}, auto.Choice{Candidates: []auto.Candidate{
		fails("tensorrt", "tensorrt", missing), works("onnxruntime", "ort"), works("other", "other"), only(works("triton", "triton")),
	}})
	require.NoError(t, err)
	assert.Equal(t, []auto.Backend{
		{Engine: "tensorrt", Title: "tensorrt", Reason: "tensorrt open: no libnvinfer"},
		{Engine: "onnxruntime", Title: "ort", Path: "/lib/onnxruntime", Version: "1.2", Usable: true, Chosen: true},
		{Engine: "other", Title: "other", Path: "/lib/other", Version: "1.2", Usable: true},
	}, report)
}

// The real list, on whatever this machine has: the CPU always works where the tests run.
func TestRealBackends(t *testing.T) {
	e, err := auto.Open(t.Context(), enginetest.Network(t, "image"), auto.Choice{}, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	assert.NotEmpty(t, e.Model().Reason)
	report, err := auto.Report(engine.Options{}, auto.Choice{})
	require.NoError(t, err)
	last := report[len(report)-1]
	assert.Equal(t, "onnxruntime on the CPU", last.Title)
	assert.True(t, last.Usable, last.Reason)
	assert.NotEmpty(t, last.Version)
	assert.FileExists(t, last.Path)
}
