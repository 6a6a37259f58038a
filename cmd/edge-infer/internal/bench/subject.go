package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/onnx"
	"github.com/edge-infer/edge-infer/engine/tensorrt"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// subject is an open network with its inputs: images, or tensors if it has no image input.
type subject struct {
	*Bench
	contender Contender
	batch     int
	meter     *meter
	model     engine.Model

	network *predict.Network // nil for tensors
	pixels  [][]byte
	images  []engine.Image
	before  int64 // peak memory before the images were allocated
	held    int64 // memory of the images

	raw *raw
}

// fixedBatchError means that a model was exported for another number of images in a request.
type fixedBatchError struct{ batch int }

func (e *fixedBatchError) Error() string {
	return fmt.Sprintf("the model takes exactly %d images in a request", e.batch)
}

// open opens a contender's network for a batch size. A network without image input, or with outputs of an unknown layout, is opened for
// tensors unless only the loop is measured.
func (b *Bench) open(ctx context.Context, c Contender, batch int) (s *subject, err error) {
	s = &subject{Bench: b, contender: c, batch: batch, meter: newMeter()}
	defer func() {
		if err != nil {
			_ = s.close() // the first error is more useful
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
		b.Logger.Info("measuring with random tensors", "reason", err.Error())
		return s, nil
	}
	s.model = s.network.Model().Model
	takes := s.model.MaxBatch
	if s.model.Image != nil && s.model.Image.Batch > 0 && takes != batch {
		return s, &fixedBatchError{batch: takes}
	}
	if takes < batch {
		return s, fmt.Errorf("--batch %d: model %s takes at most %d images in a request", batch, s.model.Path, takes)
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

// onlyLoop reports whether only the loop is to be measured.
func (b *Bench) onlyLoop() bool { return len(b.What) == 1 && b.What[0] == string(Loop) }

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

// close stops the meter and closes the network.
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

// measure makes all runs. With several contenders it also keeps the detections of the first batch size for comparison.
func (s *subject) measure(ctx context.Context, report *Report, found **detections) error {
	if *found == nil && len(s.Contenders) > 1 {
		var err error
		if *found, err = s.find(); err != nil {
			return err
		}
	}
	for _, what := range s.parts(s.network != nil) {
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

// blank returns the description of a run without figures.
func (s *subject) blank(what What, drive Drive) Result {
	r := Result{
		What: what, Drive: drive, Engine: s.contender.Engine, Model: s.model.Path, Backend: s.model.Backend, Version: s.model.BackendVersion,
		Device: s.model.Device, Precision: s.model.Precision, Batch: s.batch,
	}
	if drive == Paced {
		r.Rate = s.Rate * float64(s.cameras(drive, s.batch))
	}
	return r
}

// run measures one part with one drive.
func (s *subject) run(ctx context.Context, r *Result) error {
	if r.What == Loop {
		if err := s.loop(ctx, r); err != nil {
			return err
		}
	} else {
		d := &driver{batch: s.batch, drive: r.Drive, network: r.What == Engine}
		if r.Drive == Paced {
			d.interval = time.Duration(float64(s.batch) / r.Rate * float64(time.Second))
		}
		if d.target = s.raw; s.network != nil {
			d.target = newImageRequests(s.network, s.images, s.batch)
		}
		if err := d.measure(ctx, s.Bench, s.meter, r, s.held); err != nil {
			return err
		}
		if d.network && d.busy == 0 {
			return config.Usagef("--what engine: %s does not measure the inference time on the device", r.Backend)
		}
	}
	r.Memory = max(r.Memory, s.before)
	return nil
}
