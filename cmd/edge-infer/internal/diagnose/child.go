package diagnose

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/site"
	"github.com/edge-infer/edge-infer/engine/isolate"
)

// Command is the hidden command of the child processes; Serve is its body.
const Command = "diagnose"

// job is the task of one child process.
type job string

// request is the input of a child process. It is sent on standard input, because it may hold passwords.
type request struct {
	Job       job             `json:"job"`
	Model     config.Model    `json:"model"`
	Engine    config.Engine   `json:"engine"`
	Remote    config.Remote   `json:"remote"`
	Detect    config.Detect   `json:"detect"`
	Root      string          `json:"root,omitempty"`      // doctor
	Camera    string          `json:"camera,omitempty"`    // doctor: URI; selftest: one or several
	Precision string          `json:"precision,omitempty"` // selftest
	Reference *config.Model   `json:"reference,omitempty"` // selftest: to compare Model with; nil: itself
	Core      int             `json:"core,omitempty"`      // selftest: DLA core
	Codec     string          `json:"codec,omitempty"`     // selftest: h264 or h265
	Load      time.Duration   `json:"load,omitempty"`      // selftest
	Devices   devicesRequest  `json:"devices"`
	Networks  networksRequest `json:"networks"`

	note func(string) // reports progress to the parent
}

// devicesRequest is what the command devices needs.
type devicesRequest struct {
	Library string `json:"library,omitempty"` // TensorRT library or its directory; empty: search
	Builder bool   `json:"builder,omitempty"` // query TensorRT's builder too
	From    int    `json:"from,omitempty"`    // first index in the list of libraries or backends
}

// networksRequest is what the preflight check needs.
type networksRequest struct {
	Groups  []site.Group     `json:"groups,omitempty"` // without the cameras' addresses
	Cascade []config.Cascade `json:"cascade,omitempty"`
	Track   bool             `json:"track,omitempty"`
}

// configure copies the sections that describe the network.
func (r *request) configure(c *config.Config) {
	r.Model = c.Model
	r.Engine = c.Engine
	r.Remote = c.Remote
	r.Detect = c.Detect
}

// runner does a job in the child process; send transmits one answer to the parent.
type runner func(ctx context.Context, r *request, send func(any)) error

// runners returns the body of each job.
func runners() map[job]runner {
	all := map[job]runner{
		"driver":       checking((*request).driver),
		"tensorrt":     checking((*request).tensorrt),
		"onnxruntime":  checking((*request).onnxruntime),
		"cuda":         func(_ context.Context, _ *request, send func(any)) error { return sendDriver(send) },
		"libraries":    func(_ context.Context, r *request, send func(any)) error { return r.libraries(send) },
		"backend":      func(_ context.Context, r *request, send func(any)) error { return r.backend(send) },
		"networks":     func(ctx context.Context, r *request, send func(any)) error { return r.networks(ctx, send) },
		"camera":       func(ctx context.Context, r *request, send func(any)) error { send(r.camera(ctx)); return nil },
		modelJob:       func(ctx context.Context, r *request, send func(any)) error { send(r.model(ctx)); return nil },
		"kernels":      selftesting((*request).kernels),
		"graph":        selftesting((*request).graph),
		"memory":       selftesting((*request).memory),
		"memory-times": selftesting((*request).memoryTimes),
		decodedJob:     selftesting((*request).decodedTimes),
		networkJob:     selftesting((*request).network),
		"dla":          selftesting((*request).accelerator),
		"streams":      func(ctx context.Context, r *request, send func(any)) error { return r.streams(ctx, send) },
		"read-cameras": selftesting((*request).readCameras),
		"load":         selftesting((*request).load),
		powerJob:       selftesting((*request).power),
	}
	return all
}

// Jobs that are named more than once.
const (
	modelJob   job = "model"
	networkJob job = "network"
	powerJob   job = "power"
	decodedJob job = "decoded"
)

// checking adapts a job that adds checks.
func checking(run func(*request, func(Check))) runner {
	return func(_ context.Context, r *request, send func(any)) error {
		run(r, func(c Check) { send(c) })
		return nil
	}
}

// selftesting adapts a part of the self-test, which returns a detail or an error.
func selftesting(run func(*request, context.Context) (string, error)) runner {
	return func(ctx context.Context, r *request, send func(any)) error {
		send(resultOf(run(r, ctx)))
		return nil
	}
}

// Serve is a child process: it reads a request, does the job and writes the answers. The end of the input ends the process at once, even if
// the job hangs.
func Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	return serve(ctx, in, out, runners())
}

func serve(ctx context.Context, in io.Reader, out io.Writer, all map[job]runner) error {
	var r request
	return isolate.Serve(ctx, in, out, &r, func(ctx context.Context, _ []byte, send func(any)) error {
		r.note = func(text string) { send(note{text}) }
		run := all[r.Job]
		if run == nil {
			return fmt.Errorf("diagnose: no job %q", r.Job)
		}
		return run(ctx, &r, send)
	})
}

// note is a progress message of a child process.
type note struct {
	Note string `json:"note"`
}

// checksOf runs a child process and returns its checks, also those that it sent before it died; notes go to progress. Checks without a name
// get that of the parameter.
func checksOf(ctx context.Context, process isolate.Process, r *request, name string, progress func(string)) (checks []Check, err error) {
	err = process.Run(ctx, r, nil, func(answer json.RawMessage) {
		var a struct {
			Check
			note
		}
		switch err := json.Unmarshal(answer, &a); {
		case err != nil:
			checks = append(checks, fail(name, "", "invalid answer of the child process: %v", err))
		case a.Note != "":
			progress(a.Note)
		default:
			if a.Name == "" {
				a.Name = name
			}
			checks = append(checks, a.Check)
		}
	})
	if err == nil && len(checks) == 0 {
		err = errors.New("no answer")
	}
	return checks, err
}
