package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// gpu runs the benchmarks that need a GPU with TensorRT.
type gpu struct {
	*options
	baseline, library, kernels, model, work, kernelTest, plain string
	level                                                      int
}

func (g *gpu) parts() []part {
	return []part{
		{"plans", func(ctx context.Context, s *report) error {
			return g.build(ctx, s, "yolov8n-fp16", "yolov8n-fp32", "demo-fp16")
		}},
		{"B1", g.throughput},
		{"B7", g.paced},
		{"B15", g.cameras},
		{"B9", g.letterbox},
		{"sweep", func(ctx context.Context, s *report) error { return g.sweep(ctx, s, "yolov8n-half", "yolov8n-fp16") }},
		{"engines", g.engines},
	}
}

// plan is an engine plan to measure.
type plan struct {
	name      string
	maxBatch  int
	arguments []string
}

func (g *gpu) all() []plan {
	level := strconv.Itoa(g.level)
	return []plan{
		{"yolov8n-fp16", 16, []string{g.model, "--precision", "fp16", "--opt-level", level}},
		{"yolov8n-fp32", 1, []string{g.model, "--precision", "fp32", "--opt-level", "0"}},
		{"demo-fp16", 1, []string{"--precision", "fp16", "--opt-level", "0"}},
		{"yolov8n-half", 16, []string{halfOf(g.model), "--precision", "fp16", "--opt-level", level}},
	}
}

// halfOf returns the path of the same network with float16 inputs and outputs.
func halfOf(model string) string { return strings.TrimSuffix(model, ".onnx") + "-half.onnx" }

func (g *gpu) path(name string) string { return filepath.Join(g.work, name+".plan") }

// build builds the named plans that do not exist yet.
func (g *gpu) build(ctx context.Context, s *report, names ...string) error {
	var failed []error
	for _, p := range g.all() {
		if _, err := os.Stat(g.path(p.name)); err == nil || !slices.Contains(names, p.name) {
			continue
		}
		batch := "1"
		if p.maxBatch > 1 {
			batch = fmt.Sprintf("1,%d,%d", p.maxBatch, p.maxBatch)
		}
		arguments := append([]string{"build"}, p.arguments...)
		arguments = append(arguments, "--library", g.library, "--batch", batch, "--timing-cache", filepath.Join(g.work, "timings"),
			"-o", g.path(p.name))
		begun := time.Now()
		if _, err := output(ctx, g.environment(), g.program, arguments...); err != nil {
			failed = append(failed, err)
			continue
		}
		s.info("plans", p.name, figures{time.Since(begun).Seconds()}, "s", "build time at --opt-level "+optLevel(p.arguments))
	}
	return errors.Join(failed...)
}

func optLevel(arguments []string) string {
	for i, word := range arguments {
		if word == "--opt-level" {
			return arguments[i+1]
		}
	}
	return "-"
}

// environment makes the loader find TensorRT's libraries; the caller's LD_LIBRARY_PATH may name those of ONNX Runtime's CUDA provider.
func (g *gpu) environment() []string {
	return []string{
		"LD_LIBRARY_PATH=" + g.library + ":" + os.Getenv("LD_LIBRARY_PATH"), "EDGE_INFER_TENSORRT=" + g.library, "CUDA_MODULE_LOADING=LAZY",
		"XDG_CACHE_HOME=" + filepath.Join(g.work, "cache"),
	}
}

// daemon runs the whole frame loop on a plan.
func (g *gpu) daemon(ctx context.Context, name string, arguments ...string) (loopResult, error) {
	r, err := g.bench(ctx, append([]string{"--engine", "tensorrt", "--library", g.library, "--model", g.path(name)}, arguments...)...)
	if err != nil {
		return loopResult{}, err
	}
	first := &r[0]
	fairness := 0.0
	if first.Fairness != nil {
		fairness = *first.Fairness
	}
	return loopResult{
		rate: first.FPS, p50: first.P50 * 1e3, p99: first.P99 * 1e3, p999: first.P999 * 1e3, cpu: first.CPU, fairness: fairness,
		late: float64(first.Late), frames: float64(first.Frames),
	}, nil
}

// loopResult is the result of one run of the frame loop; latencies are in microseconds.
type loopResult struct{ rate, p50, p99, p999, cpu, fairness, late, frames float64 }

// bare runs the baseline on a plan; with rate 0 its second half is closed-loop instead of paced.
func (g *gpu) bare(ctx context.Context, name string, batch int, seconds, paced, rate float64) (baselineResult, error) {
	library, err := filepath.Glob(filepath.Join(g.library, "libnvinfer.so.[0-9]*"))
	if err != nil || len(library) == 0 {
		return baselineResult{}, fmt.Errorf("no libnvinfer.so in %s", g.library)
	}
	return runBaseline(ctx, g.environment(), g.baseline, library[0], g.path(name), g.kernels, "1920", "1080", number(seconds), "mapped",
		"confidence=0.25", fmt.Sprintf("batch=%d", batch), "rate="+number(rate), "paced="+number(paced))
}

// throughput is B1.
func (g *gpu) throughput(ctx context.Context, s *report) error {
	address, end, err := openBroker()
	if err != nil {
		return err
	}
	defer end()
	for _, name := range []string{"yolov8n-fp32", "yolov8n-fp16", "demo-fp16"} {
		var measured, baselines, network figures
		err := alternate(ctx, g.rounds, func() error {
			d, err := g.daemon(ctx, name, "--mqtt", address, "--duration", "3s", "--slots", "2")
			measured = append(measured, d.rate)
			return err
		}, func() error {
			f, err := g.bare(ctx, name, 1, 3, 0.1, 0)
			baselines, network = append(baselines, f.Rate), append(network, f.Network)
			return err
		})
		if err != nil {
			s.skip("B1", name+": "+err.Error())
			continue
		}
		target := 0.97
		if network.median() < 1000 {
			target = 0.93
		}
		s.atLeast("B1", name+": frames/s / the baseline's", ratios(measured, baselines), target, tolerance,
			fmt.Sprintf("%.0f of %.0f fps, network %.0f us", measured.median(), baselines.median(), network.median()))
	}
	return nil
}

// paced is B4, B6 and B7: 16 cameras at 30 fps each, the same request rate for the baseline.
func (g *gpu) paced(ctx context.Context, s *report) error {
	address, end, err := openBroker()
	if err != nil {
		return err
	}
	defer end()
	const cameras, rate, frames = 16, 480, 4920 // six rounds are more than 24,576
	name := "yolov8n-fp16"
	var measured, baselines struct{ p50, tail, far, cpu figures }
	err = alternate(ctx, g.rounds, func() error {
		d, err := g.daemon(ctx, name, "--mqtt", address, "--cameras", strconv.Itoa(cameras), "--rate", "30", "--duration",
			fmt.Sprintf("%dx", frames), "--slots", "2")
		measured.p50 = append(measured.p50, d.p50)
		measured.tail = append(measured.tail, d.p99/d.p50)
		measured.far = append(measured.far, d.p999/d.p50)
		measured.cpu = append(measured.cpu, d.cpu)
		return err
	}, func() error {
		f, err := g.bare(ctx, name, 1, 0.5, float64(frames)/rate, rate)
		baselines.p50 = append(baselines.p50, f.P50)
		baselines.tail = append(baselines.tail, f.P99/f.P50)
		baselines.far = append(baselines.far, f.P999/f.P50)
		baselines.cpu = append(baselines.cpu, f.PacedCPU)
		return err
	})
	if err != nil {
		return err
	}
	note := fmt.Sprintf("%s, %d frames per round at %d fps", name, frames, rate)
	s.atMost(
		"B4",
		"CPU time per frame minus the baseline's",
		differences(measured.cpu, baselines.cpu),
		100,
		0,
		"us",
		fmt.Sprintf(
			"%.0f and %.0f us; the baseline spins while waiting, and neither tracks nor publishes",
			measured.cpu.median(),
			baselines.cpu.median(),
		),
	)
	s.atMost("B6", "p50 from due to hand-over, minus the baseline's to output", differences(measured.p50, baselines.p50), 150, 0, "us",
		fmt.Sprintf("%.0f and %.0f us; %s", measured.p50.median(), baselines.p50.median(), note))
	s.atMost("B7", "p99/p50 / the baseline's", ratios(measured.tail, baselines.tail), 1.05, tolerance, "ratio", note)
	s.atMost("B7", "p99/p50", measured.tail, 1.10, tolerance, "ratio", fmt.Sprintf("baseline %.3f", baselines.tail.median()))
	s.atMost("B7", "p99.9/p50", measured.far, 1.30, tolerance, "ratio", fmt.Sprintf("baseline %.3f", baselines.far.median()))
	return nil
}

// cameras is B15.
func (g *gpu) cameras(ctx context.Context, s *report) error {
	const name, batch = "yolov8n-fp16", 8
	var measured, baselines, fairness figures
	err := alternate(ctx, g.rounds, func() error {
		d, err := g.daemon(ctx, name, "--batch", strconv.Itoa(batch), "--duration", "3s", "--slots", "2")
		measured, fairness = append(measured, d.rate), append(fairness, d.fairness)
		return err
	}, func() error {
		f, err := g.bare(ctx, name, batch, 3, 0.1, 0)
		baselines = append(baselines, f.Rate)
		return err
	})
	if err != nil {
		return err
	}
	s.atLeast("B15", "8 cameras in batches of 8 / the baseline's rate", ratios(measured, baselines), 0.95, tolerance,
		fmt.Sprintf("%.0f of %.0f fps", measured.median(), baselines.median()))
	s.atLeast("B15", "slowest / fastest camera", fairness, 0.97, tolerance, "")

	// The largest number of cameras of 30 fps with fewer than 0.1 % late frames.
	possible := baselines.median() / 30
	low, high := 0, min(256, int(1.1*possible)+1)
	for high-low > max(1, int(possible/50)) {
		n := (low + high) / 2
		if low == 0 {
			n = int(0.9 * float64(high))
		}
		d, err := g.daemon(ctx, name, "--batch", strconv.Itoa(min(batch, n)), "--cameras", strconv.Itoa(n), "--rate", "30", "--duration", "4s",
			"--slots", "2")
		if err != nil {
			return err
		}
		if d.late < 0.001*d.frames {
			low = n
		} else {
			high = n
		}
	}
	note := fmt.Sprintf("%d cameras, the baseline's rate would serve %.0f; found by bisection, 4 s each", low, possible)
	if possible > 256 {
		note += "; bench has 256 cameras at most"
	}
	s.atLeast("B15", "cameras of 30 fps with fewer than 0.1 % late, / the baseline's", figures{float64(low) / possible}, 0.90, 0, note)
	return nil
}

// letterboxLine matches the log line of TestLetterboxTime for 1080p.
var letterboxLine = regexp.MustCompile(
	`BGR +1920x1080 +-> 640 float32: device memory +([0-9.]+) us, mapped +([0-9.]+) us; copy of .* \(ratio ([0-9.]+)\), at`,
)

// letterbox is B9.
func (g *gpu) letterbox(ctx context.Context, s *report) error {
	if g.kernelTest == "" {
		return errors.New("needs -kernel-test")
	}
	var times, ratio, gain figures
	plainError := ""
	for range max(g.rounds/2, 1) {
		// The test logs its figures even if it fails because it misses a limit of its own.
		data, err := output(ctx, onGPU, g.kernelTest, "-test.run", "LetterboxTime", "-test.v")
		found := letterboxLine.FindSubmatch(data)
		if found == nil {
			return errors.Join(errors.New("the kernel test logged no figures for 1920x1080"), err)
		}
		us, _ := strconv.ParseFloat(string(found[1]), 64)
		r, _ := strconv.ParseFloat(string(found[3]), 64)
		times, ratio = append(times, us), append(ratio, r)
		four, err := g.fourKernels(ctx)
		if err != nil {
			plainError = err.Error()
		}
		gain = append(gain, four/us)
	}
	s.atMost("B9", "letterbox kernel of 1080p to 640", times, 20, 0, "us", "100 launches in a graph, images rotate beyond the cache")
	s.atMost("B9", "letterbox / device copy of the same bytes", ratio, 2, tolerance, "ratio", "")
	data, err := output(ctx, onGPU, g.kernelTest, "-test.run", "LetterboxEqualsTheCPU", "-test.v")
	passed := err == nil && bytes.Contains(data, []byte("--- PASS"))
	s.pass("B9", "at most one level from the CPU's result", passed, "TestLetterboxEqualsTheCPU")
	if plainError != "" {
		s.skip("B9", "four kernels of PyTorch: "+plainError)
	} else {
		s.atLeast("B9", "separate resize, border, scale and transpose / the kernel", gain, 5, tolerance, "PyTorch, FP16, a CUDA graph")
	}
	return nil
}

// onGPU enables the kernel tests, which are skipped by default.
var onGPU = []string{"EDGE_INFER_TEST_GPU=1"}

// fourKernels returns the time of the same letterbox in PyTorch, in microseconds per image.
func (g *gpu) fourKernels(ctx context.Context) (float64, error) {
	data, err := output(ctx, nil, "python3", g.plain)
	if err != nil {
		return 0, err
	}
	return strconv.ParseFloat(string(bytes.TrimSpace(data)), 64)
}

// sweep measures plans with batches of 1 to 16.
func (g *gpu) sweep(ctx context.Context, s *report, names ...string) error {
	if err := g.build(ctx, s, names...); err != nil {
		s.skip("plans", err.Error())
	}
	for _, name := range names {
		document := filepath.Join(g.work, "sweep-"+name)
		r, err := g.bench(ctx, "--engine", "tensorrt", "--library", g.library, "--model", g.path(name), "--what", "all", "--batch", "1,4,8,16",
			"--duration", "2s", "--width", "640", "--height", "640", "--slots", "2", "--output", document+".json",
			"--require", "lost<=0")
		if err != nil {
			s.skip("sweep", name+": "+err.Error())
			continue
		}
		for i := range r {
			one := &r[i]
			s.info("sweep", fmt.Sprintf("%s, %s, batch %d", name, one.What, one.Batch), figures{one.FPS}, "a second",
				fmt.Sprintf("p50 %.3f ms, p99 %.3f ms, CPU %.0f us per frame", one.P50, one.P99, one.CPU))
		}
		_, err = output(ctx, nil, g.program, "bench", "--compare", document+".json", document+".json", "--require",
			"throughput@transfers@16>=10000")
		note := "--require throughput@transfers@16>=10000"
		if err != nil {
			note = err.Error()
		}
		s.pass("sweep", name+": 10,000 images/s at batch 16", err == nil, note)
	}
	return nil
}

// engines compares TensorRT with ONNX Runtime.
func (g *gpu) engines(ctx context.Context, s *report) error {
	for _, batch := range []string{"1", "8"} {
		document := filepath.Join(g.work, "engines-"+batch+".json")
		_ = os.Remove(document)
		data, err := output(ctx, g.environment(), g.program, "bench", "--model", g.model, "--engine", "tensorrt,onnxruntime=cuda,onnxruntime=cpu",
			"--what", "transfers", "--batch", batch, "--duration", "3s", "--opt-level", "0", "--images", "32", "--output", document)
		fmt.Printf("TensorRT and ONNX Runtime, batch %s:\n%s", batch, data)
		if err != nil {
			s.skip("engines", "batch "+batch+": "+err.Error())
		}
	}
	return nil
}
