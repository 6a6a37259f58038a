package outputs

import (
	"fmt"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/annotate"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
)

// openRecording starts to record the camera, if that is asked for.
func (o *Outputs) openRecording(cameras []pipeline.Camera) error {
	if o.Save == "" || len(cameras) == 0 {
		return nil
	}
	recording := &annotate.Recording{Path: o.Save, Camera: cameras[0].Name, Logger: o.Logger}
	if err := recording.Open(); err != nil {
		return fmt.Errorf("--save: %w", err)
	}
	o.recording = recording
	return nil
}
