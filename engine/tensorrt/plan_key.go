package tensorrt

import (
	"crypto/sha256"
	"fmt"
	"os"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/cuda"
)

// Key identifies a plan by everything that affects its build. Plans with equal keys are interchangeable.
type Key struct {
	Model        [sha256.Size]byte `json:"model"`
	TensorRT     string            `json:"tensorrt"`
	Architecture string            `json:"architecture"`
	GPU          string            `json:"gpu"`
	Build        buildKey          `json:"build"`
}

// buildKey is the part of BuildOptions that affects the plan.
type buildKey struct {
	Precision          engine.Precision `json:"precision"`
	StronglyTyped      bool             `json:"strongly_typed"`
	Batch              Range            `json:"batch"`
	Width, Height      int
	Shapes             []ShapeRange `json:"shapes"`
	Workspace          int64        `json:"workspace"`
	Level, DLA         int
	VersionCompatible  bool `json:"version_compatible"`
	HardwareCompatible bool `json:"hardware_compatible"`
	MinMax             bool `json:"minmax"`
	Calibration        string
	Unquantized        []string `json:"unquantized,omitempty"`
	// Plugins are the SHA-256 hashes of the plugins with operators of the model.
	Plugins []string `json:"plugins,omitempty"`
}

// key returns the cache key of the plan for this version, device and plugins.
func (o *BuildOptions) key(version Version, facts cuda.Facts, plugins []PluginFacts) (Key, error) {
	width, height := o.sides()
	build := buildKey{
		Precision: o.resolvePrecision(version, facts), StronglyTyped: o.StronglyTyped, Batch: o.Batch.complete(), Width: width, Height: height,
		Shapes: o.Shapes, Workspace: o.Workspace, Level: -1, DLA: -1, VersionCompatible: o.VersionCompatible,
		HardwareCompatible: o.HardwareCompatible, MinMax: o.Calibration.MinMax,
	}
	for _, p := range plugins {
		build.Plugins = append(build.Plugins, p.SHA256)
	}
	if o.OptimizationLevel != nil {
		build.Level = *o.OptimizationLevel
	}
	if o.DLA != nil {
		build.DLA = *o.DLA
	}
	if build.Precision == engine.INT8 {
		var err error
		build.Calibration, err = o.Calibration.hash()
		if err != nil {
			return Key{}, err
		}
		build.Unquantized = o.Calibration.Unquantized
	}
	return Key{
		Model: sha256.Sum256(o.Model), TensorRT: version.String(), Architecture: facts.ComputeCapability(), GPU: facts.Name, Build: build,
	}, nil
}

// hash returns the SHA-256 of the calibration cache, "" without one.
func (c Calibration) hash() (string, error) {
	if c.Cache == "" {
		return "", nil
	}
	table, err := os.ReadFile(c.Cache)
	if err != nil {
		return "", fmt.Errorf("calibration cache: %w", err)
	}
	return fmt.Sprintf("%x", sha256.Sum256(table)), nil
}
