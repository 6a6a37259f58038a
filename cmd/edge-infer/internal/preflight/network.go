package preflight

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config/look"
	open "github.com/edge-infer/edge-infer/cmd/edge-infer/internal/network"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/isolate"
	"github.com/edge-infer/edge-infer/engine/tensorrt"
	"github.com/edge-infer/edge-infer/postprocess/predict"
	"github.com/edge-infer/edge-infer/postprocess/zone"
)

// Command is the hidden command in whose process the network is opened; Serve is its body.
const Command = "preflight"

// patience is how long opening a network may take: the largest are read from slow disks.
const patience = 3 * time.Minute

// request is the networks that are to be opened, and what is looked for in their findings.
type request struct {
	Model   config.Model     `json:"model"`
	Engine  config.Engine    `json:"engine"`
	Remote  config.Remote    `json:"remote"`
	Detect  config.Detect    `json:"detect"`
	Look    look.Inference   `json:"look"`
	Cascade []config.Cascade `json:"cascade,omitempty"`
	Views   []looked         `json:"views"`
	Cameras []config.Camera  `json:"cameras"` // whose addresses stay here
}

// looked is what decides how the cameras of a view are looked at.
type looked struct {
	Model config.Model   `json:"model"`
	Look  look.Inference `json:"look"`
}

// network opens the network in a process of its own and closes it again.
func (c *Check) network(ctx context.Context) (mistakes []error) {
	r := networks(c.Config)
	r.Cameras = slices.Clone(c.Config.Cameras)
	for i := range r.Cameras {
		r.Cameras[i].URI = ""
	}
	err := isolate.Process{Program: c.Program, Timeout: patience}.Run(ctx, &r, nil, func(answer json.RawMessage) {
		var text string
		if json.Unmarshal(answer, &text) == nil {
			mistakes = append(mistakes, errors.New(text))
		}
	})
	if err != nil {
		mistakes = append(mistakes, fmt.Errorf("the networks cannot be opened: %w", err))
	}
	return mistakes
}

// Serve is the process that opens the network and answers with every mistake.
func Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	var r request
	return isolate.Serve(ctx, in, out, &r, func(ctx context.Context, _ []byte, answer func(any)) error {
		c := config.Default()
		c.Model, c.Engine, c.Remote, c.Detect, c.Inference, c.Cascade, c.Cameras = r.Model, r.Engine, r.Remote, r.Detect, r.Look, r.Cascade, r.Cameras
		for i, view := range open.Views(c) {
			if i > 0 {
				view.Cascade = nil // it looks at what the first one finds
			}
			names, err := tryView(ctx, view)
			if err != nil {
				answer(err.Error())
			}
			for _, mistake := range zones(view.Cameras, names) {
				answer(mistake.Error())
			}
		}
		return nil
	})
}

// tryView opens what looks at a view and closes it again. A plan that TensorRT lacks will be built. names are none where nothing says what
// there is.
func tryView(ctx context.Context, c *config.Config) (names zone.Names, err error) {
	options := open.Options(c, c.Detect.Confidence, slog.New(slog.DiscardHandler))
	if err := options.Load(); err != nil {
		return names, err
	}
	sight := open.PredictorBuilder{Inference: c.Inference}
	n, err := sight.Open(ctx, options)
	if errors.Is(err, tensorrt.ErrNoPlan) || err != nil && c.Engine.Backend == config.Auto && options.NeedsPlan() {
		recognised, err := options.Recognise()
		if err != nil && !errors.Is(err, predict.ErrSetting) {
			return names, nil // TensorRT may know what the file does not say
		}
		return namesOf(c, &predict.Model{Model: engine.Model{Metadata: options.Metadata}, Recognised: recognised}), err
	}
	if err != nil {
		return names, err
	}
	p, err := open.WithCascade(ctx, n, c, nil, options.Log)
	if err != nil && !errors.Is(err, tensorrt.ErrNoPlan) {
		return names, errors.Join(err, n.Close())
	}
	m := n.Model()
	return namesOf(c, &m), p.Close()
}

// namesOf are those that zones may have of a network, none where no object is followed.
func namesOf(c *config.Config, m *predict.Model) zone.Names {
	if !c.Detect.Track || !m.Recognised.Task.FindsObjects() {
		return zone.Names{}
	}
	return zone.Names{Labels: m.Metadata.Labels, Keypoints: m.Recognised.KeypointNames()}
}

// zones finds zones, lines and filters that do not fit the names; without labels nothing can be said of them.
func zones(cameras []config.Camera, names zone.Names) (mistakes []error) {
	if len(names.Labels) == 0 {
		return nil
	}
	for i := range cameras {
		if err := cameras[i].Analytics.Validate(names); err != nil {
			mistakes = append(mistakes, fmt.Errorf("camera %s: %w", cameras[i].Name, err))
		}
	}
	return mistakes
}
