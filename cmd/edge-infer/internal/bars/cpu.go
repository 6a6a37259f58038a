package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// cpu measures the aims that need no GPU, in the root of a checkout.
type cpu struct {
	*options
	floors, library string
}

func (c *cpu) parts() []part {
	return []part{
		{"B2", c.throughput},
		{"B3", c.openCV},
		{"B5", c.allocations},
		{"B8", c.loaded},
		{"B10", c.letterbox},
		{"B11", c.decode},
		{"B12", c.encode},
		{"B13", c.brokers},
		{"B14", c.freshness},
		{"B16", c.messages},
		{"B17", c.agreement},
		{"GPU", func(_ context.Context, s *sheet) error {
			for _, bar := range []string{"B1", "B4", "B6", "B7", "B9", "B15"} {
				s.skip(bar, "wants a GPU with TensorRT: bars gpu, see docs/BENCHMARKS.md")
			}
			return nil
		}},
	}
}

// network writes the YOLOv8n-shaped network of that side into a directory that the caller removes.
func network(side string) (path string, remove func(), err error) {
	dir, err := os.MkdirTemp("", "bars")
	if err != nil {
		return "", nil, err
	}
	path = filepath.Join(dir, "yolov8n.onnx")
	return path, func() { _ = os.RemoveAll(dir) }, writeNetwork([]string{path, side})
}

// daemon gives frames a second and CPU time a frame of the whole loop, flat out.
func (c *cpu) daemon(ctx context.Context, model string, arguments ...string) (rate, processor float64, err error) {
	r, err := c.bench(ctx, append([]string{
		"--engine", "onnxruntime=cpu", "--model", model, "--images", "8", "--warmup", "300ms", "--duration", "1500ms",
	}, arguments...)...)
	if err != nil {
		return 0, 0, err
	}
	return r[0].FPS, r[0].CPU, nil
}

// throughput is B2: the loop beside ONNX Runtime's own run, with as many threads, that wait alike.
func (c *cpu) throughput(ctx context.Context, s *sheet) error {
	model, remove, err := network("640")
	if err != nil {
		return err
	}
	defer remove()
	for _, spin := range []bool{false, true} {
		for _, threads := range []int{1, 2} {
			what, waits := "asleep", "0"
			if spin {
				what, waits = "spinning", "1"
			}
			if spin && threads == 1 {
				continue // a thread alone waits for nobody
			}
			var ours, floors, processor figures
			err := turns(ctx, c.rounds, func() error {
				rate, cpu, err := c.daemon(ctx, model, "--threads", strconv.Itoa(threads), "--spin="+strconv.FormatBool(spin))
				ours, processor = append(ours, rate), append(processor, cpu)
				return err
			}, func() error {
				f, err := floorOf(ctx, nil, filepath.Join(c.floors, "onnxruntime"), c.library, model, strconv.Itoa(threads), waits, "1.5")
				floors = append(floors, f.Rate)
				return err
			})
			if err != nil {
				return err
			}
			aim := 0.97
			if threads > 1 {
				aim = 0.94
			}
			s.atLeast("B2", fmt.Sprintf("whole loop over ONNX Runtime alone, %d threads, that wait %s", threads, what), ratios(ours, floors), aim,
				tolerance, fmt.Sprintf("%.1f of %.1f a second, %.1f ms of CPU a frame", ours.median(), floors.median(), processor.median()/1e3))
		}
	}
	return nil
}

// openCV is B3: the loop on ONNX Runtime beside OpenCV's own engine, which is given its input ready.
func (c *cpu) openCV(ctx context.Context, s *sheet) error {
	program := filepath.Join(c.floors, "opencv")
	if _, err := os.Stat(program); err != nil {
		return errors.New("no floor program of OpenCV's DNN (libopencv-dnn-dev)")
	}
	// A network of YOLOv8n's size and outputs that OpenCV 4.6 reads: not that of testnet, and not the demo model.
	const model = "engine/enginetest/testdata/detector.onnx"
	var ours, theirs figures
	err := turns(ctx, c.rounds, func() error {
		rate, _, err := c.daemon(ctx, model, "--layout", "yolov8", "--threads", "2")
		ours = append(ours, rate)
		return err
	}, func() error {
		f, err := floorOf(ctx, nil, program, model, "640", "2", "1.5")
		theirs = append(theirs, f.Rate)
		return err
	})
	if err != nil {
		return err
	}
	s.atLeast("B3", "whole loop on ONNX Runtime over OpenCV's DNN alone, 2 threads", ratios(ours, theirs), 2.5, tolerance,
		fmt.Sprintf("%.1f and %.1f a second", ours.median(), theirs.median()))
	return nil
}

// allocations is B5: no message client, then with one.
func (c *cpu) allocations(ctx context.Context, s *sheet) error {
	model, remove, err := network("32")
	if err != nil {
		return err
	}
	defer remove()
	for _, run := range []struct {
		what, mqtt, frames string
		aim                float64
	}{
		{"heap allocations a frame, 100,000 frames without a broker", "off", "100000x", 0.01},
		{"the same with message client and broker in the process", "embedded", "10000x", 60},
	} {
		r, err := c.bench(ctx, "--engine", "onnxruntime=cpu", "--model", model, "--threads", "1", "--images", "8",
			"--width", "64", "--height", "64", "--warmup", "500x", "--duration", run.frames, "--mqtt", run.mqtt)
		if err != nil {
			return err
		}
		s.atMost("B5", run.what, figures{r[0].Allocations}, run.aim, 0, "", fmt.Sprintf("%d frames", r[0].Frames))
	}
	return nil
}
