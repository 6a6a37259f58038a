package config

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/edge-infer/edge-infer/postprocess/zone"
)

// ErrOutdated is of zones that have been changed since they were read.
var ErrOutdated = errors.New("somebody has changed these zones meanwhile")

// drawnFile is where drawings are kept.
func (c *Config) drawnFile() pageFile { return c.pageFile("zones.yaml", "zones", drawnComment, 0o640) }

// applyDrawn replaces configured zones with drawn ones.
func (c *Config) applyDrawn() error {
	d, err := readDrawnZones(c.drawnFile())
	if err != nil {
		return err
	}
	for i := range c.Cameras {
		c.Cameras[i].Analytics = d.Over(c.Cameras[i].Name, c.Cameras[i].Analytics)
	}
	return nil
}

// Zones reads and writes each camera's zones and lines. Goroutines may share it; two at once are served one after the other.
type Zones struct {
	Sources *Sources

	mutex sync.Mutex
}

// Get returns the zones of a camera as last saved or configured, and their version.
func (z *Zones) Get(camera string) (zone.Config, string, error) {
	z.mutex.Lock()
	defer z.mutex.Unlock()
	analytics, _, _, err := z.load(camera)
	return analytics, zonesVersion(&analytics), err
}

// load returns the zones of a camera in force, all drawn zones, and the configured ones.
func (z *Zones) load(camera string) (analytics zone.Config, all *drawnZones, configured zone.Config, err error) {
	c := z.Sources.configured()
	if err := c.err(); err != nil {
		return zone.Config{}, nil, zone.Config{}, err
	}
	index := slices.IndexFunc(c.Cameras, func(known Camera) bool { return known.Name == camera })
	if index < 0 {
		return zone.Config{}, nil, zone.Config{}, fmt.Errorf("no camera %q", camera)
	}
	all, err = readDrawnZones(c.drawnFile())
	if err != nil {
		return zone.Config{}, nil, zone.Config{}, err
	}
	configured = c.Cameras[index].Analytics
	return all.Over(camera, configured), all, configured, nil
}

// Set saves a camera's zones, which were read in that version, and returns their new version. They are in force after the next reload. It
// returns ErrOutdated if they changed in the meantime. An empty version overwrites any.
func (z *Zones) Set(camera, version string, analytics zone.Config) (string, error) {
	z.mutex.Lock()
	defer z.mutex.Unlock()
	now, all, configured, err := z.load(camera)
	switch {
	case err != nil:
		return "", err
	case version != "" && version != zonesVersion(&now):
		return "", ErrOutdated
	}
	if err := all.Save(camera, configured, analytics); err != nil {
		return "", err
	}
	saved, _, _, err := z.load(camera)
	return zonesVersion(&saved), err
}

// Writable returns why Set could not save, or nil. It tries.
func (z *Zones) Writable() error {
	c := z.Sources.configured()
	if err := c.err(); err != nil {
		return err
	}
	file := c.drawnFile()
	return file.writable()
}
