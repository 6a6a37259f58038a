package device

import (
	"cmp"
	"log/slog"
	"runtime"
	"slices"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/network"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// tiledBatch is how many tiles one inference takes where nothing says it.
const tiledBatch = 8

// spread cuts options into those of each device of a view, which begins on the one of that number. No device is without a camera.
func spread(options predict.Options, c *config.Config, first int, logger *slog.Logger) ([]predict.Options, error) {
	numbers, err := network.GPUs(c)
	if err != nil {
		return nil, err
	}
	cameras, there := len(c.Cameras), len(numbers)
	if len(numbers) > cameras {
		logger.Info("more devices than cameras", "devices", there, "used", cameras, "model", options.Path)
		numbers = slices.Concat(numbers[first%there:], numbers[:first%there])[:cameras]
	}
	n := len(numbers)
	options.MaxBatch = (cameras + n - 1) / n
	if c.Inference.Tile > 0 {
		options.MaxBatch = max(options.MaxBatch, tiledBatch)
	}
	options.Frugal = c.Engine.Batch == 0 && c.Inference.Tile == 0
	options.MaxBatch = cmp.Or(c.Engine.Batch, options.MaxBatch)
	if n > 1 && options.Threads == 0 { // should the engines turn out to be the CPU's
		options.Threads = max(1, runtime.NumCPU()/n)
	}
	var each []predict.Options
	for _, number := range numbers {
		options.Device = number
		each = append(each, options)
	}
	return each, nil
}
