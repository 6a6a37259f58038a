package diagnose

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/network"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/site"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/isolate"
	"github.com/edge-infer/edge-infer/engine/tensorrt"
	"github.com/edge-infer/edge-infer/postprocess/predict"
	"github.com/edge-infer/edge-infer/postprocess/zone"
)

// openTimeout bounds opening the networks; large ones on slow disks take long.
const openTimeout = 3 * time.Minute

// networks opens and closes the networks in a child process.
func (p *Preflight) networks(ctx context.Context) (mistakes []error) {
	s := site.Resolve(p.Config, p.Remote)
	r := &request{Job: "networks", Networks: networksRequest{Groups: s.Groups, Cascade: s.Cascade, Track: s.Track}}
	for _, g := range r.Networks.Groups {
		for i := range g.Cameras {
			g.Cameras[i].URI = ""
		}
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
	for i := range r.Networks.Groups {
		g, cascade := &r.Networks.Groups[i], r.Networks.Cascade
		if i > 0 {
			cascade = nil // the cascade is opened once
		}
		names, err := openGroup(ctx, g, cascade, r.Networks.Track)
		if err != nil {
			send(err.Error())
		}
		for _, mistake := range zones(g.Cameras, names) {
			send(mistake.Error())
		}
	}
	return nil
}

// openGroup opens the networks of a camera group, closes them again and returns their names, if they have any. A missing engine plan is no
// mistake.
func openGroup(ctx context.Context, g *site.Group, cascade []config.Cascade, track bool) (names zone.Names, err error) {
	n := &g.Network
	options := network.GroupOptions(g, slog.New(slog.DiscardHandler))
	if err := options.Load(); err != nil {
		return names, err
	}
	builder := network.PredictorBuilder{Inference: n.Inference}
	opened, err := builder.Open(ctx, options)
	if errors.Is(err, tensorrt.ErrNoPlan) || err != nil && n.Engine.Backend == config.Auto && options.NeedsPlan() {
		recognised, err := options.Recognise()
		if err != nil && !errors.Is(err, predict.ErrSetting) {
			return names, nil // TensorRT may recognise more than the file declares
		}
		return namesOf(track, &predict.Model{Model: engine.Model{Metadata: options.Metadata}, Recognised: recognised}), err
	}
	if err != nil {
		return names, err
	}
	c := &config.Config{Engine: n.Engine, Cascade: cascade}
	p, err := network.WithCascade(ctx, opened, c, nil, options.Log)
	if err != nil && !errors.Is(err, tensorrt.ErrNoPlan) {
		return names, errors.Join(err, opened.Close())
	}
	m := opened.Model()
	return namesOf(track, &m), p.Close()
}

// namesOf returns the names that zones may use, none if objects are not tracked.
func namesOf(track bool, m *predict.Model) zone.Names {
	if !track || !m.Recognised.Task.FindsObjects() {
		return zone.Names{}
	}
	return zone.Names{Labels: m.Metadata.Labels, Keypoints: m.Recognised.KeypointNames()}
}

// zones returns the mistakes in zones, lines and filters; without labels they cannot be checked.
func zones(cameras []site.Camera, names zone.Names) (mistakes []error) {
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
