package doctor

import (
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
	"github.com/edge-infer/edge-infer/capture/source"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/cuda"
	"github.com/edge-infer/edge-infer/engine/isolate"
	"github.com/edge-infer/edge-infer/engine/onnxruntime"
	"github.com/edge-infer/edge-infer/engine/tensorrt"
)

// Command is the hidden command of the child processes; Serve is its body.
const Command = "examine"

// Serve is the child process: it reads a request, examines and writes what it finds. The end of the input ends the process at once,
// wherever it hangs.
func Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	return serve(ctx, in, out, (*Request).model)
}

// serve has model make the examination that takes longest.
func serve(ctx context.Context, in io.Reader, out io.Writer, model func(*Request, context.Context) Finding) error {
	var r Request
	return isolate.Serve(ctx, in, out, &r, func(ctx context.Context, _ []byte, answer func(any)) error {
		tell := func(f Finding) { answer(f) }
		switch r.Examine {
		case driverExamination:
			r.driver(tell)
		case tensorrtExamination:
			r.tensorrt(tell)
		case onnxruntimeExamination:
			r.onnxruntime(tell)
		case cameraExamination:
			r.camera(ctx, tell)
		case ModelExamination:
			tell(model(&r, ctx))
		default:
			return fmt.Errorf("examination: no %q", r.Examine)
		}
		return nil
	})
}

// gpuWanted reports whether a GPU that cannot be used is a failure.
func (r *Request) gpuWanted() bool {
	return r.Engine.Backend == tensorrt.Name || r.Engine.FirstGPU() > 0 || cuda.Prober{Root: r.Root}.Jetson() != nil
}

// driver says what the CUDA driver offers.
func (r *Request) driver(tell func(Finding)) {
	report := cuda.Prober{Root: r.Root}.Probe()
	if err := report.Err(); err != nil {
		found := report.Driver.Path != "" && len(report.Devices) == 0 && report.Driver.Version == 0
		tell(worse(r.gpuWanted() || found && !strings.Contains(report.Reason, "no device"), Finding{Detail: report.Reason, Fix: report.Hint}))
		return
	}
	tell(ok("", "%s, CUDA %s", report.Driver.Path, cuda.VersionText(report.Driver.Version)))
	for i := range report.Devices {
		g := &report.Devices[i]
		kind := "own memory"
		if g.Integrated {
			kind = "shares the machine's memory"
		}
		f := ok(fmt.Sprintf("GPU %d", g.Ordinal), "%s, %s, %s, %s", g.Name, g.ComputeCapability(), gibibytes(g.Memory), kind)
		if g.Exclusive {
			f.Status, f.Fix = Warn, "nvidia-smi -c DEFAULT"
			f.Detail += ", exclusive: one process at a time"
		}
		tell(f)
		for j := range report.NVML.Devices {
			if m := &report.NVML.Devices[j]; m.UUID == g.UUID && len(m.Throttled) > 0 {
				tell(warn(f.Check, "improve cooling and power supply, or raise the cameras' interval", "slowed down now: %s",
					strings.Join(m.Throttled, ", ")))
			}
		}
	}
	if r.Engine.FirstGPU() >= len(report.Devices) {
		tell(fail(fmt.Sprintf("GPU %d", r.Engine.FirstGPU()), "name one that there is with --gpu", "there is none of that number"))
	}
}

// tensorrt opens the library and its companions. The driver comes first, as the library wants it.
func (r *Request) tensorrt(tell func(Finding)) {
	report := cuda.Prober{Root: r.Root}.Probe()
	options := tensorrt.LibraryOptions{}
	if r.Engine.Backend == tensorrt.Name {
		options.Path = r.Engine.Library
	}
	library, attempts := tensorrt.Search(options)
	if library == nil {
		tell(r.noTensorRT(options.Path, attempts))
		return
	}
	f := ok("", "%s, version %s", library.Path, library.Version)
	if !library.Builder {
		f.Status, f.Detail, f.Fix = Warn, f.Detail+", runs plans and cannot build any", "install the whole TensorRT to build plans"
	}
	tell(f)
	if library.Builder {
		tell(companion("TensorRT plugins", "libnvinfer_plugin", library.MissingReason, "networks with plugin layers need it"))
		if library.Parser {
			tell(ok("ONNX parser", "%s", library.ParserPath))
		} else {
			tell(companion("ONNX parser", "libnvonnxparser", library.MissingReason, "TensorRT cannot build plans of ONNX files"))
		}
	}
	if jetson := report.Jetson; jetson != nil && hasDLA(jetson.Model) {
		tell(dlaCompiler())
	}
	if report.Err() == nil && r.Engine.FirstGPU() < len(report.Devices) {
		gpu := &report.Devices[r.Engine.FirstGPU()]
		if f := supported(library.Version, gpu); f.Status != OK {
			tell(f)
		}
		r.plan(library.Version, gpu, tell)
	}
}

// noTensorRT tells a library that is not there from one that does not load.
func (r *Request) noTensorRT(given string, attempts []tensorrt.RejectedLibrary) Finding {
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
		return worse(named || r.gpuWanted(), Finding{Detail: detail, Fix: install})
	}
	var reasons []string
	for _, a := range broken {
		if !slices.Contains(reasons, a.Reason) {
			reasons = append(reasons, a.Reason)
		}
	}
	return Finding{
		Status: Fail, Detail: "does not load: " + strings.Join(reasons, "; "),
		Fix: "install TensorRT again, or name another one with $" + tensorrt.LibraryEnvironment,
	}
}

// companion reports a library that belongs beside libnvinfer; missing holds the loader's words on those that are not there.
func companion(check, name, missing, why string) Finding {
	for line := range strings.Lines(missing) {
		if strings.Contains(line, name) {
			return warn(check, "install the package of "+name+", of the same version as libnvinfer", "%s: %s", why, strings.TrimSpace(line))
		}
	}
	return ok(check, "%s", name)
}

// hasDLA reports whether a board has a deep learning accelerator: Xavier and Orin have, but for the Orin Nano.
func hasDLA(model string) bool {
	return strings.Contains(model, "Xavier") || strings.Contains(model, "Orin") && !strings.Contains(model, "Orin Nano")
}

func dlaCompiler() Finding {
	const check, name = "DLA compiler", "libnvdla_compiler.so"
	library := dl.New(name, dl.RTLD_LAZY)
	if err := library.Open(); err != nil {
		return warn(check, "sudo apt install nvidia-l4t-dla-compiler; in a container, start it with --runtime nvidia", "%v", err)
	}
	return ok(check, "%s", name)
}

// generations lists since which version TensorRT leaves out GPUs under a compute capability, newest first.
var generations = [...]struct {
	since      [2]int // version
	capability int
}{{[2]int{10, 5}, 75}, {[2]int{10, 0}, 70}, {[2]int{9, 0}, 60}, {[2]int{8, 5}, 50}}

// firstBlackwell is the version that knows compute capability 10 and above.
var firstBlackwell = [2]int{10, 8}

// supported compares a GPU with what a version of TensorRT has kernels for.
func supported(version tensorrt.Version, gpu *cuda.Facts) Finding {
	const check = "TensorRT and GPU"
	at, capability := [2]int{version.Major, version.Minor}, 10*gpu.Major+gpu.Minor
	for _, g := range generations {
		if slices.Compare(at[:], g.since[:]) < 0 {
			continue
		}
		if capability < g.capability {
			return fail(check, "use an older TensorRT, or --engine onnxruntime", "TensorRT %s has no kernels for %s (%s)", version, gpu.Name,
				gpu.ComputeCapability())
		}
		break
	}
	if capability >= 100 && slices.Compare(at[:], firstBlackwell[:]) < 0 {
		return fail(check, "update TensorRT to 10.8 or newer", "TensorRT %s does not know %s (%s)", version, gpu.Name, gpu.ComputeCapability())
	}
	return ok(check, "fit")
}

// plan compares a model that is a plan with the machine.
func (r *Request) plan(version tensorrt.Version, gpu *cuda.Facts, tell func(Finding)) {
	const check = "engine plan"
	if r.Model.Path == "" {
		return
	}
	file, err := os.ReadFile(r.Model.Path)
	if err != nil || !tensorrt.IsPlan(file) {
		return // the model's own examination says why
	}
	facts, _, err := tensorrt.ReadPlan(file)
	switch {
	case err != nil:
		tell(fail(check, "run edge-infer build again", "%s: %v", r.Model.Path, err))
	case facts.Architecture != "" && facts.Architecture != gpu.ComputeCapability():
		tell(fail(check, "run edge-infer build on this machine", "%s is for %s, this is %s", r.Model.Path, facts.Architecture,
			gpu.ComputeCapability()))
	case facts.Version != "" && !strings.HasPrefix(version.String()+".", facts.Version+".") &&
		!strings.HasPrefix(facts.Version+".", version.String()+"."):
		tell(warn(check, "run edge-infer build on this machine, if it does not load", "%s is of TensorRT %s, this is %s", r.Model.Path,
			facts.Version, version))
	default:
		tell(ok(check, "%s fits TensorRT %s on %s", r.Model.Path, version, gpu.ComputeCapability()))
	}
}

func (r *Request) onnxruntime(tell func(Finding)) {
	options := engine.Options{Provider: engine.CPU, Device: r.Engine.FirstGPU()}
	named := os.Getenv("EDGE_INFER_ONNXRUNTIME") != ""
	if strings.HasPrefix(r.Engine.Backend, "onnxruntime") {
		options.Library = r.Engine.Library
		named = true
	}
	path, version, err := onnxruntime.Find(options)
	if err != nil {
		detail, fix := explain(err)
		tell(worse(named, Finding{Detail: detail, Fix: fix}))
		return
	}
	tell(ok("", "%s, version %s", path, version))
}

// explain takes an error apart into what is wrong and what to do.
func explain(err error) (detail, fix string) {
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

// camera takes one image.
func (r *Request) camera(ctx context.Context, tell func(Finding)) {
	start := time.Now()
	frame, rate, err := img(ctx, r.Camera)
	if err != nil {
		detail, fix := explain(err)
		if fix == "" {
			fix = "check the address"
		}
		tell(Finding{Status: Fail, Detail: detail, Fix: fix})
		return
	}
	f := ok("", "%dx%d %s, first image after %.1f s", frame.Width, frame.Height, frame.Format, time.Since(start).Seconds())
	if rate > 0 {
		f.Detail += fmt.Sprintf(", %.4g fps", rate)
	}
	tell(f)
}

// image gives a frame without its data, and the source's rate.
func img(ctx context.Context, uri string) (frame capture.Frame, rate float64, err error) {
	opened, err := source.Open(ctx, uri, capture.Options{})
	if err != nil {
		return frame, 0, err
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	pool := &capture.Pool{Buffers: 1}
	defer pool.Close()
	if frame, err = opened.Next(pool); err != nil {
		if errors.Is(err, io.EOF) {
			err = fmt.Errorf("%s: it contains no image", capture.Redact(uri))
		}
		return frame, 0, err
	}
	frame.Release()
	frame.Data = nil
	return frame, opened.FPS(), nil
}
