package device

import (
	"cmp"
	"log/slog"
	"runtime"
	"slices"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/network"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/site"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// tiledBatch is the batch of a network with tiles where the configuration leaves it open.
const tiledBatch = 8

// spread returns the options of each device of a camera group. The group starts with the device at position first, so that several groups
// use different ones. No device is without a camera.
func spread(options predict.Options, g *site.Group, first int, logger *slog.Logger) ([]predict.Options, error) {
	e := &g.Network.Engine
	numbers, err := network.GPUs(e)
	if err != nil {
		return nil, err
	}
	cameras, available := len(g.Cameras), len(numbers)
	if available > cameras {
		logger.Info("more devices than cameras", "devices", available, "used", cameras, "model", options.Path)
		numbers = slices.Concat(numbers[first%available:], numbers[:first%available])[:cameras]
	}
	n := len(numbers)
	tiled := g.Network.Inference.Tile > 0
	options.MaxBatch = (cameras + n - 1) / n
	if tiled {
		options.MaxBatch = max(options.MaxBatch, tiledBatch)
	}
	options.Frugal = e.Batch == 0 && !tiled
	options.MaxBatch = cmp.Or(e.Batch, options.MaxBatch)
	if n > 1 && options.Threads == 0 { // in case they run on the CPU
		options.Threads = max(1, runtime.NumCPU()/n)
	}
	var each []predict.Options
	for _, number := range numbers {
		options.Device = number
		each = append(each, options)
	}
	return each, nil
}
