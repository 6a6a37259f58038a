// Package network is what a configuration says of the network, as package predict takes it, and how the engine plans that it lacks are
// built.
package network

import (
	"cmp"
	"log/slog"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/catalogue"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/tensorrt"
	"github.com/edge-infer/edge-infer/mqtt/credentials"
	"github.com/edge-infer/edge-infer/postprocess/head"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// Options are c's. One image makes a batch where c leaves that open; decoded is the decoded threshold.
func Options(c *config.Config, decoded float64, logger *slog.Logger) predict.Options {
	images, _ := c.Model.Images() // a checked configuration has no mistake here
	height, width, _ := c.Model.Sides()
	return predict.Options{
		Model: c.Model.Path, LabelsFile: c.Model.Labels, ResolveModel: catalogue.Resolve, Backend: backend(c), Decoding: Decoding(c, decoded),
		Log: logger,
		Options: engine.Options{
			Precision: engine.Precision(c.Engine.Precision), Device: c.Engine.FirstGPU(), Threads: c.Engine.Threads,
			MaxBatch: cmp.Or(c.Engine.Batch, 1),
			Library:  c.Engine.Library, Plugins: c.Engine.Plugins,
			Metadata: engine.Metadata{Preprocess: images, Activation: c.Model.Acts()}, Width: width, Height: height,
			Remote: remote(&c.Remote),
		},
	}
}

// backend is c's. A model whose operators are in plugins runs on TensorRT and on nothing else.
func backend(c *config.Config) string {
	if c.Engine.Backend == config.Auto && len(c.Engine.Plugins) > 0 {
		return tensorrt.Name
	}
	return c.Engine.Backend
}

// remote is how c reaches servers.
func remote(c *config.Remote) engine.Remote {
	r := engine.Remote{Timeout: c.Timeout, SharedMemory: c.SharedMemory, Encoding: c.Wire}
	if c.HasSecret() {
		r.Authorization = c.Authorization
	}
	if c.CA != "" || c.Certificate != "" {
		r.TLS = credentials.TLS{CAFile: c.CA, CertificateFile: c.Certificate, KeyFile: c.Key}.Load
	}
	return r
}

// Decoding is c's, with that decoded threshold.
func Decoding(c *config.Config, decoded float64) predict.Decoding {
	return predict.Decoding{
		Layout: head.Layout(c.Model.Layout), MinScore: float32(decoded), IoU: float32(c.Detect.IoU), Limit: c.Detect.MaxDetections,
		Classes: c.Detect.Classes, TopK: c.Detect.Top,
	}
}
