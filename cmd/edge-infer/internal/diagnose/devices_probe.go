package diagnose

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/edge-infer/edge-infer/capture/source"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/network"
	"github.com/edge-infer/edge-infer/engine/auto"
	"github.com/edge-infer/edge-infer/engine/cuda"
	"github.com/edge-infer/edge-infer/engine/isolate"
	"github.com/edge-infer/edge-infer/engine/tensorrt"
)

// DeviceProbe finds the devices of this machine in child processes, so that a library that crashes or hangs becomes a line of the result.
type DeviceProbe struct {
	Library string         // TensorRT library or its directory; empty: search
	Builder bool           // query TensorRT's builder for the precisions
	Config  *config.Config // names the inference servers; may be nil

	process isolate.Process
}

// Flags adds the flags of the probe.
func (p *DeviceProbe) Flags(flags *pflag.FlagSet) {
	flags.BoolVar(&p.Builder, "probe", false, "query TensorRT's builder for the precisions")
}

// probeTimeout bounds each child process.
const probeTimeout = time.Minute

// Run probes all devices. Only one process at a time opens a CUDA context, because a GPU in exclusive mode allows one only.
func (p *DeviceProbe) Run(ctx context.Context) (*Devices, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p.process = isolate.Process{Program: []string{program, Command}, Timeout: probeTimeout}
	servers := make(chan []network.ServerProbe, 1)
	go func() { servers <- p.servers(ctx) }()
	driver := make(chan cuda.Report, 1)
	go func() { driver <- p.gpus(ctx) }()
	m := &Devices{Version: 1, Cameras: source.Devices()}
	m.TensorRT, m.Refused = p.libraries(ctx)
	m.Backends = p.backends(ctx)
	m.Servers = <-servers
	report := <-driver
	m.Driver = report.Driver
	m.Jetson = report.Jetson
	m.NoGPU = report.Reason
	m.Hint = report.Hint
	for _, facts := range report.Devices {
		_, reason := tensorrt.ChooseMemory(tensorrt.MemoryAuto, facts)
		m.GPUs = append(m.GPUs, GPU{facts, reason})
	}
	return m, nil
}

// servers probes the inference servers of the configuration.
func (p *DeviceProbe) servers(ctx context.Context) []network.ServerProbe {
	if p.Config == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	return network.ProbeServers(ctx, p.Config)
}

// gpus returns the report of the CUDA driver.
func (p *DeviceProbe) gpus(ctx context.Context) cuda.Report {
	var report cuda.Report
	err := p.process.Run(ctx, &request{Job: "cuda"}, nil, func(answer json.RawMessage) { _ = json.Unmarshal(answer, &report) })
	if err != nil {
		report.Reason, report.Hint = "the driver "+err.Error(), "reboot; if it stays, install the driver or JetPack again"
	}
	return report
}

// libraries lists all TensorRT installations, and the files that do not load. If one ends its process, another process continues after it.
func (p *DeviceProbe) libraries(ctx context.Context) (found []Library, refused []tensorrt.RejectedLibrary) {
	for from := 0; ctx.Err() == nil; {
		last := libraryTry{Number: -1}
		err := p.process.Run(ctx, &request{Job: "libraries", Devices: devicesRequest{p.Library, p.Builder, from}}, nil,
			func(line json.RawMessage) {
				var a libraryAnswer
				switch _ = json.Unmarshal(line, &a); {
				case a.Trying != nil:
					last = *a.Trying
				case a.Found != nil && !slices.ContainsFunc(found, func(l Library) bool { return l.Path == a.Found.Path }):
					found = append(found, *a.Found)
				case a.Refused != nil && !absent(*a.Refused):
					refused = append(refused, *a.Refused)
				}
			})
		if err == nil {
			break
		}
		refused = append(refused, tensorrt.RejectedLibrary{Path: last.Path, Reason: err.Error()})
		if last.Number < from {
			break
		}
		from = last.Number + 1
	}
	return found, refused
}

// absent reports whether a file does not exist, as opposed to one that does not load.
func absent(a tensorrt.RejectedLibrary) bool {
	name, rest, _ := strings.Cut(a.Reason, ": ")
	return name == a.Path && strings.HasPrefix(rest, "cannot open shared object file: No such file")
}

// backends reports which backends are usable, and which one is chosen automatically.
func (p *DeviceProbe) backends(ctx context.Context) []auto.Backend {
	var all []auto.Backend
	chosen := false
	for i, c := range auto.Candidates() {
		if c.Remote { // see servers
			continue
		}
		b := auto.Backend{Engine: c.Engine, Title: c.Title}
		err := p.process.Run(
			ctx,
			&request{Job: "backend", Devices: devicesRequest{Library: p.Library, From: i}},
			nil,
			func(answer json.RawMessage) {
				_ = json.Unmarshal(answer, &b)
			},
		)
		if err != nil {
			b.Usable, b.Reason = false, "the library "+err.Error()
		}
		b.Chosen = b.Usable && !chosen
		chosen = chosen || b.Usable
		all = append(all, b)
	}
	return all
}
