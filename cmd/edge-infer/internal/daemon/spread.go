package daemon

import (
	"cmp"
	"fmt"
	"log/slog"
	"runtime"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/engine/cuda"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// deviceNumbers are the GPUs that the configuration names. One alone may be missing, because another backend can take its place; several
// are only what was meant when all of them are there.
func deviceNumbers(c *config.Config) ([]int, error) {
	numbers, all := c.Engine.Devices()
	if !all && len(numbers) == 1 {
		return numbers, nil
	}
	report := cuda.Probe()
	switch {
	case all && len(report.Devices) == 0:
		return []int{0}, nil
	case all:
		numbers = nil
		for _, device := range report.Devices {
			numbers = append(numbers, device.Ordinal)
		}
		return numbers, nil
	case report.Err() != nil:
		return nil, report.Err()
	}
	for _, number := range numbers {
		if there := len(report.Devices); number >= there {
			return nil, fmt.Errorf("--gpu %s: there is no GPU %d, this machine has %d (edge-infer devices lists them)", c.Engine.Device,
				number, there)
		}
	}
	return numbers, nil
}

// spread cuts options into those of each device. No device is without a camera.
func spread(options predict.Options, c *config.Config, logger *slog.Logger) ([]predict.Options, error) {
	numbers, err := deviceNumbers(c)
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
