package network

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/engine/cuda"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// GPUs are the GPUs that the configuration names. One alone may be missing, because another backend can take its place; several are
// only what was meant when all of them are there.
func GPUs(c *config.Config) ([]int, error) {
	numbers, all := c.Engine.GPUs()
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
			return nil, fmt.Errorf("--gpu %s: there is no GPU %d, this machine has %d (edge-infer devices lists them)", c.Engine.GPU,
				number, there)
		}
	}
	return numbers, nil
}

// OpenPerGPU opens a predictor on each GPU that the configuration names, one where it names none. The caller closes them.
func (s *PredictorBuilder) OpenPerGPU(ctx context.Context, c *config.Config, options predict.Options) ([]predict.Predictor, error) {
	numbers, err := GPUs(c)
	if err != nil {
		return nil, err
	}
	if n := len(numbers); n > 1 && options.Threads == 0 { // should the engines turn out to be the CPU's
		options.Threads = max(1, runtime.NumCPU()/n)
	}
	var all []predict.Predictor
	for _, number := range numbers {
		options.Device = number
		p, err := s.Open(ctx, options)
		if err != nil {
			for _, opened := range all {
				err = errors.Join(err, opened.Close())
			}
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}
