package daemon

import (
	"fmt"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/annotate"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
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
