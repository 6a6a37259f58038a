package selftest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/progress"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/isolate"
	"github.com/edge-infer/edge-infer/engine/tensorrt"
)

// Command is the hidden command by which this program tries parts in processes of their own; Serve is its body.
const Command = "try-part"

// partName is what one process tries.
type partName string

// The parts.
const (
	kernelsPart     partName = "kernels"
	graphPart       partName = "graph"
	memoryPart      partName = "memory"
	networkPart     partName = "network"
	acceleratorPart partName = "accelerator"
	decoderPart     partName = "decoder"
	cameraPart      partName = "camera"
	powerPart       partName = "power"
)

// offer is what a TensorRT says of a GPU.
type offer = tensorrt.Capabilities

// request is what a process is to try.
type request struct {
	Part      partName      `json:"part"`
	Precision string        `json:"precision,omitempty"`
	Core      int           `json:"core,omitempty"` // of the DLA
	Video     string        `json:"video,omitempty"`
	Model     config.Model  `json:"model"`
	Engine    config.Engine `json:"engine"`
	Detect    config.Detect `json:"detect"`

	note func(string)
}

// note is what a process says while it works.
type note struct {
	Note string `json:"note"`
}

// Serve tries the one part that the process was started for.
func Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	var r request
	return isolate.Serve(ctx, in, out, &r, func(ctx context.Context, _ []byte, tell func(any)) error {
		r.note = func(text string) { tell(note{text}) }
		try := map[partName]func(context.Context) (string, error){
			kernelsPart: r.kernels, graphPart: r.graph, memoryPart: r.memory, networkPart: r.network, acceleratorPart: r.accelerator,
			decoderPart: r.decoder, cameraPart: r.camera, powerPart: r.power,
		}[r.Part]
		if try == nil {
			return fmt.Errorf("self-test: no part %q", r.Part)
		}
		tell(resultOf(try(ctx)))
		return nil
	})
}

// resultOf is what a part came to by what it says and its error.
func resultOf(detail string, err error) Result {
	if err == nil {
		return ok("%s", detail)
	}
	r := failed("%v", err)
	if e := (*engine.Error)(nil); errors.As(err, &e) && e.Hint != "" {
		plain := *e
		plain.Hint = ""
		r.Detail, r.Fix = plain.Error(), e.Hint
	}
	if errors.Is(err, errAbsent) || errors.Is(err, engine.ErrUnavailable) {
		r.Status, r.Detail = Absent, strings.TrimPrefix(r.Detail, errAbsent.Error()+": ")
	}
	return r
}

// steps hands the notes of a longer piece of work on.
func (r *request) steps() progress.Reporter {
	return func(string) progress.Step { return noted{r.note} }
}

type noted struct{ note func(string) }

func (noted) Count(int, int)     {}
func (n noted) Note(text string) { n.note(text) }
func (noted) Close()             {}
