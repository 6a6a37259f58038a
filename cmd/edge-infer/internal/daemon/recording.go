package daemon

import (
	"fmt"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/annotate"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/internal/atomicfile"
)

// checkSave checks that the camera can be recorded, if that is asked for.
func (d *Daemon) checkSave(c *config.Config) error {
	if d.Save == "" {
		return nil
	}
	if _, err := annotate.Container(d.Save); err != nil {
		return config.Usagef("--save %v", err)
	}
	if len(c.Cameras) != 1 {
		return config.Usagef("--save records one camera, this run has %d", len(c.Cameras))
	}
	if err := atomicfile.Check(d.Save); err != nil {
		return fmt.Errorf("--save: %w", err)
	}
	return nil
}

// openRecording starts to record the camera, if that is asked for.
func (o *outputs) openRecording(cameras []pipeline.Camera) error {
	if o.save == "" || len(cameras) == 0 {
		return nil
	}
	recording := &annotate.Recording{Path: o.save, Camera: cameras[0].Name, Logger: o.logger}
	if err := recording.Open(); err != nil {
		return fmt.Errorf("--save: %w", err)
	}
	o.recording = recording
	return nil
}
