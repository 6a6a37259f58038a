package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/daemon/outputs"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/site"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/state"
	"github.com/edge-infer/edge-infer/mqtt"
	"github.com/edge-infer/edge-infer/mqtt/command"
	"github.com/edge-infer/edge-infer/postprocess/zone"
)

// runner puts sites in force; *fleet is one.
type runner interface {
	Site() site.Site
	SetCamera(next site.Site, camera string, strict bool) error
	Apply(ctx context.Context, next site.Site) (kept int, err error)
	Names(*site.Group) zone.Names
}

// control changes what runs: by remote commands, by reading the configuration again, and by a restart. It implements mqtt.Controller.
type control struct {
	// Set before the first command.
	settings  *config.Sources
	load      func() (*config.Config, error)
	runner    runner
	snapshot  func(camera string) error
	stored    func(camera string) command.Kept  // remotely set values of earlier runs
	adopted   func(*config.Config)              // a configuration came into force
	reopen    func(was, next *config.Web) error // serves the page with other settings; an error changes nothing
	reloading func(begins bool)                 // for the service manager
	end       context.CancelCauseFunc           // ends the run
	ended     <-chan struct{}                   // closed when the run ends
	started   time.Time
	logger    *slog.Logger
	files     files // that the configuration names, as they were opened
	page      files // of the page, as they were opened; changing is held

	asked    chan struct{}                // holds a token when the configuration is to be read again
	read     files                        // of config; reload goroutine only
	reloaded atomic.Pointer[state.Reload] // the last one; nil before

	changing sync.Mutex // held while a configuration comes into force, not while it is read or checked; locked before mu

	mu     sync.Mutex     // held while site or remote values change
	config *config.Config // in force
	remote map[string]command.Kept
}

var _ mqtt.Controller = (*control)(nil)

func (c *control) SetDetect(camera string, on bool) error {
	_, err := c.setRemote(camera, func(k *command.Kept) { k.Detect = &on })
	return err
}

func (c *control) SetThreshold(camera string, threshold float64) error {
	_, err := c.setRemote(camera, func(k *command.Kept) { k.Threshold = &threshold })
	return err
}

func (c *control) SetInterval(camera string, frames int) error {
	_, err := c.setRemote(camera, func(k *command.Kept) { k.Interval = &frames })
	return err
}

func (c *control) SetLabels(camera string, labels []string) error {
	_, err := c.setRemote(camera, func(k *command.Kept) { k.Labels = &labels })
	return err
}

func (c *control) Withdraw(camera, control string) (mqtt.Settings, error) {
	settings, err := c.setRemote(camera, func(k *command.Kept) { k.Forget(control) })
	return outputs.RemoteSettings(settings), err
}

func (c *control) Snapshot(camera string) error { return c.snapshot(camera) }

func (c *control) Reload() error {
	c.askReload()
	return nil
}

func (c *control) Restart() error { return c.restart() }

// Resolve returns what runs with a configuration and the values that were set remotely in this and earlier runs.
func (c *control) Resolve(next *config.Config) site.Site {
	known := map[string]command.Kept{}
	for i := range next.Cameras {
		name := next.Cameras[i].Name
		if kept, here := c.remote[name]; here {
			known[name] = kept
		} else if c.stored != nil {
			known[name] = c.stored(name)
		}
	}
	c.remote = known
	return site.Resolve(next, known)
}

// inForce returns the configuration and the remotely set values by camera, which nobody changes.
func (c *control) inForce() (*config.Config, map[string]command.Kept) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.config, c.remote
}

// setRemote changes the remotely set values of a camera, and returns the settings that are in force then. An error changes nothing.
func (c *control) setRemote(camera string, change func(*command.Kept)) (site.Settings, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	kept := c.remote[camera]
	change(&kept)
	remote := maps.Clone(c.remote)
	remote[camera] = kept
	now := c.runner.Site()
	next := site.Resolve(c.config, remote).OpenedAs(now)
	if next.Camera(camera) == nil || now.Camera(camera) == nil {
		return site.Settings{}, fmt.Errorf("no camera %q", camera)
	}
	classes := kept.Labels != nil && kept.Labels != c.remote[camera].Labels
	if err := c.runner.SetCamera(next, camera, classes); err != nil {
		return site.Settings{}, err
	}
	c.remote = remote
	return next.Camera(camera).Settings, nil
}
