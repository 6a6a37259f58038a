// Package auto picks the backend that runs a model, and can say why.
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
	// Engine is what a user calls the backend; several candidates may share it. Title tells them apart.
	Engine, Title string
	// Provider is the hardware this candidate stands for, empty when the backend has no choice. A candidate whose provider differs from the
	// one asked for is passed over.
	Provider engine.Provider
	// Explicit keeps the candidate out of automatic choice.
	Explicit bool
	// Remote says that the model is at the address: its file is not needed.
	Remote bool
	// Open opens the model; address is what follows the equals sign in the choice, logger gets what the engine has to say while it runs.
	Open func(ctx context.Context, address string, options engine.Options, logger *slog.Logger) (engine.Engine, error)
	// Find says which library would be used, without a model. Nil when there is nothing to find before Open.
	Find func(options engine.Options) (path, version string, err error)
}

// Candidates lists the backends of this program, best first.
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

// findTensorRT needs a GPU first: TensorRT does not load without its driver.
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
