package diagnose

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/network"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/tensorrt"
	"github.com/edge-infer/edge-infer/postprocess/head"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// model runs the network twice on a grey image and measures the second run.
func (r *request) model(ctx context.Context) Check {
	settings := config.Default()
	settings.Model = r.Model
	settings.Engine = r.Engine
	settings.Remote = r.Remote
	settings.Detect = r.Detect
	detail, err := timeModel(ctx, settings)
	switch {
	case err == nil:
		return ok("", "%s", detail)
	case errors.Is(err, tensorrt.ErrNoPlan):
		return warn("", "edge-infer build makes it now", "no engine plan yet: the first start takes minutes to build it")
	}
	c := fail("", "use another --model or --engine", "%v", err)
	if errors.Is(err, head.ErrLayout) {
		c.Remedy = "edge-infer inspect shows inputs and outputs; --labels and --layout describe them"
	}
	if e := (*engine.Error)(nil); errors.As(err, &e) && e.Hint != "" {
		plain := *e
		plain.Hint = ""
		c.Detail = plain.Error()
		c.Remedy = e.Hint
	}
	return c
}

func timeModel(ctx context.Context, c *config.Config) (detail string, err error) {
	n, err := predict.Open(ctx, network.Options(c, c.Detect.Confidence, slog.New(slog.DiscardHandler)))
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, n.Close()) }()
	m := n.Model()
	const width, height = 640, 480
	img := engine.Image{Data: make([]byte, 3*width*height), Width: width, Height: height, Stride: 3 * width, Format: engine.BGR}
	for i := range img.Data {
		img.Data[i] = 114
	}
	var took time.Duration
	for range 2 { // the first run is a warm-up
		start := time.Now()
		seen, err := predict.Run(n, img)
		if err == nil {
			err = seen[0].Err
		}
		if err != nil {
			return "", err
		}
		took = time.Since(start)
	}
	return fmt.Sprintf("%s on %s %s, %s, %s: layout %s, %.1f ms per image", m.Path, m.Backend, m.BackendVersion, m.Device, m.Precision,
		m.Recognised.Layout, float64(took.Microseconds())/1000), nil
}
