package diagnose

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/edge-infer/edge-infer/capture/source"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/progress"
	"github.com/edge-infer/edge-infer/engine/isolate"
	"github.com/edge-infer/edge-infer/engine/tensorrt"
)

// Selftest runs hardware tests on one machine, each in a child process. It writes engine plans into the cache and changes nothing else.
type Selftest struct {
	Config   *config.Config // model and library; cameras, broker and page are not used
	Load     time.Duration  // for which the network runs under observation; 0 for not at all
	Unit     string         // systemd service whose rules are tested
	Timeout  time.Duration  // of each part; building a plan takes longest
	Progress progress.Reporter

	program string
	devices *Devices
	step    progress.Step
}

// Run makes all parts in order, calls each for every check as soon as it is complete, and returns all of them.
func (s *Selftest) Run(ctx context.Context, each func(Check)) (Checks, error) {
	var err error
	if s.program, err = os.Executable(); err != nil {
		return nil, err
	}
	s.step = s.Progress.Begin("parts")
	defer s.step.Close()
	all := &collector{each: each}
	for _, p := range []struct {
		name string
		run  func(context.Context) []Check
	}{
		{"doctor", s.doctor},
		{"TensorRT", s.libraries},
		{"image kernels", s.child("kernels", "")},
		{"graphs", s.child("graph", "")},
		{"zero copy", s.child("memory", "")},
		{"memory times", s.child("memory-times", "")},
		{"H.264 to CUDA", s.decoded("h264")},
		{"H.265 to CUDA", s.decoded("h265")},
		{"network in fp32", s.child(networkJob, "fp32")},
		{"network in fp16", s.child(networkJob, "fp16")},
		{"network in int8", s.int8},
		{"DLA", s.accelerators},
		{"RTSP H.264", s.streams("h264")},
		{"RTSP H.265", s.streams("h265")},
		{"CSI camera", s.sensors},
		{"USB camera", s.cameras},
		{"power readings", s.child(powerJob, "")},
		{"load", s.load},
		{"service", s.service},
	} {
		s.step.Note(p.name)
		started := time.Now()
		checks := p.run(ctx)
		if err := context.Cause(ctx); err != nil {
			return all.checks, err
		}
		for i := range checks {
			checks[i].Name = cmp.Or(checks[i].Name, p.name)
			checks[i].Seconds = time.Since(started).Seconds() / float64(len(checks))
		}
		all.add(checks...)
	}
	return all.checks, nil
}

// doctor makes the checks of doctor that need no configuration. Cameras and brokers are not contacted.
func (s *Selftest) doctor(ctx context.Context) []Check {
	d := Doctor{Config: s.Config, Timeout: s.Timeout}
	return withoutCameras(d.Run(ctx, func(c Check) { s.step.Note(c.Name) }))
}

func withoutCameras(checks []Check) []Check {
	for i, c := range checks {
		if c.Name == "camera" || c.Name == "MQTT broker" {
			checks[i] = skip(c.Name, "not part of the self-test: use edge-infer doctor --config FILE")
		}
	}
	return checks
}

// libraries loads every TensorRT and queries its builder and runtime, which calls through its class tables.
func (s *Selftest) libraries(ctx context.Context) []Check {
	p := DeviceProbe{Library: s.Config.Engine.Library, Builder: true}
	devices, err := p.Run(ctx)
	if err != nil {
		return []Check{fail("", "", "%v", err)}
	}
	s.devices = devices
	var checks []Check
	for _, l := range devices.TensorRT {
		name := "TensorRT " + l.Version
		switch {
		case l.Reason != "":
			checks = append(checks, fail(name, "", "%s: %s", l.Path, l.Reason))
		case devices.NoGPU != "":
			checks = append(checks, skip(name, "%s loads; not queried without a GPU", l.Path))
		case slices.ContainsFunc(l.Offers, func(o tensorrt.Capabilities) bool { return l.Builder && !o.FromBuilder }):
			checks = append(checks, fail(name, "", "%s: the builder did not answer", l.Path))
		default:
			checks = append(checks, ok(name, "%s: loads and describes %d GPUs", l.Path, len(l.Offers)))
		}
	}
	for _, refused := range devices.Refused {
		checks = append(checks, fail("", "", "%s: %s", refused.Path, refused.Reason))
	}
	if len(checks) == 0 {
		checks = []Check{skip("", "not installed")}
	}
	return checks
}

// child returns a part that runs in a child process.
func (s *Selftest) child(name job, precision string) func(context.Context) []Check {
	return func(ctx context.Context) []Check {
		if skipped := s.absent(name); skipped != nil {
			return skipped
		}
		return s.start(ctx, &request{Job: name, Precision: precision})
	}
}

// absent returns the result of a job for which this machine has no GPU or no TensorRT, otherwise nil.
func (s *Selftest) absent(name job) []Check {
	switch {
	case s.devices == nil, name == powerJob:
	case s.devices.NoGPU != "":
		return []Check{skip("", "%s", s.devices.NoGPU)}
	case len(s.devices.TensorRT) == 0 && name == networkJob:
		return []Check{skip("", "TensorRT is not installed")}
	}
	return nil
}

// start runs a request about the configured network in a child process.
func (s *Selftest) start(ctx context.Context, r *request) []Check {
	r.configure(s.Config)
	return s.run(ctx, r)
}

// run runs a request in a child process.
func (s *Selftest) run(ctx context.Context, r *request) []Check {
	process := isolate.Process{Program: []string{s.program, Command}, Timeout: s.Timeout + r.Load}
	checks, err := checksOf(ctx, process, r, "", s.step.Note)
	if err != nil {
		checks = append(checks, fail("", "", "%v", err))
	}
	return checks
}

// accelerators tests every DLA core.
func (s *Selftest) accelerators(ctx context.Context) []Check {
	if s.devices == nil || len(s.devices.TensorRT) == 0 || len(s.devices.TensorRT[0].Offers) == 0 {
		return []Check{skip("", "no TensorRT with a GPU")}
	}
	cores := s.devices.TensorRT[0].Offers[0].DLACores
	if cores <= 0 {
		return []Check{skip("", "this GPU has no DLA")}
	}
	var checks []Check
	for core := range cores {
		for _, c := range s.start(ctx, &request{Job: "dla", Precision: "fp16", Core: core}) {
			c.Name = fmt.Sprintf("DLA core %d", core)
			checks = append(checks, c)
		}
	}
	return checks
}

// decoded returns the part that decodes the video of a codec into the GPU's memory.
func (s *Selftest) decoded(codec string) func(context.Context) []Check {
	return func(ctx context.Context) []Check {
		if skipped := s.absent(decodedJob); skipped != nil {
			return skipped
		}
		return s.start(ctx, &request{Job: decodedJob, Codec: codec})
	}
}

// streams returns the part that reads the video of a codec as from RTSP cameras.
func (s *Selftest) streams(codec string) func(context.Context) []Check {
	return func(ctx context.Context) []Check { return s.start(ctx, &request{Job: "streams", Codec: codec}) }
}

// sensors reads frames of every CSI camera, then of two at once.
func (s *Selftest) sensors(ctx context.Context) []Check {
	devices := source.Devices()
	addresses := source.CSI(devices)
	if len(addresses) == 0 {
		return []Check{skip("", "no CSI sensor has a device node")}
	}
	var checks []Check
	for _, d := range devices {
		if address := addresses[d.Path]; address != "" {
			checks = append(checks, s.read(ctx, address, d.Name)...)
		}
	}
	if len(addresses) > 1 {
		checks = append(checks, s.read(ctx, "csi://0 csi://1", "two at once")...)
	}
	return checks
}

// cameras reads frames of every V4L2 camera that delivers images.
func (s *Selftest) cameras(ctx context.Context) []Check {
	var checks []Check
	for _, d := range source.Devices() {
		if d.Captures && !d.Sensor() && d.Error == "" {
			checks = append(checks, s.read(ctx, d.Path, d.Name)...)
		}
	}
	if len(checks) == 0 {
		return []Check{skip("", "no V4L2 camera")}
	}
	return checks
}

// read reads frames of cameras, whose addresses are separated by spaces, at once.
func (s *Selftest) read(ctx context.Context, cameras, description string) []Check {
	checks := s.start(ctx, &request{Job: "read-cameras", Camera: cameras})
	for i := range checks {
		checks[i].Name = "camera " + strings.ReplaceAll(cameras, " ", " and ")
		checks[i].Detail = description + ": " + checks[i].Detail
	}
	return checks
}

// load runs the network and watches the machine.
func (s *Selftest) load(ctx context.Context) []Check {
	if s.Load <= 0 {
		return []Check{skip("", "--load is 0")}
	}
	return s.start(ctx, &request{Job: "load", Load: s.Load})
}

// service tests the rules of the systemd unit, as doctor --unit does.
func (s *Selftest) service(ctx context.Context) []Check {
	d := Doctor{Config: s.Config, Timeout: s.Timeout}
	checks := d.Service(ctx, s.Unit, func(c Check) { s.step.Note("service: " + c.Name) })
	if len(checks) == 1 && checks[0].Status == Fail && checks[0].Name == "unit" {
		return []Check{skip("", "%s", checks[0].Detail)}
	}
	checks = withoutCameras(checks)
	for i := range checks {
		checks[i].Name = "service: " + checks[i].Name
	}
	return checks
}
