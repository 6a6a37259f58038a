package selftest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/edge-infer/edge-infer/capture/source"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/doctor"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/probe"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/progress"
	"github.com/edge-infer/edge-infer/engine/isolate"
)

// Selftest tries one machine. It builds engine plans into the cache and changes nothing else.
type Selftest struct {
	Config   *config.Config // names the model and the library; cameras, broker and page are left alone
	Video    string         // H.264 file for the decoder; empty: one is encoded
	Unit     string         // systemd service whose rules are tried
	Timeout  time.Duration  // of each part; building a plan is the longest
	Progress progress.Reporter

	program string
	machine *probe.Machine
	step    progress.Step
}

// part is one thing that is tried.
type part struct {
	name string
	try  func(context.Context) []Result
}

// Run tries every part in order, hands each result to each as soon as it is known, and returns all of them.
func (s *Selftest) Run(ctx context.Context, each func(*Result)) (Results, error) {
	var err error
	if s.program, err = os.Executable(); err != nil {
		return nil, err
	}
	parts := []part{
		{"machine and libraries", s.doctor},
		{"TensorRT libraries", s.libraries},
		{"image kernels", s.child(kernelsPart, "")},
		{"graphs", s.child(graphPart, "")},
		{"zero copy", s.child(memoryPart, "")},
		{"network in fp32", s.child(networkPart, "fp32")},
		{"network in fp16", s.child(networkPart, "fp16")},
		{"DLA", s.accelerators},
		{"video decoder (NVDEC)", s.decoder},
		{"CSI camera", s.camera},
		{"power readings", s.child(powerPart, "")},
		{"service's rules", s.service},
	}
	s.step = s.Progress.Begin("parts")
	defer s.step.Close()
	var all Results
	for _, p := range parts {
		s.step.Note(p.name)
		begun := time.Now()
		results := p.try(ctx)
		if err := context.Cause(ctx); err != nil {
			return all, err
		}
		for i := range results {
			results[i].Part = cmp.Or(results[i].Part, p.name)
			results[i].Seconds = time.Since(begun).Seconds() / float64(len(results))
			all = append(all, results[i])
			each(&results[i])
		}
	}
	return all, nil
}

// leftAlone are doctor's checks of what is not this machine: nobody is asked in a self-test.
var leftAlone = []string{"camera", "MQTT broker"}

// doctor makes its checks of everything that needs no configuration.
func (s *Selftest) doctor(ctx context.Context) []Result {
	d := doctor.Doctor{Config: s.Config, Timeout: s.Timeout}
	return fromFindings(d.Run(ctx, func(f doctor.Finding) { s.step.Note(f.Check) }))
}

func fromFindings(findings doctor.Findings) []Result {
	status := map[doctor.Status]Status{doctor.OK: OK, doctor.Warn: Warn, doctor.Fail: Failed}
	results := make([]Result, len(findings))
	for i, f := range findings {
		results[i] = Result{Part: f.Check, Status: status[f.Status], Detail: f.Detail, Fix: f.Fix}
		if slices.Contains(leftAlone, f.Check) {
			results[i] = absent("not part of the self-test: edge-infer doctor --config FILE asks it")
			results[i].Part = f.Check
		}
	}
	return results
}

// libraries has every TensorRT loaded, and its builder and runtime asked, which goes through the tables of its classes.
func (s *Selftest) libraries(ctx context.Context) []Result {
	p := probe.Probe{Library: s.Config.Engine.Library, Builder: true}
	machine, err := p.Run(ctx)
	if err != nil {
		return []Result{failed("%v", err)}
	}
	s.machine = machine
	var results []Result
	for _, l := range machine.TensorRT {
		name := "TensorRT " + l.Version
		r := ok("%s: loads, and says what it can do on %d GPUs", l.Path, len(l.Offers))
		switch {
		case l.Reason != "":
			r = failed("%s: %s", l.Path, l.Reason)
		case machine.NoGPU != "":
			r = absent("%s loads; nothing was asked of it without a GPU", l.Path)
		case slices.ContainsFunc(l.Offers, func(o offer) bool { return l.Builder && !o.FromBuilder }):
			r = failed("%s: the builder gave no answer", l.Path)
		}
		r.Part = name
		results = append(results, r)
	}
	for _, refused := range machine.Refused {
		results = append(results, failed("%s: %s", refused.Path, refused.Reason))
	}
	if len(results) == 0 {
		results = []Result{absent("none is installed")}
	}
	return results
}

// child has a part tried in a process of its own.
func (s *Selftest) child(name partName, precision string) func(context.Context) []Result {
	return func(ctx context.Context) []Result {
		if s.machine != nil && s.machine.NoGPU != "" && name != powerPart {
			return []Result{absent("%s", s.machine.NoGPU)}
		}
		if s.machine != nil && len(s.machine.TensorRT) == 0 && name == networkPart {
			return []Result{absent("TensorRT is not installed")}
		}
		return s.start(ctx, &request{Part: name, Precision: precision})
	}
}

// start starts the process for a request.
func (s *Selftest) start(ctx context.Context, r *request) []Result {
	r.Model, r.Engine, r.Detect = s.Config.Model, s.Config.Engine, s.Config.Detect
	var results []Result
	err := isolate.Process{Program: []string{s.program, Command}, Timeout: s.Timeout}.Run(ctx, r, nil, func(answer json.RawMessage) {
		var a struct {
			Result
			Note string `json:"note"`
		}
		switch err := json.Unmarshal(answer, &a); {
		case err != nil:
			results = append(results, failed("the answer cannot be read: %v", err))
		case a.Note != "":
			s.step.Note(a.Note)
		default:
			results = append(results, a.Result)
		}
	})
	if err != nil {
		results = append(results, failed("%v", err))
	}
	if len(results) == 0 {
		results = []Result{failed("no answer")}
	}
	return results
}

// accelerators tries every DLA core that TensorRT knows of.
func (s *Selftest) accelerators(ctx context.Context) []Result {
	if s.machine == nil || len(s.machine.TensorRT) == 0 || len(s.machine.TensorRT[0].Offers) == 0 {
		return []Result{absent("no TensorRT with a GPU to ask")}
	}
	cores := s.machine.TensorRT[0].Offers[0].DLACores
	if cores <= 0 {
		return []Result{absent("this GPU has no DLA")}
	}
	var results []Result
	for core := range cores {
		for _, r := range s.start(ctx, &request{Part: acceleratorPart, Precision: "fp16", Core: core}) {
			r.Part = fmt.Sprintf("DLA core %d", core)
			results = append(results, r)
		}
	}
	return results
}

// decoder has a Jetson's hardware decode a video.
func (s *Selftest) decoder(ctx context.Context) []Result {
	if source.FindPlugin("libgstnvvideo4linux2.so") == "" {
		return []Result{absent("GStreamer's nvv4l2decoder is not installed: it comes with a Jetson's nvidia-l4t-gstreamer")}
	}
	return s.start(ctx, &request{Part: decoderPart, Video: s.Video})
}

// sensors are V4L2 devices that are a Jetson's CSI cameras: its capture driver names them so.
func sensors(devices []source.DeviceInfo) (found []source.DeviceInfo) {
	for _, d := range devices {
		if strings.HasPrefix(d.Name, "vi-output") {
			found = append(found, d)
		}
	}
	return found
}

// camera takes images of the first CSI camera.
func (s *Selftest) camera(ctx context.Context) []Result {
	found := sensors(source.Devices())
	if len(found) == 0 {
		return []Result{absent("no CSI sensor has a device node")}
	}
	results := s.start(ctx, &request{Part: cameraPart})
	for i := range results {
		results[i].Detail = found[0].Name + ": " + results[i].Detail
	}
	return results
}

// service tries the unit's rules, as doctor --unit does.
func (s *Selftest) service(ctx context.Context) []Result {
	d := doctor.Doctor{Config: s.Config, Timeout: s.Timeout}
	findings := d.Service(ctx, s.Unit, func(f doctor.Finding) { s.step.Note("service: " + f.Check) })
	if len(findings) == 1 && findings[0].Status == doctor.Fail && findings[0].Check == "unit" {
		return []Result{absent("%s", findings[0].Detail)}
	}
	results := fromFindings(findings)
	for i := range results {
		results[i].Part = "service: " + results[i].Part
	}
	return results
}

// errAbsent is the error of a part that cannot be tried here.
var errAbsent = errors.New("not here")
