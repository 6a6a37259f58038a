// Package control changes what runs: by remote commands, by reading the configuration again, and by a restart. It decides what a change
// takes.
package control

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/site"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/state"
	"github.com/edge-infer/edge-infer/mqtt"
	"github.com/edge-infer/edge-infer/mqtt/command"
	"github.com/edge-infer/edge-infer/postprocess/zone"
)

// ErrRestart ends a run that shall begin again as a new process.
var ErrRestart = errors.New("restart requested")

// Fleet puts sites in force.
type Fleet interface {
	Site() site.Site
	SetCamera(next site.Site, camera string, strict bool) error
	Apply(ctx context.Context, next site.Site) (kept int, err error)
	Names(*site.Group) zone.Names
}

// Outputs take part in commands and reloads.
type Outputs interface {
	// Snapshot requests an image of a camera.
	Snapshot(camera string) error
	// Files returns the files that the outputs read when they are opened.
	Files(*site.Outputs) []string
	// Compare returns what a change takes of each output.
	Compare(*site.OutputChange) site.Changes
	// Reload puts the next settings in force, which take no restart. An error changes nothing.
	Reload(context.Context, *site.OutputChange) error
}

// Run follows what comes into force.
type Run interface {
	// Adopted is called when a configuration has come into force.
	Adopted(*config.Config)
	// Reloading is called when a reload begins and when it has ended.
	Reloading(begins bool)
}

// Control changes what runs: by remote commands, by reading the configuration again, and by a restart. It implements mqtt.Controller.
type Control struct {
	// Set before the first command.
	Settings *config.Sources
	Load     func() (*config.Config, error)
	Fleet    Fleet
	Outputs  Outputs
	Run      Run
	Stored   func(camera string) command.Kept // remotely set values of this run and earlier ones; nil for none
	End      context.CancelCauseFunc          // ends the run
	Ended    <-chan struct{}                  // closed when the run ends
	Started  time.Time
	Logger   *slog.Logger

	files       Files // of the networks, as they were opened
	outputFiles Files // of the outputs, as they were opened; changing is held

	asked    chan struct{}                // holds a token when the configuration is to be read again
	read     Files                        // of config; reload goroutine only
	reloaded atomic.Pointer[state.Reload] // the last one; nil before

	changing sync.Mutex // held while a configuration comes into force, not while it is read or checked; locked before mu

	mu     sync.Mutex     // held while site or remote values change
	config *config.Config // in force
	remote map[string]command.Kept
}

// Begin sets the configuration that the run starts with, and the files that it was read from, see ConfigurationFiles.
func (c *Control) Begin(first *config.Config, read Files) {
	c.config = first
	c.read = read
	c.files, c.outputFiles = c.filesOf(first)
	c.asked = make(chan struct{}, 1)
}

// Config returns the configuration in force.
func (c *Control) Config() *config.Config {
	inForce, _ := c.inForce()
	return inForce
}

// Reloaded returns the last reload, nil before the first.
func (c *Control) Reloaded() *state.Reload { return c.reloaded.Load() }

// Between calls do unless a configuration is coming into force, which waits meanwhile.
func (c *Control) Between(do func()) {
	if c.changing.TryLock() {
		defer c.changing.Unlock()
		do()
	}
}

var _ mqtt.Controller = (*Control)(nil)

func (c *Control) SetDetect(camera string, on bool) error {
	_, err := c.setRemote(camera, func(k *command.Kept) { k.Detect = &on })
	return err
}

func (c *Control) SetThreshold(camera string, threshold float64) error {
	_, err := c.setRemote(camera, func(k *command.Kept) { k.Threshold = &threshold })
	return err
}

func (c *Control) SetInterval(camera string, frames int) error {
	_, err := c.setRemote(camera, func(k *command.Kept) { k.Interval = &frames })
	return err
}

func (c *Control) SetLabels(camera string, labels []string) error {
	_, err := c.setRemote(camera, func(k *command.Kept) { k.Labels = &labels })
	return err
}

func (c *Control) Withdraw(camera, control string) (mqtt.Settings, error) {
	settings, err := c.setRemote(camera, func(k *command.Kept) { k.Forget(control) })
	return state.RemoteSettings(settings), err
}

func (c *Control) Snapshot(camera string) error { return c.Outputs.Snapshot(camera) }

func (c *Control) Reload() error {
	c.AskReload()
	return nil
}

func (c *Control) Restart() error { return c.restart() }

// Resolve returns what runs with a configuration and the values that were set remotely in this and earlier runs.
func (c *Control) Resolve(next *config.Config) site.Site {
	known := map[string]command.Kept{}
	for i := range next.Cameras {
		name := next.Cameras[i].Name
		if kept, here := c.remote[name]; here {
			known[name] = kept
		} else if c.Stored != nil {
			known[name] = c.Stored(name)
		}
	}
	c.remote = known
	return site.Resolve(next, known)
}

// inForce returns the configuration and the remotely set values by camera, which nobody changes.
func (c *Control) inForce() (*config.Config, map[string]command.Kept) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.config, c.remote
}

// setRemote changes the remotely set values of a camera, and returns the settings that are in force then. An error changes nothing.
func (c *Control) setRemote(camera string, change func(*command.Kept)) (site.Settings, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	kept := c.remote[camera]
	change(&kept)
	remote := maps.Clone(c.remote)
	remote[camera] = kept
	now := c.Fleet.Site()
	next := site.Resolve(c.config, remote).OpenedAs(now)
	if next.Camera(camera) == nil || now.Camera(camera) == nil {
		return site.Settings{}, fmt.Errorf("no camera %q", camera)
	}
	classes := kept.Labels != nil && kept.Labels != c.remote[camera].Labels
	if err := c.Fleet.SetCamera(next, camera, classes); err != nil {
		return site.Settings{}, err
	}
	c.remote = remote
	return next.Camera(camera).Settings, nil
}
