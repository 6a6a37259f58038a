package device

import (
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// unopened takes the place of a predictor that could not be opened, until it can. It provides memory for the cameras' images and infers
// nothing.
type unopened struct {
	predict.Predictor // nil: the frame loop does not submit while the device has a fault
	memory            engine.Memory
	model             predict.Model
}

// newUnopened returns the placeholder for the model of a group.
func newUnopened(model string) *unopened {
	u := new(unopened)
	u.model.Path = model
	u.model.MaxBatch = 1
	u.model.Backend = "none"
	return u
}

// Model returns the path of the model only.
func (u *unopened) Model() predict.Model { return u.model }

// Alloc returns memory of the host.
func (u *unopened) Alloc(size int) (*engine.Buffer, error) { return u.memory.Alloc(size) }

// Slots returns 1, which is never used.
func (u *unopened) Slots() int { return 1 }

// Tune does nothing: the predictor is opened with the settings that are in force then.
func (u *unopened) Tune(predict.Decoding) error { return nil }

// Close frees the memory.
func (u *unopened) Close() error {
	u.memory.Close()
	return nil
}

// Waits reports whether the device has never had a predictor.
func (d *Device) Waits() bool {
	_, waits := d.Running().(*unopened)
	return waits
}
