// Package network turns settings into options of package predict, opens predictors with them, and builds the engine plans that they lack.
package network

import (
	"cmp"
	"log/slog"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/catalogue"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/site"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/tensorrt"
	"github.com/edge-infer/edge-infer/mqtt/credentials"
	"github.com/edge-infer/edge-infer/postprocess/head"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// Options returns the options of the configured model, for commands that open it without cameras. minScore is the lowest score of the
// detections.
func Options(c *config.Config, minScore float64, logger *slog.Logger) predict.Options {
	g := site.Group{
		Network:  site.Network{Model: c.Model, Engine: c.Engine, Remote: c.Remote, Inference: c.Inference},
		MinScore: minScore,
		Decoding: site.Decoding{IoU: c.Detect.IoU, MaxDetections: c.Detect.MaxDetections, Top: c.Detect.Top, Classes: c.Detect.Classes},
	}
	return GroupOptions(&g, logger)
}

// GroupOptions returns the options of a camera group's model. The batch is 1 where the configuration leaves it open.
func GroupOptions(g *site.Group, logger *slog.Logger) predict.Options {
	n := &g.Network
	preprocess, _ := n.Model.Images() // the configuration has been checked
	height, width, _ := n.Model.Sides()
	return predict.Options{
		Model: n.Model.Path, LabelsFile: n.Model.Labels, ResolveModel: catalogue.Resolve, Backend: backend(&n.Engine), Decoding: Decoding(g),
		Log: logger,
		Options: engine.Options{
			Precision: engine.Precision(n.Engine.Precision), Device: n.Engine.FirstGPU(), Threads: n.Engine.Threads,
			MaxBatch: cmp.Or(n.Engine.Batch, 1), Library: n.Engine.Library, Plugins: n.Engine.Plugins,
			Metadata: engine.Metadata{Preprocess: preprocess, Activation: n.Model.LastActivation()}, Width: width, Height: height,
			Remote: remote(&n.Remote),
		},
	}
}

// backend returns the configured backend. A model with operators in plugins runs on TensorRT only.
func backend(e *config.Engine) string {
	if e.Backend == config.Auto && len(e.Plugins) > 0 {
		return tensorrt.Name
	}
	return e.Backend
}

// remote returns how inference servers are reached.
func remote(c *config.Remote) engine.Remote {
	r := engine.Remote{Timeout: c.Timeout, SharedMemory: c.SharedMemory, Encoding: c.Wire, MaxAnswers: int64(c.MemoryMB) << 20}
	if c.HasSecret() {
		r.Authorization = c.Authorization
	}
	if c.CA != "" || c.Certificate != "" {
		r.TLS = credentials.TLS{CAFile: c.CA, CertificateFile: c.Certificate, KeyFile: c.Key}.Load
	}
	return r
}

// Decoding returns how the outputs of a camera group's model are read.
func Decoding(g *site.Group) predict.Decoding {
	return predict.Decoding{
		Layout: head.Layout(g.Network.Model.Layout), MinScore: float32(g.MinScore), IoU: float32(g.Decoding.IoU),
		Limit: g.Decoding.MaxDetections, Classes: g.Decoding.Classes, TopK: g.Decoding.Top,
	}
}

// Files returns the files of all configured networks: models by path or catalogue name, their preprocessing files whether they exist or
// not, files of class names, and plugins.
func Files(s *site.Site) (paths []string) {
	add := func(model, labels string) {
		if model != "" {
			paths = append(paths, model, engine.PreprocessFile(model))
		}
		if labels != "" {
			paths = append(paths, labels)
		}
	}
	for i := range s.Groups {
		n := &s.Groups[i].Network
		add(n.Model.Path, n.Model.Labels)
		for _, model := range n.Inference.Ensemble {
			add(model, "")
		}
		paths = append(paths, n.Engine.Plugins...)
	}
	for i := range s.Cascade {
		add(s.Cascade[i].Model, s.Cascade[i].Labels)
	}
	return paths
}
