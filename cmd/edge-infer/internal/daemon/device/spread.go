package device

import (
	"cmp"
	"log/slog"
	"runtime"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/network"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// spread cuts options into those of each device. No device is without a camera.
func spread(options predict.Options, c *config.Config, logger *slog.Logger) ([]predict.Options, error) {
	numbers, err := network.Devices(c)
	if err != nil {
		return nil, err
	}
	cameras := len(c.Cameras)
	if len(numbers) > cameras {
		logger.Info("more devices than cameras", "devices", len(numbers), "used", cameras)
		numbers = numbers[:cameras]
	}
	n := len(numbers)
	options.MaxBatch = cmp.Or(c.Engine.Batch, (cameras+n-1)/n)
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
