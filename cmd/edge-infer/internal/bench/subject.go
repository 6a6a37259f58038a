package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/bench/result"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/onnx"
	"github.com/edge-infer/edge-infer/engine/tensorrt"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// subject is an open network with what it is given: images, or tensors where it takes none.
type subject struct {
	*Bench
	contender Contender
	batch     int
	meter     *meter
	model     engine.Model

	network *predict.Network // nil for tensors
	pixels  [][]byte
	images  []engine.Image
	before  int64 // most memory before the images came
	held    int64 // by the images

	raw *raw
}

// open opens a contender's network for a batch size. One that takes no images, or whose outputs mean nothing to this program, is opened
// for tensors unless the loop was asked for.
func (b *Bench) open(ctx context.Context, c Contender, batch int) (s *subject, err error) {
	s = &subject{Bench: b, contender: c, batch: batch, meter: newMeter()}
	defer func() {
		if err != nil {
			_ = s.close() // what kept it from opening is the better answer
		}
	}()
	s.network, err = predict.Open(ctx, b.options(c.Config, batch))
	if err != nil {
		s.network = nil
		if b.onlyLoop() || ctx.Err() != nil {
			return s, err
		}
		if other := s.openRaw(ctx); errors.As(other, new(config.UsageError)) {
			return s, other
		} else if other != nil {
			return s, err
		}
		b.Logger.Info("measured on tensors of random numbers", "reason", err.Error())
		return s, nil
	}
	s.model = s.network.Model().Model
	if takes := s.model.MaxBatch; takes < batch || s.model.Image != nil && s.model.Image.Batch > 0 && takes != batch {
		return s, fmt.Errorf("--batch %d: model %s takes %d images in a request, no more and no less (export it with an open batch)",
			batch, s.model.Path, takes)
	}
	s.before = peakMemory()
	resident := residentMemory()
	if s.pixels, err = draw(s.network, b.Images, b.Width, b.Height); err != nil {
		return s, err
	}
	s.held = max(residentMemory()-resident, 0)
	for _, data := range s.pixels {
		s.images = append(s.images, engine.Image{
			Data: data, Width: b.Width, Height: b.Height, Stride: engine.BGR.RowBytes(b.Width), Format: engine.BGR,
		})
	}
	return s, nil
}

// onlyLoop says that nothing but the loop was asked for by name.
func (b *Bench) onlyLoop() bool { return len(b.What) == 1 && b.What[0] == string(result.Loop) }

// openRaw opens the network for tensors.
func (s *subject) openRaw(ctx context.Context) error {
	options := s.options(s.contender.Config, s.batch)
	options.TensorInputs, options.Slots = true, 1
	if err := options.Load(); err != nil {
		return err
	}
	if !tensorrt.IsPlan(options.Bytes) {
		file, err := onnx.Parse(options.Path, options.Bytes)
		if err != nil {
			return err
		}
		inputs, err := file.Inputs()
		if err != nil {
			return err
		}
		if options.Shapes, err = shaped(inputs, s.shapes, s.batch); err != nil {
			return err
		}
	}
	n, err := predict.OpenRaw(ctx, options)
	if err != nil {
		return err
	}
	s.raw, s.model = &raw{network: n}, n.Model()
	inputs, err := shaped(s.model.Inputs, s.shapes, s.batch)
	if err != nil {
		return err
	}
	s.raw.inputs = random(inputs)
	return nil
}

// close ends the watching and gives the network back.
func (s *subject) close() error {
	s.meter.close()
	switch {
	case s.network != nil:
		return s.network.Close()
	case s.raw != nil:
		return s.raw.network.Close()
	}
	return nil
}

// measure runs everything that was asked for, and keeps what the network finds, once, for several contenders to be compared.
func (s *subject) measure(ctx context.Context, report *result.Report, found **detections) error {
	if *found == nil && len(s.Contenders) > 1 {
		var err error
		if *found, err = s.find(); err != nil {
			return err
		}
	}
	for _, what := range s.whats(s.network != nil) {
		for _, drive := range s.drives(what, s.network != nil) {
			r := s.blank(what, drive)
			step := s.Progress.Begin(r.Name())
			step.Note(r.Name())
			err := s.run(ctx, &r)
			step.Close()
			if err != nil {
				return err
			}
			report.Results = append(report.Results, r)
		}
	}
	return nil
}

// blank says what is going to be measured.
func (s *subject) blank(what result.What, drive result.Drive) result.Result {
	r := result.Result{
		What: what, Drive: drive, Engine: s.contender.Engine, Model: s.model.Path, Backend: s.model.Backend, Version: s.model.BackendVersion,
		Device: s.model.Device, Precision: s.model.Precision, Batch: s.batch,
	}
	if drive == result.Paced {
		r.Rate = s.Rate * float64(s.cameras(drive, s.batch))
	}
	return r
}

// run measures one part one way.
func (s *subject) run(ctx context.Context, r *result.Result) error {
	if r.What == result.Loop {
		if err := s.loop(ctx, r); err != nil {
			return err
		}
	} else {
		d := &driver{batch: s.batch, drive: r.Drive, network: r.What == result.Engine}
		if r.Drive == result.Paced {
			d.interval = time.Duration(float64(s.batch) / r.Rate * float64(time.Second))
		}
		if d.served = s.raw; s.network != nil {
			d.served = newPictured(s.network, s.images, s.batch)
		}
		if err := d.measure(ctx, s.Bench, s.meter, r, s.held); err != nil {
			return err
		}
		if d.network && d.busy == 0 {
			return config.Usagef("--what engine: %s does not tell how long the network takes on its device", r.Backend)
		}
	}
	r.Memory = max(r.Memory, s.before)
	return nil
}
