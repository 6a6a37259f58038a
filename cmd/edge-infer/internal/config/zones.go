package config

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/goccy/go-yaml"

	"github.com/edge-infer/edge-infer/engine/atomicfile"
	"github.com/edge-infer/edge-infer/postprocess/zone"
)

// ErrOutdated is of zones that have been changed since they were read.
var ErrOutdated = errors.New("somebody has changed these zones meanwhile")

// drawn is the file of zones and lines that were drawn on the page. It lies in the state folder, where the service may write: the
// configuration belongs to the administrator and is only ever read.
type drawn struct {
	Cameras map[string]drawing `yaml:"cameras"`

	path string // empty for nowhere
}

// drawing is one camera's. It counts for as long as the configuration says what it said when the drawing was saved: the later one wins.
type drawing struct {
	Over      string      `yaml:"over"` // version of the configured zones that it replaces
	Analytics zone.Config `yaml:"analytics"`
}

const drawnComment = "# Zones and lines drawn on the web page. Each replaces those of its camera in the configuration until these are edited.\n"

// drawnPath is where drawings are kept; empty for nowhere.
func (c *Config) drawnPath() string {
	if c.State == "" {
		return ""
	}
	return filepath.Join(c.State, "zones.yaml")
}

func readDrawn(path string) (*drawn, error) {
	d := &drawn{path: path}
	data, err := os.ReadFile(path)
	if err == nil {
		err = yaml.UnmarshalWithOptions(data, d, yaml.Strict())
	}
	if d.Cameras == nil {
		d.Cameras = map[string]drawing{}
	}
	switch {
	case path == "" || errors.Is(err, fs.ErrNotExist):
		return d, nil
	case err != nil:
		return nil, fmt.Errorf("zones drawn on the page: %s: %s (mend it, or remove it and draw them again)", path, firstLine(err))
	}
	return d, nil
}

// applyDrawn puts what was drawn in the place of what is configured.
func (c *Config) applyDrawn() error {
	d, err := readDrawn(c.drawnPath())
	if err != nil {
		return err
	}
	for i := range c.Cameras {
		c.Cameras[i].Analytics = d.over(&c.Cameras[i])
	}
	return nil
}

// over is what is in force at a camera of which the configuration is given.
func (d *drawn) over(configured *Camera) zone.Config {
	if drawing, ok := d.Cameras[configured.Name]; ok && drawing.Over == zonesVersion(&configured.Analytics) {
		return drawing.Analytics
	}
	return configured.Analytics
}

// zonesVersion tells zones apart. It follows from what they say, so that it outlives the program.
func zonesVersion(c *zone.Config) string {
	data, err := json.Marshal(c)
	if err != nil {
		return err.Error() // NaN, which the check refuses: not equal to anything that is saved
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:12])
}

// Zones reads and writes each camera's zones and lines. Goroutines may share it; two at once are served one after the other.
type Zones struct {
	Sources *Sources

	mutex sync.Mutex
}

// Get gives the zones of a camera as they were last saved or configured, and their version.
func (z *Zones) Get(camera string) (zone.Config, string, error) {
	z.mutex.Lock()
	defer z.mutex.Unlock()
	analytics, _, _, err := z.load(camera)
	return analytics, zonesVersion(&analytics), err
}

// load gives the zones of a camera, the file of all drawings, and the version of what is configured.
func (z *Zones) load(camera string) (analytics zone.Config, file *drawn, configured string, err error) {
	c, err := z.Sources.configured()
	if err != nil {
		return zone.Config{}, nil, "", err
	}
	index := slices.IndexFunc(c.Cameras, func(known Camera) bool { return known.Name == camera })
	if index < 0 {
		return zone.Config{}, nil, "", fmt.Errorf("no camera %q", camera)
	}
	d, err := readDrawn(c.drawnPath())
	if err != nil {
		return zone.Config{}, nil, "", err
	}
	return d.over(&c.Cameras[index]), d, zonesVersion(&c.Cameras[index].Analytics), nil
}

// Set saves a camera's zones, which were read in that version, and gives their new version. They are in force after the next reload.
// ErrOutdated when somebody was faster. An empty version saves over anything.
func (z *Zones) Set(camera, version string, analytics zone.Config) (string, error) {
	z.mutex.Lock()
	defer z.mutex.Unlock()
	now, file, configured, err := z.load(camera)
	switch {
	case err != nil:
		return "", err
	case version != "" && version != zonesVersion(&now):
		return "", ErrOutdated
	}
	file.Cameras[camera] = drawing{Over: configured, Analytics: analytics}
	if err := file.write(); err != nil {
		return "", err
	}
	saved, _, _, err := z.load(camera)
	return zonesVersion(&saved), err
}

func (d *drawn) write() error {
	text, err := yaml.MarshalWithOptions(d, yaml.IndentSequence(true))
	if err != nil {
		return fmt.Errorf("zones: %w", err)
	}
	if err := place(d.path); err != nil {
		return err
	}
	if err := atomicfile.Write(d.path, append([]byte(drawnComment), text...), 0o640); err != nil {
		return fmt.Errorf("zones: %w", err)
	}
	return nil
}

// place makes the folder of the drawings.
func place(path string) error {
	if path == "" {
		return errors.New("there is no folder to save zones to: set StateDirectory= in the unit, XDG_STATE_HOME or HOME")
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("zones cannot be saved: %w", err)
	}
	return nil
}

// Writable says why Set could not save; nil when it could. It tries.
func (z *Zones) Writable() error {
	c, err := z.Sources.configured()
	if err != nil {
		return err
	}
	if err := place(c.drawnPath()); err != nil {
		return err
	}
	return atomicfile.Check(c.drawnPath())
}
