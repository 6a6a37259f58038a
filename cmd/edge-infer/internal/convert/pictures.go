package convert

import (
	"fmt"

	"github.com/edge-infer/edge-infer/engine/quantize"
)

// checkOverlap refuses pictures that a model was calibrated on: they say little about its accuracy.
func checkOverlap(heldOut, calibration []string) error {
	both, err := (&quantize.Pictures{Files: heldOut}).Overlap(&quantize.Pictures{Files: calibration})
	if err == nil && both > 0 {
		err = fmt.Errorf("%d of the %d pictures that the gate would judge on are calibration pictures (name others with --data)", both,
			len(heldOut))
	}
	return err
}
