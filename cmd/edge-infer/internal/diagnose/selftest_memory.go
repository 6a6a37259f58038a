package diagnose

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/cuda/cudatest"
)

// memoryRepetitions is how often each kind of memory is tried.
const memoryRepetitions = 50

// memoryTimes measures the letterbox of an image that the CPU has just written, from each kind of memory that a camera's image could be in.
func (r *request) memoryTimes(context.Context) (detail string, err error) {
	g, err := openGPU(r.Engine.FirstGPU())
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, g.close()) }()
	if facts := g.Facts(); !facts.MapsHostMemory {
		return "", fmt.Errorf("%w: %s cannot map host memory", errAbsent, facts.Name)
	}
	p, err := g.newImage(engine.NV12, 1920, 1080, networkInput)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, p.free()) }()
	original := slices.Clone(p.source.Data)
	mapped, err := g.timed(p, func() { copy(p.source.Data, original) }, func() error {
		return g.stream.Launch(g.kernel(p, p.source.Address, networkInput))
	})
	if err != nil {
		return "", fmt.Errorf("mapped: %w", err)
	}
	copied, err := g.timeCopied(p, original)
	if err != nil {
		return "", fmt.Errorf("copied: %w", err)
	}
	managed := "not available"
	took, err := g.timeManaged(p, original)
	switch unavailable := (*managedError)(nil); {
	case err == nil:
		managed = fmt.Sprintf("%d us", took.Microseconds())
	case errors.As(err, &unavailable):
		managed += ": " + err.Error()
	default:
		return "", fmt.Errorf("managed: %w", err)
	}
	return fmt.Sprintf("letterbox of 1920x1080 NV12 that the CPU has just written, median of %d: mapped %d us, copied %d us, managed %s",
		memoryRepetitions, mapped.Microseconds(), copied.Microseconds(), managed), nil
}

// timeCopied measures the letterbox with a copy of the image to the GPU's memory before.
func (g *gpu) timeCopied(p *testImage, original []byte) (took time.Duration, err error) {
	memory, err := g.Alloc(len(original))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, memory.Free()) }()
	return g.timed(p, func() { copy(p.source.Data, original) }, func() error {
		if err := g.stream.Copy(memory.Address, p.source.Address, len(original)); err != nil {
			return err
		}
		return g.stream.Launch(g.kernel(p, memory.Address, networkInput))
	})
}

// managedError is that the driver has no managed memory.
type managedError struct{ error }

// timeManaged measures the letterbox from managed memory, which the driver moves to the GPU.
func (g *gpu) timeManaged(p *testImage, original []byte) (took time.Duration, err error) {
	memory, err := cudatest.AllocManaged(g.Device, len(original))
	if err != nil {
		return 0, &managedError{err}
	}
	defer func() { err = errors.Join(err, memory.Free()) }()
	return g.timed(p, func() { copy(memory.Data, original) }, func() error {
		return g.stream.Launch(g.kernel(p, memory.Address, networkInput))
	})
}

// timed returns the median time of work on an image, each time after the image was written, and checks the last result.
func (g *gpu) timed(p *testImage, write func(), enqueue func() error) (time.Duration, error) {
	p.clear()
	times := make([]time.Duration, memoryRepetitions)
	for i := range times {
		write()
		begun := time.Now()
		if err := enqueue(); err != nil {
			return 0, err
		}
		if err := g.stream.Synchronize(); err != nil {
			return 0, err
		}
		times[i] = time.Since(begun)
	}
	if worst := p.maxDifference(); !(worst <= oneLevel) {
		return 0, fmt.Errorf("the GPU's letterbox differs from the CPU's by %.3g levels", worst)
	}
	return median(times), nil
}

// median sorts times and returns the one in the middle.
func median(times []time.Duration) time.Duration {
	slices.Sort(times)
	return times[len(times)/2]
}
