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

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config/look"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/diagnose"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/network"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/process"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/report"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/site"
	"github.com/edge-infer/edge-infer/postprocess/zone"
)

// filePause is how often the configuration file is looked at.
const filePause = 2 * time.Second

// reloads reads the configuration again on SIGHUP, on a command over MQTT, and when the file has changed, until ctx ends. When
// what is new has settled, the memory that only the change needed goes back to the system.
func (r *run) reloads(ctx context.Context, hangup <-chan os.Signal) {
	ticker := time.NewTicker(filePause)
	defer ticker.Stop()
	settled := time.NewTimer(process.SettleTime)
	defer settled.Stop()
	written := r.read // the files at the last look: one that is still being written is left alone
	for {
		select {
		case <-ctx.Done():
			return
		case <-settled.C:
			process.ReleaseMemory()
			continue
		case <-hangup:
		case <-r.asked:
		case <-ticker.C:
			now := configurationFiles(&r.Settings)
			complete := maps.Equal(now, written)
			written = now
			if maps.Equal(now, r.read) || !complete {
				continue
			}
		}
		r.read = configurationFiles(&r.Settings)
		_ = r.service.Reloading(capture.Monotonic())
		if r.reload(ctx) {
			return
		}
		settled.Reset(process.SettleTime)
		_ = r.service.Ready()
	}
}

// askReload has the configuration read again soon.
func (r *run) askReload() {
	select {
	case r.asked <- struct{}{}:
	default:
	}
}

// reloading is what came of reading the configuration again.
type reloading struct {
	at  time.Time
	err error // why the one before is still in force
}

// reload puts a changed configuration in force, and reports whether that takes a restart of the program, which it has asked for then. A
// configuration with a mistake changes nothing: everything that a restart would open is looked at before.
func (r *run) reload(ctx context.Context) (restart bool) {
	restart, err := r.renew(ctx)
	r.reloaded.Store(&reloading{time.Now(), err})
	if err != nil && ctx.Err() == nil {
		r.logger.Error("configuration kept as it is", "error", err)
	}
	return restart
}

func (r *run) renew(ctx context.Context) (restart bool, err error) {
	next, err := r.load()
	if err != nil {
		return false, err
	}
	r.changing.Lock()
	defer r.changing.Unlock()
	was := r.config
	now, remote := r.current()
	changes := site.Diff(now, site.Resolve(next, remote))
	beyond := changes.Action() == site.Restart || !reflect.DeepEqual(restartPart(was), restartPart(next))
	switch {
	case beyond || !r.files.same(filesOf(next)):
		if err := r.preflight(ctx, next); err != nil {
			return false, err
		}
		// The new process does not know what this one has published; it asks the broker what is retained of a camera that the same change of the
		// file removes.
		what := "configuration changed beyond cameras and thresholds, restarting"
		if !beyond {
			what = "files that the configuration names have changed, restarting"
		}
		r.logger.Info(what, "reasons", strings.Join(changes.Reasons(site.Restart), "; "))
		r.cancel(ErrRestart)
		return true, nil
	case reflect.DeepEqual(was, next):
		r.logger.Info("configuration unchanged")
		return false, nil
	}
	kept, err := r.rearrange(ctx, next)
	if err != nil {
		return false, err
	}
	r.throttle.limits.Store(&next.Thermal)
	report.SetLevel(&r.level, next.Log)
	r.outputs.snapshots.SetCameras(r.cameras.InLoop())
	if err := r.announce(); err != nil {
		r.logger.Error("announce", "error", err)
	}
	r.logger.Info("configuration changed", "cameras", len(next.Cameras), "undisturbed", kept)
	return false, nil
}

// preflight finds what would keep a run with another configuration from starting. A network that is the same is opened again only where its
// files have changed.
func (r *run) preflight(ctx context.Context, next *config.Config) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	now, remote := r.current()
	check := diagnose.Preflight{
		Config: next, Running: r.config, Program: []string{program, diagnose.Command},
		Renewed: slices.ContainsFunc(network.Files(next), r.files.renewed), Remote: remote,
	}
	if now.Track {
		check.Names = r.names
	}
	return errors.Join(check.Run(ctx)...)
}

// names returns the class names of a camera group, none if its network is not open.
func (r *run) names(g *site.Group) zone.Names {
	m := r.devices.ModelOf(&g.Network)
	if m == nil {
		return zone.Names{}
	}
	return zone.Names{Labels: m.Metadata.Labels, Keypoints: m.Recognised.KeypointNames()}
}

// restartPause is the shortest time between two restarts that are asked for from afar.
const restartPause = time.Minute

// restart begins anew with the configuration as it is on disk now, unless that would fail.
func (r *run) restart(ctx context.Context) error {
	if up := time.Since(r.started); up < restartPause {
		return fmt.Errorf("started %v ago, the next restart is possible in %v", up.Round(time.Second), (restartPause - up).Round(time.Second))
	}
	next, err := r.load()
	if err != nil {
		return err
	}
	r.changing.Lock()
	defer r.changing.Unlock()
	if err := r.preflight(ctx, next); err != nil {
		return err
	}
	r.cancel(ErrRestart)
	return nil
}

// rearrange puts the cameras and thresholds of a configuration in force. kept is the number of cameras that went on capturing.
func (r *run) rearrange(ctx context.Context, c *config.Config) (kept int, err error) {
	r.setting.Lock()
	defer r.setting.Unlock()
	wasConfig, was := r.config, r.site
	r.config = c
	r.loadRemote()
	next := site.Resolve(c, r.remote).OpenedAs(was)
	defer func() {
		if err != nil {
			r.config = wasConfig
			r.site = was
		}
	}()
	if err := r.devices.Tune(&next, &was); err != nil { // before any camera is touched
		return 0, err
	}
	r.site = next
	r.process.Capture.SetCameraCount(len(c.Cameras))
	kept, err = r.cameras.Change(next.Cameras(), func(cameras []pipeline.Camera) error { return r.devices.Arrange(ctx, cameras) })
	if err != nil {
		_ = r.devices.Tune(&was, &next) // it worked before
	}
	return kept, err
}

// restartPart returns the settings, besides those that site.Diff compares, that need a restart.
func restartPart(c *config.Config) config.Config {
	part := *c
	part.Cameras = nil
	part.Cascade = nil
	part.Model = config.Model{}
	part.Engine = config.Engine{}
	part.Remote = config.Remote{}
	part.Inference = look.Inference{}
	part.Motion = config.Motion{}
	part.Thermal = config.Thermal{}
	part.Log = ""
	part.Detect = config.Detect{Masks: c.Detect.Masks, MapSide: c.Detect.MapSide, DepthUnit: c.Detect.DepthUnit}
	return part
}
