package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/isolate"
	"github.com/edge-infer/edge-infer/engine/auto"
	"github.com/edge-infer/edge-infer/engine/cuda"
	"github.com/edge-infer/edge-infer/engine/tensorrt"
)

func newDevices(stdout io.Writer) *cobra.Command {
	var asJSON bool
	s := &survey{}
	command := &cobra.Command{
		Use: "devices", Short: "Show GPUs, libraries and cameras, and which backend would be chosen and why", Args: noArguments,
		Long: `Lists the GPUs with what TensorRT computes fast on them, every TensorRT and the ONNX Runtime that can be found, which backend --engine auto
would take and why not one before it, and the cameras. Each library is loaded in a process of its own, so that one that crashes is a line.

Precisions come from release and compute capability, numbers of DLA cores from TensorRT's runtime. --probe asks the builder as well, which
takes seconds and memory for its kernels.`,
		RunE: func(command *cobra.Command, _ []string) error {
			program, err := os.Executable()
			if err != nil {
				return err
			}
			s.process = isolate.Process{Program: []string{program, surveyCommand}, Timeout: surveyTime}
			found := s.run(command.Context())
			if asJSON {
				return json.NewEncoder(stdout).Encode(found)
			}
			return found.print(stdout)
		},
	}
	command.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	command.Flags().StringVar(&s.library, "library", "", "TensorRT library or its folder, instead of searching")
	command.Flags().BoolVar(&s.probe, "probe", false, "ask TensorRT's builder for the precisions")
	return command
}

// machine is what devices prints.
type machine struct {
	Version int          `json:"v"`
	Driver  cuda.Driver  `json:"driver"`
	Jetson  *cuda.Jetson `json:"jetson,omitempty"`
	GPUs    []gpu        `json:"gpus"`
	// NoGPU and Hint say why no GPU can be used.
	NoGPU    string               `json:"no_gpu,omitempty"`
	Hint     string               `json:"hint,omitempty"`
	TensorRT []foundLibrary       `json:"tensorrt"`
	Refused  []tensorrt.Attempt   `json:"tensorrt_refused,omitempty"`
	Backends []auto.Backend       `json:"backends"`
	Cameras  []capture.DeviceInfo `json:"cameras"`
}

// gpu is one GPU and how pictures and tensors reach it.
type gpu struct {
	cuda.Facts
	MemoryUse string `json:"memory_use"`
}

// run looks at everything. Only one process at a time opens a context, because a GPU in exclusive mode lets in no more.
func (s *survey) run(ctx context.Context) *machine {
	driver := make(chan cuda.Report, 1)
	go func() { driver <- s.gpus(ctx) }()
	m := &machine{Version: 1, Cameras: capture.Devices()}
	m.TensorRT, m.Refused = s.libraries(ctx)
	m.Backends = s.backends(ctx)
	report := <-driver
	m.Driver, m.Jetson, m.NoGPU, m.Hint = report.Driver, report.Jetson, report.Reason, report.Hint
	for _, facts := range report.Devices {
		_, why := tensorrt.ChooseMemory(tensorrt.MemoryAuto, facts)
		m.GPUs = append(m.GPUs, gpu{facts, why})
	}
	return m
}

func (m *machine) print(out io.Writer) error {
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
	if len(m.Cameras) == 0 {
		fmt.Fprintln(table, "camera\tno\t\ttry --camera demo")
	}
	for _, camera := range m.Cameras {
		fmt.Fprintf(table, "camera\tyes\t\t%s %s\n", camera.Path, camera.Name)
	}
	return table.Flush()
}

// printGPU writes what the GPU is, and what the first TensorRT that would be taken makes of it.
func (m *machine) printGPU(out io.Writer, i int) {
	g := &m.GPUs[i]
	kind := "memory of its own"
	if g.Integrated {
		kind = "shares the machine's memory"
	}
	fmt.Fprintf(out, "GPU %d\tyes\t%s\t%s, %.1f GiB, %s; %s\n", g.Ordinal, g.ComputeCapability(), g.Name, float64(g.Memory)/(1<<30), kind, g.MemoryUse)
	if len(m.TensorRT) == 0 || i >= len(m.TensorRT[0].Offers) {
		return
	}
	l := &m.TensorRT[0]
	offer := l.Offers[i]
	source := "by compute capability"
	if offer.Builder {
		source = "by the builder"
	}
	cores := fmt.Sprint(offer.DLACores)
	if offer.DLACores < 0 {
		cores = "unknown: " + l.Reason
	}
	fmt.Fprintf(out, "\t\t\tprecisions %s %s; DLA cores: %s\n", strings.Join(offer.Precisions, " "), source, cores)
}

// about says in words what a library can do.
func (l *foundLibrary) about() string {
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
