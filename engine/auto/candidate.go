// Package auto picks the backend that runs a model, and can say why.
package auto

import (
	"context"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/onnxruntime"
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
	// Open opens the model; address is what follows the equals sign in the choice.
	Open func(ctx context.Context, address string, options engine.Options) (engine.Engine, error)
	// Find says which library would be used, without a model. Nil when there is nothing to find before Open.
	Find func(options engine.Options) (path, version string, err error)
}

// Candidates lists the backends of this program, best first.
func Candidates() []Candidate {
	return []Candidate{
		onnxRuntime("onnxruntime on CUDA", engine.CUDA),
		onnxRuntime("onnxruntime on the CPU", engine.CPU),
	}
}

func onnxRuntime(title string, provider engine.Provider) Candidate {
	return Candidate{
		Engine: "onnxruntime", Title: title, Provider: provider,
		Open: func(_ context.Context, _ string, options engine.Options) (engine.Engine, error) {
			options.Provider = provider
			return onnxruntime.Open(options)
		},
		Find: func(options engine.Options) (path, version string, err error) {
			options.Provider = provider
			return onnxruntime.Find(options)
		},
	}
}
