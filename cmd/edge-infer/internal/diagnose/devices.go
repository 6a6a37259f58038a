package diagnose

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/edge-infer/edge-infer/capture/source"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/network"
	"github.com/edge-infer/edge-infer/engine/auto"
	"github.com/edge-infer/edge-infer/engine/cuda"
	"github.com/edge-infer/edge-infer/engine/tensorrt"
)

// Devices lists the GPUs, libraries, backends, servers and cameras of a machine.
type Devices struct {
	Version int          `json:"v"`
	Driver  cuda.Driver  `json:"driver"`
	Jetson  *cuda.Jetson `json:"jetson,omitempty"`
	GPUs    []GPU        `json:"gpus"`
	// NoGPU is the reason why no GPU can be used, Hint the remedy.
	NoGPU    string                     `json:"no_gpu,omitempty"`
	Hint     string                     `json:"hint,omitempty"`
	TensorRT []Library                  `json:"tensorrt"`
	Refused  []tensorrt.RejectedLibrary `json:"tensorrt_refused,omitempty"`
	Backends []auto.Backend             `json:"backends"`
	Servers  []network.ServerProbe      `json:"servers,omitempty"`
	Cameras  []source.DeviceInfo        `json:"cameras"`
}

// GPU is a GPU and how images and tensors reach it.
type GPU struct {
	cuda.Facts
	MemoryUse string `json:"memory_use"`
}

// Library is one TensorRT installation.
type Library struct {
	Version string `json:"version"`
	Path    string `json:"path"`
	Builder bool   `json:"builder"` // false for a lean runtime, which only runs plans
	Parser  string `json:"parser,omitempty"`
	Plugin  string `json:"plugin,omitempty"`
	Missing string `json:"missing,omitempty"` // why the parser or the plugins are absent
	// Offers has one entry per GPU, in the same order.
	Offers []tensorrt.Capabilities `json:"offers,omitempty"`
	Reason string                  `json:"reason,omitempty"` // why an offer is incomplete
}

// Print writes a table.
func (d *Devices) Print(out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if d.Jetson != nil {
		fmt.Fprintf(table, "Jetson\t\t%s\t%s, Jetson Linux %s\n", d.Jetson.JetPack, d.Jetson.Model, d.Jetson.Release)
	}
	if d.NoGPU != "" {
		fmt.Fprintf(table, "GPU\tno\t\t%s (%s)\n", d.NoGPU, d.Hint)
	} else {
		fmt.Fprintf(table, "CUDA driver\tyes\t%s\t%s\n", cuda.VersionText(d.Driver.Version), d.Driver.Path)
	}
	for i := range d.GPUs {
		d.printGPU(table, i)
	}
	for i := range d.TensorRT {
		l := &d.TensorRT[i]
		fmt.Fprintf(table, "TensorRT\tyes\t%s\t%s, %s\n", l.Version, l.Path, l.about())
	}
	for _, a := range d.Refused {
		fmt.Fprintf(table, "TensorRT\tno\t\t%s: %s\n", a.Path, strings.TrimPrefix(a.Reason, a.Path+": "))
	}
	for _, b := range d.Backends {
		state, about := "no", b.Reason
		if b.Usable {
			state, about = "yes", b.Path
		}
		if b.Chosen {
			state = "chosen"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", b.Title, state, b.Version, strings.ReplaceAll(about, "\n", "; "))
	}
	for i := range d.Servers {
		s := &d.Servers[i]
		state, about := "yes", s.String()
		if s.Reason != "" {
			state, about = "no", s.Reason
		}
		fmt.Fprintf(table, "server\t%s\t\t%s: %s\n", state, s.Address, about)
	}
	if len(d.Cameras) == 0 {
		fmt.Fprintln(table, "camera\tno\t\ttry --camera demo")
	}
	for _, camera := range d.Cameras {
		usable, note := "yes", ""
		if camera.Sensor() {
			usable, note = "no", ": "+source.SensorHint(d.Cameras, camera.Path)
		}
		fmt.Fprintf(table, "camera\t%s\t\t%s %s%s\n", usable, camera.Path, camera.Name, note)
	}
	return table.Flush()
}

// printGPU writes a GPU and what the first TensorRT offers on it.
func (d *Devices) printGPU(out io.Writer, i int) {
	g := &d.GPUs[i]
	kind := "own memory"
	if g.Integrated {
		kind = "shares the machine's memory"
	}
	fmt.Fprintf(out, "GPU %d\tyes\t%s\t%s, %.1f GiB, %s; %s\n",
		g.Ordinal, g.ComputeCapability(), g.Name, float64(g.Memory)/(1<<30), kind, g.MemoryUse)
	if len(d.TensorRT) == 0 || i >= len(d.TensorRT[0].Offers) {
		return
	}
	l := &d.TensorRT[0]
	offer := l.Offers[i]
	source := "by compute capability"
	if offer.FromBuilder {
		source = "by the builder"
	}
	cores := fmt.Sprint(offer.DLACores)
	if offer.DLACores < 0 {
		cores = "unknown: " + l.Reason
	}
	fmt.Fprintf(out, "\t\t\tprecisions %s %s; DLA cores: %s\n", strings.Join(offer.Precisions, " "), source, cores)
}

// about describes what a library can do.
func (l *Library) about() string {
	if !l.Builder {
		return "lean: runs plans, cannot build them"
	}
	text := "builds and runs"
	if l.Parser == "" {
		text = "runs plans; no ONNX parser"
	}
	if l.Plugin == "" {
		text += "; no plugins"
	}
	if l.Missing != "" {
		text += ": " + l.Missing
	}
	return text
}
