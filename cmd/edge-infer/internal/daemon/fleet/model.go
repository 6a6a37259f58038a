package fleet

import (
	"context"
	"errors"
	"fmt"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/judge"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/update"
)

// Models are the models of a fleet as an updater changes them. It implements update.Fleet.
type Models struct{ *Fleet }

var _ update.Fleet = Models{}

// Comparison returns the settings by which a model, by its configured name, is compared with another version of it.
func (m Models) Comparison(model string) (judge.Request, error) {
	users := m.devices.Users(model)
	if len(users) == 0 {
		return judge.Request{}, fmt.Errorf("no camera has the model %s (set model.path: %s)", model, model)
	}
	for _, d := range users {
		if err := d.ModelFault(); err != nil {
			return judge.Request{}, err
		}
	}
	if text, failed := m.upgrade.Doing(); text != "" && !failed {
		return judge.Request{}, errors.New("an engine plan of the running model is being built")
	}
	return users[0].Comparison(), nil
}

// UseModel has all cameras with a model go on with other files of it. No frame is lost. On an error all go on as before.
func (m Models) UseModel(ctx context.Context, model string, files judge.Model) error {
	users := m.devices.Users(model)
	before := make([]judge.Model, len(users))
	for i, d := range users {
		before[i] = d.ModelFiles()
	}
	for i, d := range users {
		err := m.devices.UseModel(ctx, d, files)
		for ; err != nil && i > 0; i-- {
			err = errors.Join(err, m.devices.UseModel(ctx, users[i-1], before[i-1]))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Health returns how the cameras with a model do that runs from a file. The counters run from the start.
func (m Models) Health(model, file string) (h update.Health) {
	captured := map[string]uint64{}
	for _, c := range m.cameras.All() {
		captured[c.Site.Name] = c.Capture.Stats().Captured
	}
	for _, d := range m.devices.Users(model) {
		h.Devices++
		err := d.ModelFault()
		if running := d.Running().Model().Path; err == nil && running != file {
			err = fmt.Errorf("%s runs in its place", running)
		}
		h.Err = errors.Join(h.Err, err)
		for _, totals := range d.Totals() {
			h.Captured += captured[totals.Camera]
			h.Inferred += totals.Inferred
			h.Failed += totals.DroppedError
		}
	}
	return h
}

// HasModel reports whether a camera has a model, by its configured name.
func (m Models) HasModel(model, camera string) bool {
	c := m.site.Load().Camera(camera)
	return c != nil && c.Network.Model.Path == model
}
