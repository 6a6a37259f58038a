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
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/site"
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

// request is what the process opens.
type request struct {
	Groups  []site.Group     `json:"groups"` // without the cameras' addresses
	Cascade []config.Cascade `json:"cascade,omitempty"`
	Track   bool             `json:"track"`
}

// network opens the network in a process of its own and closes it again.
func (c *Check) network(ctx context.Context) (mistakes []error) {
	s := site.Resolve(c.Config, c.Remote)
	r := request{Groups: s.Groups, Cascade: s.Cascade, Track: s.Track}
	for _, g := range r.Groups {
		for i := range g.Cameras {
			g.Cameras[i].URI = ""
		}
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
		for i := range r.Groups {
			g, cascade := &r.Groups[i], r.Cascade
			if i > 0 {
				cascade = nil // it works on the detections of the first group
			}
			names, err := tryGroup(ctx, g, cascade, r.Track)
			if err != nil {
				answer(err.Error())
			}
			for _, mistake := range zones(g.Cameras, names) {
				answer(mistake.Error())
			}
		}
		return nil
	})
}

// tryGroup opens the networks of a camera group and closes them again. A plan that TensorRT lacks is not built. names are empty where the
// classes are not known.
func tryGroup(ctx context.Context, g *site.Group, cascade []config.Cascade, track bool) (names zone.Names, err error) {
	n := &g.Network
	options := open.GroupOptions(g, slog.New(slog.DiscardHandler))
	if err := options.Load(); err != nil {
		return names, err
	}
	builder := open.PredictorBuilder{Inference: n.Inference}
	opened, err := builder.Open(ctx, options)
	if errors.Is(err, tensorrt.ErrNoPlan) || err != nil && n.Engine.Backend == config.Auto && options.NeedsPlan() {
		recognised, err := options.Recognise()
		if err != nil && !errors.Is(err, predict.ErrSetting) {
			return names, nil // TensorRT may know what the file does not say
		}
		return namesOf(track, &predict.Model{Model: engine.Model{Metadata: options.Metadata}, Recognised: recognised}), err
	}
	if err != nil {
		return names, err
	}
	c := &config.Config{Engine: n.Engine, Cascade: cascade}
	p, err := open.WithCascade(ctx, opened, c, nil, options.Log)
	if err != nil && !errors.Is(err, tensorrt.ErrNoPlan) {
		return names, errors.Join(err, opened.Close())
	}
	m := opened.Model()
	return namesOf(track, &m), p.Close()
}

// namesOf are those that zones may have of a network, none where no object is followed.
func namesOf(track bool, m *predict.Model) zone.Names {
	if !track || !m.Recognised.Task.FindsObjects() {
		return zone.Names{}
	}
	return zone.Names{Labels: m.Metadata.Labels, Keypoints: m.Recognised.KeypointNames()}
}

// zones finds zones, lines and filters that do not fit the names; without labels nothing can be said of them.
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
