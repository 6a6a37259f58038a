package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/isolate"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/auto"
	"github.com/edge-infer/edge-infer/engine/cuda"
	"github.com/edge-infer/edge-infer/engine/tensorrt"
)

// surveyCommand is the hidden command of the processes that load libraries for devices.
const surveyCommand = "survey"

// surveyTime bounds each of them.
const surveyTime = time.Minute

// What a survey looks at.
const (
	surveyGPUs      = "gpus"
	surveyLibraries = "libraries"
	surveyBackend   = "backend"
)

// surveyRequest is what one of the processes is to look at.
type surveyRequest struct {
	Part string `json:"part"`
	// Library is TensorRT's, empty to search. Probe asks its builder too.
	Library string `json:"library,omitempty"`
	Probe   bool   `json:"probe,omitempty"`
	// From is where in the list of libraries or backends to begin.
	From int `json:"from,omitempty"`
}

// libraryAnswer is one line about a library: first that it is tried, then what it is.
type libraryAnswer struct {
	Trying  *libraryTry       `json:"trying,omitempty"`
	Found   *foundLibrary     `json:"found,omitempty"`
	Refused *tensorrt.Attempt `json:"refused,omitempty"`
}

type libraryTry struct {
	Path   string `json:"path"`
	Number int    `json:"number"`
}

// foundLibrary is one TensorRT of this machine.
type foundLibrary struct {
	Version string `json:"version"`
	Path    string `json:"path"`
	Builder bool   `json:"builder"` // a lean runtime has none: it only runs plans
	Parser  string `json:"parser,omitempty"`
	Plugin  string `json:"plugin,omitempty"`
	Missing string `json:"missing,omitempty"` // why a parser or plugin is not there
	// Offers has one entry for each GPU, in their order.
	Offers []tensorrt.Offer `json:"offers,omitempty"`
	Reason string           `json:"reason,omitempty"` // why an offer could not be asked for
}

func newSurvey() *cobra.Command {
	return &cobra.Command{
		Use: surveyCommand, Hidden: true, Args: noArguments, Short: "Load libraries for devices",
		RunE: func(*cobra.Command, []string) error { return serveSurvey(os.Stdin) },
	}
}

// serveSurvey is the body of the hidden command.
func serveSurvey(in io.Reader) error {
	var r surveyRequest
	return isolate.Serve(in, &r, func(tell func(any)) error {
		switch r.Part {
		case surveyGPUs:
			tell(cuda.Probe())
		case surveyLibraries:
			r.libraries(tell)
		case surveyBackend:
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
		}
		return nil
	})
}

// libraries loads every TensorRT that can be found. Files that lead to one already seen are passed over.
func (r *surveyRequest) libraries(tell func(any)) {
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
		found := &foundLibrary{
			Version: library.Version.String(), Path: library.Path, Builder: library.Builder, Parser: library.ParserPath, Plugin: library.PluginPath,
			Missing: strings.ReplaceAll(library.Missing, "\n", "; "),
		}
		for _, gpu := range gpus.Devices {
			offer, err := describe(library, gpu, r.Probe)
			if err != nil {
				found.Reason = err.Error()
			}
			found.Offers = append(found.Offers, offer)
		}
		tell(libraryAnswer{Found: found})
	}
}

// describe asks the release about a GPU. A GPU with memory of its own has no DLA, so there only a probe is worth a context on it.
func describe(library *tensorrt.Library, gpu cuda.Facts, probe bool) (tensorrt.Offer, error) {
	expected := tensorrt.Expect(library.Version, gpu)
	if !probe && !gpu.Integrated {
		return expected, nil
	}
	device, err := cuda.Open(gpu.Ordinal)
	if err != nil {
		return expected, err
	}
	offer, err := library.Describe(device, probe)
	if err = errors.Join(err, device.Close()); err != nil {
		return expected, err
	}
	return offer, nil
}

// survey has processes of their own look at this machine, so that a library that crashes or hangs is a line of the result.
type survey struct {
	process isolate.Process
	library string
	probe   bool
}

// gpus is what the driver says.
func (s *survey) gpus(ctx context.Context) cuda.Report {
	var report cuda.Report
	err := s.process.Run(ctx, surveyRequest{Part: surveyGPUs}, func(answer json.RawMessage) { _ = json.Unmarshal(answer, &report) })
	if err != nil {
		report.Reason, report.Hint = "the driver "+err.Error(), "reboot; if it stays, install the driver or JetPack again"
	}
	return report
}

// libraries lists every TensorRT, and the files that are none or do not load. After one that ends its process the next process goes on.
func (s *survey) libraries(ctx context.Context) (found []foundLibrary, refused []tensorrt.Attempt) {
	for from := 0; ctx.Err() == nil; {
		last := libraryTry{Number: -1}
		err := s.process.Run(ctx, surveyRequest{Part: surveyLibraries, Library: s.library, Probe: s.probe, From: from}, func(line json.RawMessage) {
			var a libraryAnswer
			switch _ = json.Unmarshal(line, &a); {
			case a.Trying != nil:
				last = *a.Trying
			case a.Found != nil && !slices.ContainsFunc(found, func(l foundLibrary) bool { return l.Path == a.Found.Path }):
				found = append(found, *a.Found)
			case a.Refused != nil && !absent(*a.Refused):
				refused = append(refused, *a.Refused)
			}
		})
		if err == nil {
			break
		}
		refused = append(refused, tensorrt.Attempt{Path: last.Path, Reason: err.Error()})
		if last.Number < from {
			break
		}
		from = last.Number + 1
	}
	return found, refused
}

// absent tells a file that is not there from one that does not load.
func absent(a tensorrt.Attempt) bool {
	name, rest, _ := strings.Cut(a.Reason, ": ")
	return name == a.Path && strings.HasPrefix(rest, "cannot open shared object file: No such file")
}

// backends says which of them can be used, and which one automatic choice tries first.
func (s *survey) backends(ctx context.Context) []auto.Backend {
	var all []auto.Backend
	chosen := false
	for i, c := range auto.Candidates() {
		b := auto.Backend{Engine: c.Engine, Title: c.Title}
		err := s.process.Run(ctx, surveyRequest{Part: surveyBackend, Library: s.library, From: i}, func(answer json.RawMessage) {
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
