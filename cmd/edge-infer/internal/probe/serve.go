package probe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/auto"
	"github.com/edge-infer/edge-infer/engine/cuda"
	"github.com/edge-infer/edge-infer/engine/isolate"
	"github.com/edge-infer/edge-infer/engine/tensorrt"
)

// Command is the hidden command by which this program looks at its machine in processes of their own; Serve is its body.
const Command = "probe"

// part is what one process looks at.
type part string

// The parts.
const (
	driverPart  part = "driver"
	libraryPart part = "libraries"
	backendPart part = "backend"
)

// request is what one of the processes is to look at.
type request struct {
	Part part `json:"part"`
	// Library is TensorRT's, empty to search. Builder asks its builder too.
	Library string `json:"library,omitempty"`
	Builder bool   `json:"builder,omitempty"`
	// From is where in the list of libraries or backends to begin.
	From int `json:"from,omitempty"`
}

// libraryAnswer is one line about a library: first that it is tried, then what it is.
type libraryAnswer struct {
	Trying  *libraryTry               `json:"trying,omitempty"`
	Found   *Library                  `json:"found,omitempty"`
	Refused *tensorrt.RejectedLibrary `json:"refused,omitempty"`
}

type libraryTry struct {
	Path   string `json:"path"`
	Number int    `json:"number"`
}

// Serve looks at the one part that the process was started for.
func Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	var r request
	return isolate.Serve(ctx, in, out, &r, func(_ context.Context, _ []byte, tell func(any)) error {
		switch r.Part {
		case driverPart:
			tell(cuda.Probe())
		case libraryPart:
			r.libraries(tell)
		case backendPart:
			return r.backend(tell)
		default:
			return fmt.Errorf("probe: no part %q", r.Part)
		}
		return nil
	})
}

// backend asks one backend whether it can be used.
func (r *request) backend(tell func(any)) error {
	c := auto.Candidates()[r.From]
	options := engine.Options{}
	if c.Engine == tensorrt.Name {
		options.Library = r.Library
	}
	found, err := auto.Report(options, auto.Choice{Engine: c.Engine, Candidates: []auto.Candidate{c}})
	if err != nil {
		return err
	}
	tell(found[0])
	return nil
}

// libraries loads every TensorRT that can be found. Files that lead to one already seen are passed over.
func (r *request) libraries(tell func(any)) {
	gpus := cuda.Probe()
	options := tensorrt.LibraryOptions{Path: r.Library}
	seen := map[string]bool{}
	for i, path := range tensorrt.SearchPaths(options) {
		if i < r.From {
			continue
		}
		tell(libraryAnswer{Trying: &libraryTry{path, i}})
		library, attempt := tensorrt.Load(path, options)
		if library == nil {
			tell(libraryAnswer{Refused: &attempt})
			continue
		}
		if seen[library.Path] {
			continue
		}
		seen[library.Path] = true
		found := &Library{
			Version: library.Version.String(), Path: library.Path, Builder: library.Builder, Parser: library.ParserPath, Plugin: library.PluginPath,
			Missing: strings.ReplaceAll(library.MissingReason, "\n", "; "),
		}
		for _, gpu := range gpus.Devices {
			offer, err := describe(library, gpu, r.Builder)
			if err != nil {
				found.Reason = err.Error()
			}
			found.Offers = append(found.Offers, offer)
		}
		tell(libraryAnswer{Found: found})
	}
}

// describe asks the release about a GPU. A GPU with memory of its own has no DLA, so there only the builder is worth a context on it.
func describe(library *tensorrt.Library, gpu cuda.Facts, builder bool) (tensorrt.Capabilities, error) {
	expected := tensorrt.ExpectedCapabilities(library.Version, gpu)
	if !builder && !gpu.Integrated {
		return expected, nil
	}
	device, err := cuda.Open(gpu.Ordinal)
	if err != nil {
		return expected, err
	}
	offer, err := library.Capabilities(device, builder)
	if err = errors.Join(err, device.Close()); err != nil {
		return expected, err
	}
	return offer, nil
}
