package daemon

import (
	"context"
	"os"
	"reflect"
	"time"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/network"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/report"
)

// filePause is how often the configuration file is looked at.
const filePause = 2 * time.Second

// reloads reads the configuration again on SIGHUP, on a command over MQTT, and when the file has changed, until ctx ends.
func (r *run) reloads(ctx context.Context, hangup <-chan os.Signal) {
	ticker := time.NewTicker(filePause)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-hangup:
		case <-r.asked:
		case <-ticker.C:
			if now := stamp(r.Settings.File); now == r.read {
				continue
			}
		}
		r.read = stamp(r.Settings.File)
		_ = r.service.Reloading(capture.Monotonic())
		if r.reload(ctx) {
			return
		}
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

// reload puts a changed configuration in force, and reports whether that takes a restart of the program, which it has asked for then. A
// configuration with a mistake changes nothing.
func (r *run) reload(ctx context.Context) (restart bool) {
	next, err := r.load()
	if err != nil {
		r.logger.Error("configuration kept as it is", "error", err)
		return false
	}
	r.changing.Lock()
	defer r.changing.Unlock()
	was := r.config
	if reflect.DeepEqual(was, next) {
		r.logger.Info("configuration unchanged")
		return false
	}
	if !reflect.DeepEqual(restartPart(was), restartPart(next)) {
		// The new process does not know what this one has published. What only this one has topics of, such as a camera that the same change of
		// the file removes, stays on the broker until config forget-discovery clears the whole device.
		r.logger.Info("configuration changed beyond cameras and thresholds, restarting")
		r.cancel(ErrRestart)
		return true
	}
	r.config = next
	kept, err := r.rearrange(ctx, was)
	if err != nil {
		r.config = was
		r.logger.Error("configuration kept as it is", "error", err)
		return false
	}
	r.throttle.limits.Store(&next.Thermal)
	report.SetLevel(&r.level, next.Log)
	r.outputs.snapshots.SetCameras(r.cameras.Places())
	if err := r.announce(); err != nil {
		r.logger.Error("announce", "error", err)
	}
	r.logger.Info("configuration changed", "cameras", len(next.Cameras), "undisturbed", kept)
	return false
}

// rearrange gives the frame loops the cameras and thresholds of the configuration, which was another one before. kept is how many cameras went on
// capturing.
func (r *run) rearrange(ctx context.Context, was *config.Config) (kept int, err error) {
	next, before := network.Decoding(r.config, decoded(r.config)), network.Decoding(was, decoded(was))
	anew := !reflect.DeepEqual(was.Detect, r.config.Detect)
	if anew {
		if err := r.devices.Tune(next, before); err != nil { // before any camera is touched
			return 0, err
		}
	}
	kept, err = r.cameras.Change(r.config.Cameras, anew, func(places []pipeline.Camera) error {
		err := r.devices.Arrange(ctx, pipeline.Arrangement{Cameras: places, Reported: float32(r.config.Detect.Confidence)})
		if err == nil { // before a camera that is new to the loop has a picture
			r.forgetRemote(was)
			r.applyRemote(places)
		}
		return err
	})
	if err != nil && anew {
		_ = r.devices.Tune(before, next) // it worked before
	}
	return kept, err
}

// restartPart is what a running daemon cannot change: all but cameras, the thermal policy, the log's level, and of the thresholds those that the
// predictors have not been opened with.
func restartPart(c *config.Config) config.Config {
	part := *c
	part.Cameras, part.Thermal, part.Log = nil, config.Thermal{}, ""
	part.Detect = config.Detect{Track: c.Detect.Track, Confidence: decoded(c)}
	return part
}
