package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// cpu runs the benchmarks that need no GPU, in the root of a checkout.
type cpu struct {
	*options
	baselines, library string
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
		{"GPU", func(_ context.Context, s *report) error {
			for _, name := range []string{"B1", "B4", "B6", "B7", "B9", "B15"} {
				s.skip(name, "needs a GPU with TensorRT: acceptance gpu, see docs/BENCHMARKS.md")
			}
			return nil
		}},
	}
}

// network writes a YOLOv8n-shaped network with the given input side into a temporary directory, which remove deletes.
func network(side string) (path string, remove func(), err error) {
	dir, err := os.MkdirTemp("", "acceptance")
	if err != nil {
		return "", nil, err
	}
	path = filepath.Join(dir, "yolov8n.onnx")
	return path, func() { _ = os.RemoveAll(dir) }, writeNetwork([]string{path, side})
}

// daemon returns the frames per second of the whole loop, flat out, and its CPU time per frame.
func (c *cpu) daemon(ctx context.Context, model string, arguments ...string) (rate, processor float64, err error) {
	r, err := c.bench(ctx, append([]string{
		"--engine", "onnxruntime=cpu", "--model", model, "--images", "8", "--warmup", "300ms", "--duration", "1500ms",
	}, arguments...)...)
	if err != nil {
		return 0, 0, err
	}
	return r[0].FPS, r[0].CPU, nil
}

// throughput is B2: the loop compared with ONNX Runtime alone, with the same threads and the same way of waiting.
func (c *cpu) throughput(ctx context.Context, s *report) error {
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
				continue // a single thread does not wait
			}
			var measured, baselines, processor figures
			err := alternate(ctx, c.rounds, func() error {
				rate, cpu, err := c.daemon(ctx, model, "--threads", strconv.Itoa(threads), "--spin="+strconv.FormatBool(spin))
				measured, processor = append(measured, rate), append(processor, cpu)
				return err
			}, func() error {
				f, err := runBaseline(ctx, nil, filepath.Join(c.baselines, "onnxruntime"), c.library, model, strconv.Itoa(threads), waits, "1.5")
				baselines = append(baselines, f.Rate)
				return err
			})
			if err != nil {
				return err
			}
			target := 0.97
			if threads > 1 {
				target = 0.94
			}
			s.atLeast(
				"B2",
				fmt.Sprintf("whole loop / ONNX Runtime alone, %d threads, waiting %s", threads, what),
				ratios(measured, baselines),
				target,
				tolerance,
				fmt.Sprintf("%.1f of %.1f fps, %.1f ms of CPU per frame", measured.median(), baselines.median(), processor.median()/1e3),
			)
		}
	}
	return nil
}

// openCV is B3: the loop on ONNX Runtime compared with OpenCV's DNN module on a prepared input.
func (c *cpu) openCV(ctx context.Context, s *report) error {
	program := filepath.Join(c.baselines, "opencv")
	if _, err := os.Stat(program); err != nil {
		return errors.New("the baseline program for OpenCV's DNN is missing (install libopencv-dnn-dev and build again)")
	}
	// A network of YOLOv8n's size and outputs that OpenCV 4.6 reads: not that of testnet, and not the demo model.
	const model = "engine/enginetest/testdata/detector.onnx"
	var measured, opencv figures
	err := alternate(ctx, c.rounds, func() error {
		rate, _, err := c.daemon(ctx, model, "--layout", "yolov8", "--threads", "2")
		measured = append(measured, rate)
		return err
	}, func() error {
		f, err := runBaseline(ctx, nil, program, model, "640", "2", "1.5")
		opencv = append(opencv, f.Rate)
		return err
	})
	if err != nil {
		return err
	}
	s.atLeast("B3", "whole loop on ONNX Runtime / OpenCV's DNN alone, 2 threads", ratios(measured, opencv), 2.5, tolerance,
		fmt.Sprintf("%.1f and %.1f fps", measured.median(), opencv.median()))
	return nil
}

// allocations is B5, without and with an MQTT client.
func (c *cpu) allocations(ctx context.Context, s *report) error {
	model, remove, err := network("32")
	if err != nil {
		return err
	}
	defer remove()
	for _, run := range []struct {
		what, mqtt, frames string
		target             float64
	}{
		{"heap allocations per frame, 100,000 frames without a broker", "off", "100000x", 0.01},
		{"the same with MQTT client and broker in the process", "embedded", "10000x", 60},
	} {
		r, err := c.bench(ctx, "--engine", "onnxruntime=cpu", "--model", model, "--threads", "1", "--images", "8",
			"--width", "64", "--height", "64", "--warmup", "500x", "--duration", run.frames, "--mqtt", run.mqtt)
		if err != nil {
			return err
		}
		s.atMost("B5", run.what, figures{r[0].Allocations}, run.target, 0, "", fmt.Sprintf("%d frames", r[0].Frames))
	}
	return nil
}
