package diagnose

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/dl"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/capture/nvdec"
	"github.com/edge-infer/edge-infer/capture/source"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/cuda"
	"github.com/edge-infer/edge-infer/engine/onnxruntime"
	"github.com/edge-infer/edge-infer/engine/tensorrt"
)

// gpuRequired reports whether an unusable GPU is a failure.
func (r *request) gpuRequired() bool {
	return r.Engine.Backend == tensorrt.Name || r.Engine.FirstGPU() > 0 || cuda.Prober{Root: r.Root}.Jetson() != nil
}

// withoutDriver returns the reason why there is no CUDA driver, beside the check's name.
func withoutDriver(reason string) string {
	if reason == "no CUDA driver: libcuda.so.1: cannot open shared object file: No such file or directory" {
		return "not installed"
	}
	return strings.TrimPrefix(reason, "no CUDA driver: ")
}

// driver checks the CUDA driver and its GPUs.
func (r *request) driver(add func(Check)) {
	report := cuda.Prober{Root: r.Root}.Probe()
	if err := report.Err(); err != nil {
		found := report.Driver.Path != "" && len(report.Devices) == 0 && report.Driver.Version == 0
		failed := r.gpuRequired() || found && !strings.Contains(report.Reason, "no device")
		add(failIf(failed, Check{Detail: withoutDriver(report.Reason), Remedy: report.Hint}))
		return
	}
	add(ok("", "%s, CUDA %s", report.Driver.Path, cuda.VersionText(report.Driver.Version)))
	for i := range report.Devices {
		g := &report.Devices[i]
		kind := "own memory"
		if g.Integrated {
			kind = "shares the machine's memory"
		}
		c := ok(fmt.Sprintf("GPU %d", g.Ordinal), "%s, %s, %s, %s", g.Name, g.ComputeCapability(), gibibytes(g.Memory), kind)
		if g.Exclusive {
			c.Status = Warn
			c.Remedy = "nvidia-smi -c DEFAULT"
			c.Detail += ", exclusive: one process at a time"
		}
		add(c)
		for j := range report.NVML.Devices {
			if m := &report.NVML.Devices[j]; m.UUID == g.UUID && len(m.Throttled) > 0 {
				add(warn(c.Name, "improve cooling and power supply, or raise the cameras' interval", "throttled: %s",
					strings.Join(m.Throttled, ", ")))
			}
		}
	}
	if r.Engine.FirstGPU() >= len(report.Devices) {
		add(fail(fmt.Sprintf("GPU %d", r.Engine.FirstGPU()), "set --gpu to an existing GPU", "no GPU with this number"))
		return
	}
	gpu := &report.Devices[r.Engine.FirstGPU()]
	busy := -1.0
	for _, m := range report.NVML.Devices {
		if m.UUID == gpu.UUID {
			busy = m.Decoder
		}
	}
	add(videoDecoder(gpu, busy))
}

// videoDecoder checks the GPU's decoders of RTSP video. busy is their load in percent, below 0 if it is unknown.
func videoDecoder(g *cuda.Facts, busy float64) Check {
	const name, software = "NVDEC", "RTSP video is decoded in software"
	found, err := nvdec.Probe(g.Ordinal)
	switch {
	case err != nil && g.Integrated: // Orin and Xavier have none
		return ok(name, "none, %s", software)
	case err != nil:
		detail, _ := explain(err)
		const remedy = "install the driver's libnvcuvid; start a container with NVIDIA_DRIVER_CAPABILITIES=compute,utility,video"
		return warn(name, remedy, "%s; %s", strings.TrimPrefix(detail, "open: no NVDEC: "), software)
	case len(found) == 0:
		return ok(name, "not on this GPU: %s", software)
	}
	names := make([]string, len(found))
	for i, codec := range found {
		names[i] = codec.String()
	}
	detail := strings.Join(names, ", ") + " of RTSP cameras"
	if busy >= 0 {
		detail += fmt.Sprintf("; %.0f %% busy", busy)
	}
	return ok(name, "%s", detail)
}

// tensorrt loads the library, its plugins and its parser. The library needs the driver to be loaded first.
func (r *request) tensorrt(add func(Check)) {
	report := cuda.Prober{Root: r.Root}.Probe()
	options := tensorrt.LibraryOptions{}
	if r.Engine.Backend == tensorrt.Name {
		options.Path = r.Engine.Library
	}
	library, attempts := tensorrt.Search(options)
	if library == nil {
		add(r.noTensorRT(options.Path, attempts))
		return
	}
	c := ok("", "%s, version %s", library.Path, library.Version)
	if !library.Builder {
		c.Status = Warn
		c.Detail += ", runs plans but cannot build them"
		c.Remedy = "install the full TensorRT to build plans"
	}
	add(c)
	if library.Builder {
		add(companion("TensorRT plugins", "libnvinfer_plugin", library.MissingReason, "networks with plugin layers need it"))
		if library.Parser {
			add(ok("ONNX parser", "%s", library.ParserPath))
		} else {
			add(companion("ONNX parser", "libnvonnxparser", library.MissingReason, "TensorRT cannot build plans of ONNX files"))
		}
	}
	if jetson := report.Jetson; jetson != nil && hasDLA(jetson.Model) {
		add(dlaCompiler())
	}
	if report.Err() == nil && r.Engine.FirstGPU() < len(report.Devices) {
		gpu := &report.Devices[r.Engine.FirstGPU()]
		if c := supported(library.Version, gpu); c.Status != OK {
			add(c)
		}
		r.plan(library.Version, gpu, add)
	}
}

// noTensorRT distinguishes an absent library from one that does not load.
func (r *request) noTensorRT(given string, attempts []tensorrt.RejectedLibrary) Check {
	broken := slices.DeleteFunc(slices.Clone(attempts), func(a tensorrt.RejectedLibrary) bool {
		name, rest, _ := strings.Cut(a.Reason, ": ")
		return strings.Contains(name, "libnvinfer") && strings.HasPrefix(rest, "cannot open shared object file: No such file")
	})
	const install = "on a Jetson: sudo apt install nvidia-jetpack; elsewhere: install TensorRT 8.5 or newer, or set $" +
		tensorrt.LibraryEnvironment + " to its directory"
	if len(broken) == 0 {
		named := given != "" || os.Getenv(tensorrt.LibraryEnvironment) != ""
		detail := "not installed"
		if named && len(attempts) > 0 {
			detail = attempts[0].Reason
		}
		return failIf(named || r.gpuRequired(), Check{Detail: detail, Remedy: install})
	}
	var reasons []string
	for _, a := range broken {
		if !slices.Contains(reasons, a.Reason) {
			reasons = append(reasons, a.Reason)
		}
	}
	return fail(
		"",
		"reinstall TensorRT, or set another one with $"+tensorrt.LibraryEnvironment,
		"does not load: %s",
		strings.Join(reasons, "; "),
	)
}

// companion checks a library that libnvinfer needs; missing holds the loader's messages about absent ones.
func companion(name, library, missing, effect string) Check {
	for line := range strings.Lines(missing) {
		if strings.Contains(line, library) {
			return warn(name, "install the package of "+library+", in the same version as libnvinfer", "%s: %s", effect, strings.TrimSpace(line))
		}
	}
	return ok(name, "%s", library)
}

// hasDLA reports whether a board has a deep learning accelerator: Xavier and Orin, but not the Orin Nano.
func hasDLA(model string) bool {
	return strings.Contains(model, "Xavier") || strings.Contains(model, "Orin") && !strings.Contains(model, "Orin Nano")
}

func dlaCompiler() Check {
	const name, file = "DLA compiler", "libnvdla_compiler.so"
	library := dl.New(file, dl.RTLD_LAZY)
	if err := library.Open(); err != nil {
		return warn(name, "sudo apt install nvidia-l4t-dla-compiler; in a container, start it with --runtime nvidia", "%v", err)
	}
	return ok(name, "%s", file)
}

// minimumCapability lists the TensorRT versions that dropped GPUs below a compute capability, newest first.
var minimumCapability = [...]struct {
	since      [2]int // version
	capability int
}{{[2]int{10, 5}, 75}, {[2]int{10, 0}, 70}, {[2]int{9, 0}, 60}, {[2]int{8, 5}, 50}}

// firstBlackwell is the first version that supports compute capability 10 and above.
var firstBlackwell = [2]int{10, 8}

// supported checks that a version of TensorRT supports a GPU.
func supported(version tensorrt.Version, gpu *cuda.Facts) Check {
	const name = "TensorRT and GPU"
	at, capability := [2]int{version.Major, version.Minor}, 10*gpu.Major+gpu.Minor
	for _, g := range minimumCapability {
		if slices.Compare(at[:], g.since[:]) < 0 {
			continue
		}
		if capability < g.capability {
			return fail(name, "use an older TensorRT, or --engine onnxruntime", "TensorRT %s has no kernels for %s (%s)", version, gpu.Name,
				gpu.ComputeCapability())
		}
		break
	}
	if capability >= 100 && slices.Compare(at[:], firstBlackwell[:]) < 0 {
		return fail(name, "update TensorRT to 10.8 or newer", "TensorRT %s does not support %s (%s)", version, gpu.Name, gpu.ComputeCapability())
	}
	return ok(name, "supported")
}

// plan checks that a model that is an engine plan fits the machine.
func (r *request) plan(version tensorrt.Version, gpu *cuda.Facts, add func(Check)) {
	const name = "engine plan"
	if r.Model.Path == "" {
		return
	}
	file, err := os.ReadFile(r.Model.Path)
	if err != nil || !tensorrt.IsPlan(file) {
		return // the check of the model reports why
	}
	facts, _, err := tensorrt.ReadPlan(file)
	switch {
	case err != nil:
		add(fail(name, "run edge-infer build again", "%s: %v", r.Model.Path, err))
	case facts.Architecture != "" && facts.Architecture != gpu.ComputeCapability():
		add(fail(name, "run edge-infer build on this machine", "%s is for %s, this GPU is %s", r.Model.Path, facts.Architecture,
			gpu.ComputeCapability()))
	case facts.Version != "" && !strings.HasPrefix(version.String()+".", facts.Version+".") &&
		!strings.HasPrefix(facts.Version+".", version.String()+"."):
		add(warn(name, "run edge-infer build on this machine if it does not load", "%s was built by TensorRT %s, this is %s", r.Model.Path,
			facts.Version, version))
	default:
		add(ok(name, "%s fits TensorRT %s on %s", r.Model.Path, version, gpu.ComputeCapability()))
	}
}

func (r *request) onnxruntime(add func(Check)) {
	options := engine.Options{Provider: engine.CPU, Device: r.Engine.FirstGPU()}
	named := os.Getenv("EDGE_INFER_ONNXRUNTIME") != ""
	if strings.HasPrefix(r.Engine.Backend, "onnxruntime") {
		options.Library = r.Engine.Library
		named = true
	}
	path, version, err := onnxruntime.Find(options)
	if err != nil {
		detail, remedy := explain(err)
		if !named && nowhere(detail) {
			detail = "not installed"
		}
		add(failIf(named, Check{Detail: detail, Remedy: remedy}))
		return
	}
	add(ok("", "%s, version %s", path, version))
}

// nowhere reports whether a library is at none of the places that a message lists after "tried". Other reasons, such as a library for
// another machine, are for the user to read.
func nowhere(message string) bool {
	_, places, found := strings.Cut(message, "tried ")
	return found && !slices.ContainsFunc(strings.Split(places, "; "), func(place string) bool {
		return !strings.HasSuffix(place, ": no such file") && !strings.HasSuffix(place, ": No such file or directory")
	})
}

// explain splits an error into its message and its hint.
func explain(err error) (detail, remedy string) {
	if e := (*engine.Error)(nil); errors.As(err, &e) && e.Message != "" {
		return e.Message, e.Hint
	}
	if e := (*capture.Error)(nil); errors.As(err, &e) {
		plain := *e
		plain.Hint = ""
		return plain.Error(), e.Hint
	}
	return err.Error(), ""
}

// camera captures one frame.
func (r *request) camera(ctx context.Context) Check {
	start := time.Now()
	frame, rate, err := firstFrame(ctx, r.Camera)
	if err != nil {
		detail, remedy := explain(err)
		return fail("", cmp.Or(remedy, "check the address"), "%s", detail)
	}
	c := ok("", "%dx%d %s, first image after %.1f s", frame.Width, frame.Height, frame.Format, time.Since(start).Seconds())
	if rate > 0 {
		c.Detail += fmt.Sprintf(", %.4g fps", rate)
	}
	return c
}

// firstFrame captures a frame and returns it without its data, with the source's frame rate.
func firstFrame(ctx context.Context, uri string) (frame capture.Frame, rate float64, err error) {
	opened, err := source.Open(ctx, uri, capture.Options{})
	if err != nil {
		return frame, 0, err
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	pool := &capture.Pool{Buffers: 1}
	defer pool.Close()
	if frame, err = opened.Next(pool); err != nil {
		if errors.Is(err, io.EOF) {
			err = fmt.Errorf("%s: no frames", capture.Redact(uri))
		}
		return frame, 0, err
	}
	frame.Release()
	frame.Data = nil
	return frame, opened.FPS(), nil
}
