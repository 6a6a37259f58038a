package site

import (
	"slices"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
)

// Outputs are the settings of everything that results and the state of a run go to. They are immutable after ResolveOutputs, and
// comparable by reflect.DeepEqual.
type Outputs struct {
	Device string // name of the device
	State  string // directory for the daemon's own files; empty for none
	Model  string // path of the model of all cameras
	// Masks, MapSide and DepthUnit are the form of masks, maps and distances in messages.
	Masks     string
	MapSide   int
	DepthUnit string

	MQTT     config.MQTT
	Events   config.Events // the event store
	Clips    config.Clips  // cameras have their own as well
	Webhooks []config.Webhook
	Verify   config.Verify
	Upload   config.Upload
	Samples  config.Samples
	Web      config.Web
}

// ResolveOutputs returns the settings of the outputs in a configuration.
func ResolveOutputs(c *config.Config) *Outputs {
	return &Outputs{
		Device: c.Name, State: c.State, Model: c.Model.Path, Masks: c.Detect.Masks, MapSide: c.Detect.MapSide, DepthUnit: c.Detect.DepthUnit,
		MQTT: c.MQTT, Events: c.Events, Clips: c.Clips, Webhooks: slices.Clone(c.Webhooks), Verify: c.Verify, Upload: c.Upload,
		Samples: c.Samples, Web: c.Web,
	}
}

// Stored reports whether events are stored.
func (o *Outputs) Stored() bool { return o.Events.Directory != "" && o.Events.Directory != config.Off }

// OutputChange is a change of the outputs' settings, and of files that outputs read when they are opened.
type OutputChange struct {
	Was, Next *Outputs
	Renewed   func(path string) bool // reports whether a file has changed since
}

// Back returns the change that takes this one back.
func (c *OutputChange) Back() *OutputChange {
	return &OutputChange{Was: c.Next, Next: c.Was, Renewed: c.Renewed}
}
