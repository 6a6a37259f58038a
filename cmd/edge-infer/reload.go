package main

import (
	"context"
	"os"
	"reflect"
	"time"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/engine"
)

// filePause is how often the configuration file is looked at.
const filePause = 2 * time.Second

// reloads reads the configuration again on SIGHUP, on a command over MQTT, and when the file has changed, until ctx ends.
func (d *daemon) reloads(ctx context.Context, hangup <-chan os.Signal) {
	ticker := time.NewTicker(filePause)
	defer ticker.Stop()
	last := d.read
	for {
		select {
		case <-ctx.Done():
			return
		case <-hangup:
		case <-d.reload:
		case <-ticker.C:
			if now := stamp(d.flags.file); now == last {
				continue
			}
		}
		last = stamp(d.flags.file)
		ready := d.pipeline.FirstFrame() > 0 // before that the service manager still waits for the start
		if ready {
			_ = d.service.Reloading(capture.Monotonic())
		}
		if d.reconfigure(ctx) {
			return
		}
		if ready {
			_ = d.service.Ready()
		}
	}
}

// version tells versions of a file apart; it is zero for none.
type version struct {
	modified time.Time
	size     int64
}

func stamp(path string) (s version) {
	if info, err := os.Stat(path); err == nil {
		s.modified, s.size = info.ModTime(), info.Size()
	}
	return s
}

// reconfigure puts a changed configuration in force, and reports whether that takes a restart of the program, which it has asked for then. A
// configuration with a mistake changes nothing.
func (d *daemon) reconfigure(ctx context.Context) (restart bool) {
	next, err := d.flags.configuration(d.flags.given)
	if err != nil {
		d.logger.Error("configuration kept as it is", "error", err)
		return false
	}
	d.changing.Lock()
	defer d.changing.Unlock()
	was := d.config
	if reflect.DeepEqual(was, next) {
		d.logger.Info("configuration unchanged")
		return false
	}
	if !reflect.DeepEqual(restartPart(was), restartPart(next)) {
		// The new process does not know what this one has published. What only this one has topics of, such as a camera that the same change of the
		// file removes, stays on the broker until config forget-discovery clears the whole device.
		d.logger.Info("configuration changed beyond cameras and thresholds, restarting")
		d.cancel(errRestart)
		return true
	}
	d.config = next
	kept, err := d.rearrange(ctx, was)
	if err != nil {
		d.config = was
		d.logger.Error("configuration kept as it is", "error", err)
		return false
	}
	d.limits.Store(&next.Thermal)
	setLevel(d.level, next.Log)
	d.snapshots.SetCameras(d.fleet.Places())
	if d.client != nil {
		if err := d.announce(); err != nil {
			d.logger.Error("announce", "error", err)
		}
	}
	d.logger.Info("configuration changed", "cameras", len(next.Cameras), "undisturbed", kept)
	return false
}

// rearrange gives the frame loop the cameras and thresholds of the configuration, which was another one before. kept is how many cameras went on
// capturing.
func (d *daemon) rearrange(ctx context.Context, was *config.Config) (kept int, err error) {
	next := pipeline.Arrangement{Confidence: float32(d.config.Detect.Confidence)}
	anew := !reflect.DeepEqual(was.Detect, d.config.Detect)
	var decoder func(engine.Model) (*pipeline.Detector, error)
	if anew {
		decoder = func(model engine.Model) (*pipeline.Detector, error) {
			return openDetector(d.config, model, decodedScore(d.config))
		}
		if _, err := decoder(d.pipeline.Model()); err != nil { // before any camera is touched
			return 0, err
		}
	}
	return d.fleet.Change(d.config.Cameras, anew, func(places []pipeline.Camera) error {
		next.Cameras = places
		return d.pipeline.Arrange(ctx, next, decoder)
	})
}

// restartPart is what a running daemon cannot change: all but cameras, the thermal policy, the log's level, and of the thresholds those that the
// engine has not been opened with.
func restartPart(c *config.Config) config.Config {
	part := *c
	part.Cameras, part.Thermal, part.Log = nil, config.Thermal{}, ""
	part.Detect = config.Detect{Track: c.Detect.Track, Confidence: decodedScore(c)}
	return part
}
