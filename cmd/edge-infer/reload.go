package main

import (
	"context"
	"os"
	"os/signal"
	"reflect"
	"syscall"
	"time"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
)

// filePause is how often the configuration file is looked at.
const filePause = 2 * time.Second

// reloads reads the configuration again on SIGHUP, on a command over MQTT, and when the file has changed, until ctx ends.
func (d *daemon) reloads(ctx context.Context) {
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	ticker := time.NewTicker(filePause)
	defer ticker.Stop()
	last := stamp(d.flags.file)
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
		_ = d.service.Reloading(capture.Monotonic())
		d.reconfigure(ctx)
		_ = d.service.Ready()
	}
}

// stamp tells versions of a file apart; it is zero for none.
func stamp(path string) (s struct {
	modified time.Time
	size     int64
},
) {
	if info, err := os.Stat(path); err == nil {
		s.modified, s.size = info.ModTime(), info.Size()
	}
	return s
}

// reconfigure puts a changed configuration in force. What cannot be changed in place restarts the program. A configuration with a mistake
// changes nothing.
func (d *daemon) reconfigure(ctx context.Context) {
	next, err := d.flags.configuration(d.flags.given)
	if err != nil {
		d.logger.Error("configuration kept as it is", "error", err)
		return
	}
	was := d.config
	if reflect.DeepEqual(was, next) {
		d.logger.Info("configuration unchanged")
		return
	}
	if !reflect.DeepEqual(restartPart(was), restartPart(next)) {
		d.logger.Info("configuration changed beyond cameras, restarting")
		d.cancel(errRestart)
		return
	}
	kept, err := d.fleet.Change(next.Cameras, func(places []pipeline.Camera) error { return d.pipeline.SetCameras(ctx, places) })
	if err != nil {
		d.logger.Error("configuration kept as it is", "error", err)
		return
	}
	d.config = next
	d.snapshots.SetCameras(d.fleet.Places())
	if d.client != nil {
		if err := d.announce(); err != nil {
			d.logger.Error("announce", "error", err)
		}
	}
	d.logger.Info("configuration changed", "cameras", len(next.Cameras), "undisturbed", kept)
}

// restartPart is what a running daemon cannot change.
func restartPart(c *config.Config) config.Config {
	part := *c
	part.Cameras = nil
	return part
}
