// Package probe finds out what this machine has: the driver and its GPUs, libraries, backends and cameras. What may crash or hang is asked
// in a process of its own.
package probe

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

// Probe has processes of their own look at this machine, so that a library that crashes or hangs is a line of the result.
type Probe struct {
	Library string // TensorRT's or its directory; empty to search
	Builder bool   // TensorRT's builder is asked for the precisions
	// Config names the servers that are to run the network; nil for none.
	Config *config.Config

	process isolate.Process
}

// Flags are the probe's place on a command line.
func (p *Probe) Flags(flags *pflag.FlagSet) {
	flags.BoolVar(&p.Builder, "probe", false, "ask TensorRT's builder for the precisions")
}

// limit bounds each of the processes.
const limit = time.Minute

// Run looks at everything. Only one process at a time opens a context, because a GPU in exclusive mode lets in no more.
func (p *Probe) Run(ctx context.Context) (*Machine, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p.process = isolate.Process{Program: []string{program, Command}, Timeout: limit}
	servers := make(chan []network.ServerProbe, 1)
	go func() { servers <- p.servers(ctx) }()
	driver := make(chan cuda.Report, 1)
	go func() { driver <- p.gpus(ctx) }()
	m := &Machine{Version: 1, Cameras: source.Devices()}
	m.TensorRT, m.Refused = p.libraries(ctx)
	m.Backends = p.backends(ctx)
	m.Servers = <-servers
	report := <-driver
	m.Driver, m.Jetson, m.NoGPU, m.Hint = report.Driver, report.Jetson, report.Reason, report.Hint
	for _, facts := range report.Devices {
		_, why := tensorrt.ChooseMemory(tensorrt.MemoryAuto, facts)
		m.GPUs = append(m.GPUs, GPU{facts, why})
	}
	return m, nil
}

// servers are those of the configuration.
func (p *Probe) servers(ctx context.Context) []network.ServerProbe {
	if p.Config == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return network.ProbeServers(ctx, p.Config)
}

// gpus is what the driver says.
func (p *Probe) gpus(ctx context.Context) cuda.Report {
	var report cuda.Report
	err := p.process.Run(ctx, request{Part: driverPart}, nil, func(answer json.RawMessage) { _ = json.Unmarshal(answer, &report) })
	if err != nil {
		report.Reason, report.Hint = "the driver "+err.Error(), "reboot; if it stays, install the driver or JetPack again"
	}
	return report
}

// libraries lists every TensorRT, and the files that are none or do not load. After one that ends its process the next process goes on.
func (p *Probe) libraries(ctx context.Context) (found []Library, refused []tensorrt.RejectedLibrary) {
	for from := 0; ctx.Err() == nil; {
		last := libraryTry{Number: -1}
		err := p.process.Run(ctx, request{Part: libraryPart, Library: p.Library, Builder: p.Builder, From: from}, nil,
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

// absent tells a file that is not there from one that does not load.
func absent(a tensorrt.RejectedLibrary) bool {
	name, rest, _ := strings.Cut(a.Reason, ": ")
	return name == a.Path && strings.HasPrefix(rest, "cannot open shared object file: No such file")
}

// backends says which of them can be used, and which one automatic choice tries first.
func (p *Probe) backends(ctx context.Context) []auto.Backend {
	var all []auto.Backend
	chosen := false
	for i, c := range auto.Candidates() {
		if c.Remote { // what it runs on is no part of this machine; see servers
			continue
		}
		b := auto.Backend{Engine: c.Engine, Title: c.Title}
		err := p.process.Run(ctx, request{Part: backendPart, Library: p.Library, From: i}, nil, func(answer json.RawMessage) {
			_ = json.Unmarshal(answer, &b)
		})
		if err != nil {
			b.Usable, b.Reason = false, "the library "+err.Error()
		}
		b.Chosen = b.Usable && !chosen
		chosen = chosen || b.Usable
		all = append(all, b)
	}
	return all
}
