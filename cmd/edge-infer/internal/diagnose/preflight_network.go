package diagnose

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config/look"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/network"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/isolate"
	"github.com/edge-infer/edge-infer/engine/tensorrt"
	"github.com/edge-infer/edge-infer/postprocess/predict"
	"github.com/edge-infer/edge-infer/postprocess/zone"
)

// openTimeout bounds opening the networks; large ones on slow disks take long.
const openTimeout = 3 * time.Minute

// view holds the network settings of a view of network.Views.
type view struct {
	Model     config.Model   `json:"model"`
	Inference look.Inference `json:"inference"`
}

// networks opens and closes the networks in a child process.
func (p *Preflight) networks(ctx context.Context) (mistakes []error) {
	r := networksOf(p.Config)
	r.Networks.Cameras = slices.Clone(p.Config.Cameras)
	for i := range r.Networks.Cameras {
		r.Networks.Cameras[i].URI = ""
	}
	err := isolate.Process{Program: p.Program, Timeout: openTimeout}.Run(ctx, r, nil, func(answer json.RawMessage) {
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

// networks opens the networks in the child process and sends every mistake.
func (r *request) networks(ctx context.Context, send func(any)) error {
	c := config.Default()
	c.Model = r.Model
	c.Engine = r.Engine
	c.Remote = r.Remote
	c.Detect = r.Detect
	c.Inference = r.Networks.Inference
	c.Cascade = r.Networks.Cascade
	c.Cameras = r.Networks.Cameras
	for i, view := range network.Views(c) {
		if i > 0 {
			view.Cascade = nil // the cascade is opened once
		}
		names, err := openView(ctx, view)
		if err != nil {
			send(err.Error())
		}
		for _, mistake := range zones(view.Cameras, names) {
			send(mistake.Error())
		}
	}
	return nil
}

// openView opens the network of a view, closes it again and returns its names, if it has any. A missing engine plan is no mistake.
func openView(ctx context.Context, c *config.Config) (names zone.Names, err error) {
	options := network.Options(c, c.Detect.Confidence, slog.New(slog.DiscardHandler))
	if err := options.Load(); err != nil {
		return names, err
	}
	builder := network.PredictorBuilder{Inference: c.Inference}
	n, err := builder.Open(ctx, options)
	if errors.Is(err, tensorrt.ErrNoPlan) || err != nil && c.Engine.Backend == config.Auto && options.NeedsPlan() {
		recognised, err := options.Recognise()
		if err != nil && !errors.Is(err, predict.ErrSetting) {
			return names, nil // TensorRT may recognise more than the file declares
		}
		return namesOf(c, &predict.Model{Model: engine.Model{Metadata: options.Metadata}, Recognised: recognised}), err
	}
	if err != nil {
		return names, err
	}
	p, err := network.WithCascade(ctx, n, c, nil, options.Log)
	if err != nil && !errors.Is(err, tensorrt.ErrNoPlan) {
		return names, errors.Join(err, n.Close())
	}
	m := n.Model()
	return namesOf(c, &m), p.Close()
}

// namesOf returns the names that zones may use, none if objects are not tracked.
func namesOf(c *config.Config, m *predict.Model) zone.Names {
	if !c.Detect.Track || !m.Recognised.Task.FindsObjects() {
		return zone.Names{}
	}
	return zone.Names{Labels: m.Metadata.Labels, Keypoints: m.Recognised.KeypointNames()}
}

// zones returns the mistakes in zones, lines and filters; without labels they cannot be checked.
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
