package diagnose

import (
	"errors"
	"strings"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/auto"
	"github.com/edge-infer/edge-infer/engine/cuda"
	"github.com/edge-infer/edge-infer/engine/tensorrt"
)

// libraryAnswer is one answer about a library: first that it is being loaded, then the result.
type libraryAnswer struct {
	Trying  *libraryTry               `json:"trying,omitempty"`
	Found   *Library                  `json:"found,omitempty"`
	Refused *tensorrt.RejectedLibrary `json:"refused,omitempty"`
}

type libraryTry struct {
	Path   string `json:"path"`
	Number int    `json:"number"`
}

// sendDriver sends the report of the CUDA driver.
func sendDriver(send func(any)) error {
	send(cuda.Probe())
	return nil
}

// backend reports whether one backend is usable.
func (r *request) backend(send func(any)) error {
	c := auto.Candidates()[r.Devices.From]
	options := engine.Options{}
	if c.Engine == tensorrt.Name {
		options.Library = r.Devices.Library
	}
	found, err := auto.Report(options, auto.Choice{Engine: c.Engine, Candidates: []auto.Candidate{c}})
	if err != nil {
		return err
	}
	send(found[0])
	return nil
}

// libraries loads every TensorRT that it finds, each once.
func (r *request) libraries(send func(any)) error {
	gpus := cuda.Probe()
	options := tensorrt.LibraryOptions{Path: r.Devices.Library}
	seen := map[string]bool{}
	for i, path := range tensorrt.SearchPaths(options) {
		if i < r.Devices.From {
			continue
		}
		send(libraryAnswer{Trying: &libraryTry{path, i}})
		library, attempt := tensorrt.Load(path, options)
		if library == nil {
			send(libraryAnswer{Refused: &attempt})
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
			offer, err := describe(library, gpu, r.Devices.Builder)
			if err != nil {
				found.Reason = err.Error()
			}
			found.Offers = append(found.Offers, offer)
		}
		send(libraryAnswer{Found: found})
	}
	return nil
}

// describe queries a library about a GPU. A discrete GPU has no DLA, so a CUDA context on it is only created for the builder.
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
