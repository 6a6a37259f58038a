package config

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/edge-infer/edge-infer/postprocess/zone"
)

// drawnZones are the zones drawn on the page, of all cameras.
type drawnZones struct {
	Cameras map[string]drawnCamera `yaml:"cameras"`

	file pageFile
}

// drawnCamera holds the zones drawn for one camera. They apply as long as the configured zones are those that they replaced.
type drawnCamera struct {
	Over      string      `yaml:"over"` // version of the configured zones that it replaces
	Analytics zone.Config `yaml:"analytics"`
}

const drawnComment = "# Zones and lines drawn on the web page. Each replaces those of its camera in the configuration until these are edited.\n"

// readDrawnZones reads a file; nothing for a missing one.
func readDrawnZones(file pageFile) (*drawnZones, error) {
	z := &drawnZones{file: file}
	err := file.read(z)
	if z.Cameras == nil {
		z.Cameras = map[string]drawnCamera{}
	}
	if err != nil {
		line, _, _ := strings.Cut(err.Error(), "\n")
		return nil, fmt.Errorf("zones drawn on the page: %s: %s (mend it, or remove it and draw them again)", file.path, line)
	}
	return z, nil
}

// Over returns the zones in force for a camera with these configured ones.
func (z *drawnZones) Over(camera string, configured zone.Config) zone.Config {
	if drawing, ok := z.Cameras[camera]; ok && drawing.Over == zonesVersion(&configured) {
		return drawing.Analytics
	}
	return configured
}

// zonesVersion identifies the content of zones. It is a hash, so that it is the same in every run.
func zonesVersion(c *zone.Config) string {
	data, err := json.Marshal(c)
	if err != nil {
		return err.Error() // NaN, which the check refuses: not equal to anything that is saved
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:12])
}

// Save stores the drawn zones of a camera, also on disk.
func (z *drawnZones) Save(camera string, configured, analytics zone.Config) error {
	z.Cameras[camera] = drawnCamera{Over: zonesVersion(&configured), Analytics: analytics}
	return z.file.save(z)
}
