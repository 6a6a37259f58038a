package daemon

import (
	"context"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/update"
)

// fleetSettings are the settings of a run that jobs change. It implements update.Settings.
type fleetSettings struct {
	config.FleetSettings

	run *run
}

var _ update.Settings = (*fleetSettings)(nil)

func (fleetSettings) Check(text []byte) error { return config.CheckFleetSettings(text) }

func (f *fleetSettings) Apply(ctx context.Context) error { return f.run.control.ReloadInPlace(ctx) }

// Working returns the broker if there is a connection to it, and the cameras that deliver images which are inferred.
func (f *fleetSettings) Working() (parts []string) {
	now := f.run.outputs.Now()
	if now.Outputs.MQTT != nil && now.Outputs.MQTT.Connection.Connected {
		parts = append(parts, "the broker")
	}
	for i := range now.Cameras {
		c := &now.Cameras[i]
		if c.Capture.State == capture.Running && c.Totals.Error == "" {
			parts = append(parts, "camera "+c.Capture.Name)
		}
	}
	return parts
}
