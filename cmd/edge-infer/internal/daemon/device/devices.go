package device

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/network"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/site"
	"github.com/edge-infer/edge-infer/engine/tensorrt"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// Devices asks several devices together, or the one that runs a camera.
type Devices struct {
	All []*Device
}

// Of returns the device that runs a camera, nil for none.
func (a *Devices) Of(camera string) *Device {
	for _, d := range a.All {
		if _, found := d.Settings(camera); found {
			return d
		}
	}
	return nil
}

// SetSettings replaces the settings of a camera. An error changes nothing.
func (a *Devices) SetSettings(camera string, settings pipeline.Settings) error {
	if d := a.Of(camera); d != nil {
		return d.SetSettings(camera, settings)
	}
	return fmt.Errorf("no camera %q", camera)
}

// EndObjects ends all objects of a camera.
func (a *Devices) EndObjects(camera string) {
	if d := a.Of(camera); d != nil {
		d.EndObjects(camera)
	}
}

// Settings returns a camera's settings; false for an unknown camera.
func (a *Devices) Settings(camera string) (pipeline.Settings, bool) {
	if d := a.Of(camera); d != nil {
		return d.Settings(camera)
	}
	return pipeline.Settings{}, false
}

// SetSlowdown multiplies the interval of every camera.
func (a *Devices) SetSlowdown(factor int) {
	for _, d := range a.All {
		d.SetSlowdown(factor)
	}
}

// Stats returns the counters of each camera, with rates since the previous call.
func (a *Devices) Stats() (all []pipeline.CameraStats) {
	for _, d := range a.All {
		all = append(all, d.Stats()...)
	}
	return all
}

// Totals returns the counters of each camera since it was added.
func (a *Devices) Totals() (all []pipeline.CameraStats) {
	for _, d := range a.All {
		totals := d.Totals()
		if text := d.faultText(); text != "" {
			for i := range totals {
				totals[i].Error, totals[i].NetworkFailed = text, true
			}
		}
		all = append(all, totals...)
	}
	return all
}

// Model returns the model of the first device that has a predictor, with the names of all devices.
func (a *Devices) Model() predict.Model {
	first := max(0, slices.IndexFunc(a.All, func(d *Device) bool { return !d.Waits() }))
	model := a.All[first].Running().Model()
	var names []string
	for _, d := range a.All {
		if d.Waits() {
			continue
		}
		if name := a.name(d); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	model.Device = strings.Join(names, "; ")
	return model
}

// Groups returns the first device of each camera group.
func (a *Devices) Groups() (firsts []*Device) {
	for _, d := range a.All {
		if !slices.ContainsFunc(firsts, func(other *Device) bool { return other.group == d.group }) {
			firsts = append(firsts, d)
		}
	}
	return firsts
}

// Describe returns the model of a camera with its tiles and augmentations; empty if all cameras have the same.
func (a *Devices) Describe(camera string) string {
	if d := a.Of(camera); d != nil && len(a.Groups()) > 1 {
		return d.Describe()
	}
	return ""
}

// Configured reports whether a network is one of the set, open or not.
func (a *Devices) Configured(n *site.Network) bool {
	return slices.ContainsFunc(a.All, func(d *Device) bool { return d.group.Network.Equal(n) })
}

// ModelOf returns the model of a network that is open, nil for another one.
func (a *Devices) ModelOf(n *site.Network) *predict.Model {
	for _, d := range a.All {
		if d.group.Network.Equal(n) && !d.Waits() {
			m := d.Running().Model()
			return &m
		}
	}
	return nil
}

// Hardware returns the device that computes a camera's frames; empty for an unknown camera.
func (a *Devices) Hardware(camera string) string {
	if d := a.Of(camera); d != nil {
		return a.name(d)
	}
	return ""
}

// name returns a device name, with its number if GPUs share one name.
func (a *Devices) name(d *Device) string {
	model := d.Running().Model()
	if len(a.All) > 1 && model.Backend == tensorrt.Name {
		return fmt.Sprintf("GPU %d, %s", d.options.Device, model.Device)
	}
	return model.Device
}

// InferenceTime returns that of the slowest device.
func (a *Devices) InferenceTime() time.Duration {
	longest := time.Duration(0)
	for _, d := range a.All {
		longest = max(longest, d.InferenceTime())
	}
	return longest
}

// FirstFrame is when the first device inferred a frame, 0 before.
func (a *Devices) FirstFrame() time.Duration {
	first := time.Duration(0)
	for _, d := range a.All {
		if t := d.FirstFrame(); t > 0 && (first == 0 || t < first) {
			first = t
		}
	}
	return first
}

// FrameMemory is how many bytes of the devices' memory the cameras hold.
func (a *Devices) FrameMemory() (bytes int64) {
	for _, d := range a.All {
		bytes += d.Memory.Lent()
	}
	return bytes
}

// Upgradable reports whether TensorRT could take over somewhere if its plan were built.
func (a *Devices) Upgradable() bool {
	return slices.ContainsFunc(a.All, func(d *Device) bool {
		builder := network.PredictorBuilder{Inference: d.group.Network.Inference}
		return d.engines.quick.Load() || !d.onTensorRT() && builder.NeedsPlan(&d.options)
	})
}
