package probe

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

// Machine is what there is.
type Machine struct {
	Version int          `json:"v"`
	Driver  cuda.Driver  `json:"driver"`
	Jetson  *cuda.Jetson `json:"jetson,omitempty"`
	GPUs    []GPU        `json:"gpus"`
	// NoGPU and Hint say why no GPU can be used.
	NoGPU    string                     `json:"no_gpu,omitempty"`
	Hint     string                     `json:"hint,omitempty"`
	TensorRT []Library                  `json:"tensorrt"`
	Refused  []tensorrt.RejectedLibrary `json:"tensorrt_refused,omitempty"`
	Backends []auto.Backend             `json:"backends"`
	Servers  []network.ServerProbe      `json:"servers,omitempty"`
	Cameras  []source.DeviceInfo        `json:"cameras"`
}

// GPU is one of them, and how images and tensors reach it.
type GPU struct {
	cuda.Facts
	MemoryUse string `json:"memory_use"`
}

// Library is one TensorRT of this machine.
type Library struct {
	Version string `json:"version"`
	Path    string `json:"path"`
	Builder bool   `json:"builder"` // a lean runtime has none: it only runs plans
	Parser  string `json:"parser,omitempty"`
	Plugin  string `json:"plugin,omitempty"`
	Missing string `json:"missing,omitempty"` // why a parser or plugin is not there
	// Offers has one entry for each GPU, in their order.
	Offers []tensorrt.Capabilities `json:"offers,omitempty"`
	Reason string                  `json:"reason,omitempty"` // why an offer could not be asked for
}

// Print writes a table for a person.
func (m *Machine) Print(out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if m.Jetson != nil {
		fmt.Fprintf(table, "Jetson\t\t%s\t%s, Jetson Linux %s\n", m.Jetson.JetPack, m.Jetson.Model, m.Jetson.Release)
	}
	if m.NoGPU != "" {
		fmt.Fprintf(table, "GPU\tno\t\t%s (%s)\n", m.NoGPU, m.Hint)
	} else {
		fmt.Fprintf(table, "CUDA driver\tyes\t%s\t%s\n", cuda.VersionText(m.Driver.Version), m.Driver.Path)
	}
	for i := range m.GPUs {
		m.printGPU(table, i)
	}
	for i := range m.TensorRT {
		l := &m.TensorRT[i]
		fmt.Fprintf(table, "TensorRT\tyes\t%s\t%s, %s\n", l.Version, l.Path, l.about())
	}
	for _, a := range m.Refused {
		fmt.Fprintf(table, "TensorRT\tno\t\t%s: %s\n", a.Path, strings.TrimPrefix(a.Reason, a.Path+": "))
	}
	for _, b := range m.Backends {
		state, about := "no", b.Reason
		if b.Usable {
			state, about = "yes", b.Path
		}
		if b.Chosen {
			state = "chosen"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", b.Title, state, b.Version, strings.ReplaceAll(about, "\n", "; "))
	}
	for i := range m.Servers {
		s := &m.Servers[i]
		state, about := "yes", s.String()
		if s.Reason != "" {
			state, about = "no", s.Reason
		}
		fmt.Fprintf(table, "server\t%s\t\t%s: %s\n", state, s.Address, about)
	}
	if len(m.Cameras) == 0 {
		fmt.Fprintln(table, "camera\tno\t\ttry --camera demo")
	}
	for _, camera := range m.Cameras {
		fmt.Fprintf(table, "camera\tyes\t\t%s %s\n", camera.Path, camera.Name)
	}
	return table.Flush()
}

// printGPU writes what the GPU is, and what the first TensorRT that would be taken makes of it.
func (m *Machine) printGPU(out io.Writer, i int) {
	g := &m.GPUs[i]
	kind := "memory of its own"
	if g.Integrated {
		kind = "shares the machine's memory"
	}
	fmt.Fprintf(out, "GPU %d\tyes\t%s\t%s, %.1f GiB, %s; %s\n",
		g.Ordinal, g.ComputeCapability(), g.Name, float64(g.Memory)/(1<<30), kind, g.MemoryUse)
	if len(m.TensorRT) == 0 || i >= len(m.TensorRT[0].Offers) {
		return
	}
	l := &m.TensorRT[0]
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

// about says in words what a library can do.
func (l *Library) about() string {
	if !l.Builder {
		return "lean: runs plans, builds none"
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
