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

// GPUs returns the numbers of the configured GPUs. A single one may be missing, because another backend can take its place; of several
// each must exist.
func GPUs(e *config.Engine) ([]int, error) {
	numbers, all := e.GPUs()
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
			return nil, fmt.Errorf("--gpu %s: there is no GPU %d, this machine has %d (edge-infer devices lists them)", e.GPU,
				number, there)
		}
	}
	return numbers, nil
}

// OpenPerGPU opens a predictor on each configured GPU, or one if none is configured. The caller closes them.
func (b *PredictorBuilder) OpenPerGPU(ctx context.Context, c *config.Config, options predict.Options) ([]predict.Predictor, error) {
	numbers, err := GPUs(&c.Engine)
	if err != nil {
		return nil, err
	}
	if n := len(numbers); n > 1 && options.Threads == 0 { // in case they run on the CPU
		options.Threads = max(1, runtime.NumCPU()/n)
	}
	var all []predict.Predictor
	for _, number := range numbers {
		options.Device = number
		p, err := b.Open(ctx, options)
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
