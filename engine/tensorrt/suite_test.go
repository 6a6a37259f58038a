package tensorrt_test

import (
	"testing"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/enginetest"
	"github.com/edge-infer/edge-infer/engine/tensorrt"
)

func TestContract(t *testing.T) {
	eachVersion(t, func(t *testing.T, version int) {
		for _, variant := range []struct {
			name   string
			change func(*tensorrt.Options)
		}{
			{"copies and graphs", func(*tensorrt.Options) {}},
			{"mapped and spinning, no graphs", func(o *tensorrt.Options) { o.Memory, o.Spin, o.NoGraph = tensorrt.MemoryMapped, true, true }},
			{"mapped and graphs", func(o *tensorrt.Options) { o.Memory = tensorrt.MemoryMapped }},
		} {
			t.Run(variant.name, func(t *testing.T) {
				enginetest.Run(t, enginetest.Backend{
					SmallTypes: true, FreeSides: true,
					Open: func(o engine.Options) (engine.Engine, error) {
						options := tensorrt.Options{Options: o, Log: quiet}
						variant.change(&options)
						return openONNX(t, version, options)
					},
				})
			})
		}
	})
}

// openONNX builds a plan for the model of the options and opens it.
func openONNX(t testing.TB, version int, o tensorrt.Options) (engine.Engine, error) {
	model, metadata := translate(t, o.Path, o.Bytes)
	build := tensorrt.BuildOptions{
		Model: model, Path: o.Path, Metadata: metadata.Override(o.Metadata), Library: tensorrt.LibraryOptions{Path: libraries[version]},
		Batch: tensorrt.Range{Max: o.MaxBatch},
		Shapes: []tensorrt.ShapeRange{
			{Name: "values", Min: []int64{1, 2, 1}, Opt: []int64{1, 2, 3}, Max: []int64{4, 2, 4}},
			{Name: "ids", Min: []int64{1}, Opt: []int64{3}, Max: []int64{4}},
		},
	}
	build.Width, build.Height = build.Metadata.Width, build.Metadata.Height
	plan, err := tensorrt.Build(t.Context(), build, nil)
	if err != nil {
		return nil, err
	}
	o.Bytes, o.Library = plan.File, libraries[version]
	return o.Open()
}
