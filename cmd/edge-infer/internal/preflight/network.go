package preflight

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
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

// request is the network that is to be opened, and what is looked for in its findings.
type request struct {
	Model   config.Model     `json:"model"`
	Engine  config.Engine    `json:"engine"`
	Remote  config.Remote    `json:"remote"`
	Detect  config.Detect    `json:"detect"`
	Cascade []config.Cascade `json:"cascade,omitempty"`
	Cameras []camera         `json:"cameras,omitempty"`
}

// camera is one with zones and lines, whose address stays here.
type camera struct {
	Name      string      `json:"name"`
	Analytics zone.Config `json:"analytics"`
}

// network opens the network in a process of its own and closes it again.
func (c *Check) network(ctx context.Context) (mistakes []error) {
	r := network(c.Config)
	for i := range c.Config.Cameras {
		r.Cameras = append(r.Cameras, camera{c.Config.Cameras[i].Name, c.Config.Cameras[i].Analytics})
	}
	err := isolate.Process{Program: c.Program, Timeout: patience}.Run(ctx, &r, nil, func(answer json.RawMessage) {
		var text string
		if json.Unmarshal(answer, &text) == nil {
			mistakes = append(mistakes, errors.New(text))
		}
	})
	if err != nil {
		mistakes = append(mistakes, fmt.Errorf("model %s cannot be opened: %w", c.Config.Model.Path, err))
	}
	return mistakes
}

// Serve is the process that opens the network and answers with every mistake.
func Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	var r request
	return isolate.Serve(ctx, in, out, &r, func(ctx context.Context, _ []byte, answer func(any)) error {
		labels, err := r.open(ctx)
		if err != nil {
			answer(err.Error())
			return nil
		}
		var cameras []config.Camera
		for _, c := range r.Cameras {
			cameras = append(cameras, config.Camera{Name: c.Name, Analytics: c.Analytics})
		}
		for _, mistake := range zones(cameras, labels) {
			answer(mistake.Error())
		}
		return nil
	})
}

// open opens the network and closes it again. A plan that TensorRT lacks will be built. labels is nil where nothing says what there is.
func (r *request) open(ctx context.Context) (labels []string, err error) {
	c := config.Default()
	c.Model, c.Engine, c.Remote, c.Detect, c.Cascade = r.Model, r.Engine, r.Remote, r.Detect, r.Cascade
	options := open.Options(c, c.Detect.Confidence, slog.New(slog.DiscardHandler))
	if err := options.Load(); err != nil {
		return nil, err
	}
	n, err := predict.Open(ctx, options)
	if errors.Is(err, tensorrt.ErrNoPlan) || err != nil && c.Engine.Backend == config.Auto && options.LacksPlan() {
		return options.Metadata.Labels, nil
	}
	if err != nil {
		return nil, err
	}
	p, err := open.Chain(ctx, n, c, nil, options.Log)
	if err != nil && !errors.Is(err, tensorrt.ErrNoPlan) {
		return nil, errors.Join(err, n.Close())
	}
	m := n.Model()
	if c.Detect.Track && m.Recognised.Task != engine.Classify {
		labels = m.Metadata.Labels
	}
	return labels, p.Close()
}

// zones finds zones, lines and filters that do not fit the labels; without labels nothing can be said of them.
func zones(cameras []config.Camera, labels []string) (mistakes []error) {
	if len(labels) == 0 {
		return nil
	}
	for i := range cameras {
		if err := cameras[i].Analytics.Check(labels); err != nil {
			mistakes = append(mistakes, fmt.Errorf("camera %s: %w", cameras[i].Name, err))
		}
	}
	return mistakes
}
