package daemon

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/diagnose"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/network"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/process"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/site"
)

// filePause is the interval between checks of the configuration file.
const filePause = 2 * time.Second

// reloads reads the configuration again on SIGHUP, on an MQTT command and when the file has changed, until ctx ends. Afterwards it returns
// unused memory to the system.
func (c *control) reloads(ctx context.Context, hangup <-chan os.Signal) {
	ticker := time.NewTicker(filePause)
	defer ticker.Stop()
	settled := time.NewTimer(process.SettleTime)
	defer settled.Stop()
	written := c.read // the files at the last check: one that is still being written is left alone
	for {
		select {
		case <-ctx.Done():
			return
		case <-settled.C:
			process.ReleaseMemory()
			continue
		case <-hangup:
		case <-c.asked:
		case <-ticker.C:
			now := configurationFiles(c.settings)
			complete := maps.Equal(now, written)
			written = now
			if maps.Equal(now, c.read) || !complete {
				continue
			}
		}
		c.read = configurationFiles(c.settings)
		c.reloading(true)
		if c.reload(ctx) {
			return
		}
		settled.Reset(process.SettleTime)
		c.reloading(false)
	}
}

// askReload has the configuration read again soon.
func (c *control) askReload() {
	select {
	case c.asked <- struct{}{}:
	default:
	}
}

// reloading is the result of a reload.
type reloading struct {
	at  time.Time
	err error // why the one before is still in force
}

// reload puts a changed configuration in force and reports whether that requested a restart of the program. A configuration with an error
// changes nothing: everything that a restart would open is checked first.
func (c *control) reload(ctx context.Context) (restart bool) {
	restart, err := c.renew(ctx)
	c.reloaded.Store(&reloading{time.Now(), err})
	if err != nil && ctx.Err() == nil {
		c.logger.Error("configuration kept as it is", "error", err)
	}
	return restart
}

func (c *control) renew(ctx context.Context) (restart bool, err error) {
	next, err := c.load()
	if err != nil {
		return false, err
	}
	c.changing.Lock()
	defer c.changing.Unlock()
	was := c.config
	now, remote := c.runner.Site(), c.values()
	changes := site.Diff(now, site.Resolve(next, remote))
	beyond := changes.Action() == site.Restart || !reflect.DeepEqual(restartPart(was), restartPart(next))
	switch {
	case beyond || !c.files.same(filesOf(next)):
		if err := c.preflight(ctx, next); err != nil {
			return false, err
		}
		// The new process does not know what this one has published; it asks the broker what is retained of a camera that the same change of the
		// file removes.
		what := "configuration changed beyond cameras and thresholds, restarting"
		if !beyond {
			what = "files that the configuration names have changed, restarting"
		}
		c.logger.Info(what, "reasons", strings.Join(changes.Reasons(site.Restart), "; "))
		c.end(ErrRestart)
		return true, nil
	case reflect.DeepEqual(was, next):
		c.logger.Info("configuration unchanged")
		return false, nil
	}
	kept, err := c.apply(ctx, next)
	if err != nil {
		return false, err
	}
	c.adopted(next)
	c.logger.Info("configuration changed", "cameras", len(next.Cameras), "undisturbed", kept)
	return false, nil
}

// preflight finds what would keep a run with another configuration from starting. A network that is the same is opened again only where its
// files have changed.
func (c *control) preflight(ctx context.Context, next *config.Config) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	now, remote := c.runner.Site(), c.values()
	check := diagnose.Preflight{
		Config: next, Running: c.config, Program: []string{program, diagnose.Command},
		Renewed: slices.ContainsFunc(network.Files(next), c.files.renewed), Remote: remote,
	}
	if now.Track {
		check.Names = c.runner.Names
	}
	return errors.Join(check.Run(ctx)...)
}

// restartPause is the shortest time between two restarts requested over MQTT.
const restartPause = time.Minute

// restart restarts with the configuration on disk, unless that would fail.
func (c *control) restart() error {
	if up := time.Since(c.started); up < restartPause {
		return fmt.Errorf("started %v ago, the next restart is possible in %v", up.Round(time.Second), (restartPause - up).Round(time.Second))
	}
	next, err := c.load()
	if err != nil {
		return err
	}
	c.changing.Lock()
	defer c.changing.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-c.ended:
			cancel()
		case <-ctx.Done():
		}
	}()
	if err := c.preflight(ctx, next); err != nil {
		return err
	}
	c.end(ErrRestart)
	return nil
}

// apply puts a configuration in force. kept is the number of cameras that went on capturing.
func (c *control) apply(ctx context.Context, next *config.Config) (kept int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.remote
	kept, err = c.runner.Apply(ctx, c.Resolve(next).OpenedAs(c.runner.Site()))
	if err != nil {
		c.remote = before
		return 0, err
	}
	c.config = next
	return kept, nil
}

// restartPart returns the settings, besides those that site.Diff compares, that need a restart.
func restartPart(c *config.Config) config.Config {
	part := *c
	part.Cameras = nil
	part.Cascade = nil
	part.Model = config.Model{}
	part.Engine = config.Engine{}
	part.Remote = config.Remote{}
	part.Inference = config.Inference{}
	part.Motion = config.Motion{}
	part.Thermal = config.Thermal{}
	part.Log = ""
	part.Bundle = config.Bundle{} // which commands read, not the daemon
	part.Detect = config.Detect{Masks: c.Detect.Masks, MapSide: c.Detect.MapSide, DepthUnit: c.Detect.DepthUnit}
	return part
}
