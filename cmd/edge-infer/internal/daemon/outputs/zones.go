package outputs

import (
	"errors"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/web"
	"github.com/edge-infer/edge-infer/postprocess/zone"
)

// zones are the zones drawn on the page: saved in the state directory, and in force after the reload they trigger.
type zones struct {
	config.Zones
	reload func()
}

var _ web.Zones = (*zones)(nil)

// Set implements web.Zones.
func (z *zones) Set(camera, version string, analytics zone.Config) (string, error) {
	next, err := z.Zones.Set(camera, version, analytics)
	if errors.Is(err, config.ErrOutdated) {
		return "", web.ErrOutdated
	}
	if err == nil {
		z.reload()
	}
	return next, err
}
