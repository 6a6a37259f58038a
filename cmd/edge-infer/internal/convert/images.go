package convert

import (
	"fmt"

	"github.com/edge-infer/edge-infer/engine/quantize"
)

// checkOverlap rejects images that the model was calibrated on, because they prove little about its accuracy.
func checkOverlap(heldOut, calibration []string) error {
	both, err := (&quantize.Images{Files: heldOut}).Overlap(&quantize.Images{Files: calibration})
	if err == nil && both > 0 {
		err = fmt.Errorf("%d of the %d images for the gate are calibration images (name others with --data)", both,
			len(heldOut))
	}
	return err
}
