// Package auto selects the backend that runs a model and explains the choice.
package auto

import (
	"context"
	"errors"
	"log/slog"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/cuda"
	"github.com/edge-infer/edge-infer/engine/onnxruntime"
	"github.com/edge-infer/edge-infer/engine/tensorrt"
	"github.com/edge-infer/edge-infer/engine/triton"
)

// Candidate is one way to run a model.
type Candidate struct {
	// Engine is the user-visible name of the backend, which several candidates may share; Title distinguishes them.
	Engine, Title string
	// Provider is the hardware of this candidate, empty if the backend has only one. A candidate is skipped if another provider is
	// requested.
	Provider engine.Provider
	// Explicit excludes the candidate from automatic selection.
	Explicit bool
	// Remote is set if the server at the address holds the model, so no file is needed.
	Remote bool
	// Open opens the model. address is the text after the equals sign of the choice; logger receives the engine's messages while it runs.
	Open func(ctx context.Context, address string, options engine.Options, logger *slog.Logger) (engine.Engine, error)
	// Find returns the library that Open would use, without a model. It is nil if there is no library to find.
	Find func(options engine.Options) (path, version string, err error)
}

// Candidates returns the backends of this program, best first.
func Candidates() []Candidate {
	return []Candidate{
		{
			Engine: "tensorrt", Title: "tensorrt",
			Open: func(_ context.Context, _ string, options engine.Options, logger *slog.Logger) (engine.Engine, error) {
				return tensorrt.Options{Options: options, Log: logger}.Open()
			},
			Find: findTensorRT,
		},
		onnxRuntime("onnxruntime on CUDA", engine.CUDA),
		onnxRuntime("onnxruntime on the CPU", engine.CPU),
		{
			Engine: triton.Name, Title: triton.Name, Explicit: true, Remote: true,
			Open: func(ctx context.Context, address string, options engine.Options, logger *slog.Logger) (engine.Engine, error) {
				return triton.Open(ctx, address, options, logger)
			},
		},
	}
}

// findTensorRT checks for a GPU first: TensorRT does not load without its driver.
func findTensorRT(options engine.Options) (path, version string, err error) {
	device, err := cuda.Open(options.Device)
	if err != nil {
		return "", "", err
	}
	library, err := tensorrt.OpenLibrary(tensorrt.LibraryOptions{Path: options.Library})
	if err != nil {
		return "", "", errors.Join(err, device.Close())
	}
	return library.Path, library.Version.String(), device.Close()
}

func onnxRuntime(title string, provider engine.Provider) Candidate {
	return Candidate{
		Engine: "onnxruntime", Title: title, Provider: provider,
		Open: func(_ context.Context, _ string, options engine.Options, _ *slog.Logger) (engine.Engine, error) {
			options.Provider = provider
			return onnxruntime.Open(options)
		},
		Find: func(options engine.Options) (path, version string, err error) {
			options.Provider = provider
			return onnxruntime.Find(options)
		},
	}
}
