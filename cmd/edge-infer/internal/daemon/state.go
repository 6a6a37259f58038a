package daemon

import (
	"slices"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/daemon/camera"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/state"
)

// interval selects what a State has of the time since the previous one with it. Watch goroutine only.
type interval struct{ cameras, stages bool }

// state builds the State of the run. The networks must be open.
func (r *run) state(since interval) *state.State {
	f := &r.fleet
	now := r.outputs.State()
	now.Runtime = state.Runtime{
		Processors: f.process.Processors, GC: f.process.GC, MemoryLimit: f.process.MemoryLimit, LimitText: f.process.LimitText(),
		Capture: f.process.Capture.State(),
	}
	now.Model = f.devices.Model()
	now.Accuracy = f.verdict.Load()
	now.Upgrade.Text, now.Upgrade.Failed = f.upgrade.Doing()
	now.FirstFrame = f.devices.FirstFrame()
	now.Inference = f.devices.InferenceTime()
	now.FrameMemory = f.devices.FrameMemory()
	now.Stages = f.devices.Stages.Totals()
	now.Servers = f.devices.Servers()
	now.Sensors = r.monitor.Latest()
	now.Slowdown = int(r.throttle.factor.Load())
	now.Reload = r.control.reloaded.Load()
	now.Restarts = restarts()
	now.Watchdog = r.watchdog.margin()
	if f.cascade != nil {
		now.Secondary = f.cascade.Stats()
	}
	for _, d := range f.devices.Groups() {
		group := state.Group{Cameras: d.CameraNames(), Description: d.Describe(), Model: d.Running().Model(), Waits: d.Waits()}
		now.Groups = append(now.Groups, group)
	}
	if since.stages {
		now.RecentStages = f.devices.Stages.Recent()
	}
	var recent []pipeline.CameraStats
	if since.cameras {
		recent = f.devices.Stats()
	}
	totals := f.devices.Totals()
	for _, c := range f.cameras.All() {
		one := r.cameraState(c)
		if i := statsOf(totals, c.Site.Name); i >= 0 {
			one.Totals = totals[i]
		}
		if i := statsOf(recent, c.Site.Name); i >= 0 {
			one.Recent = &recent[i]
		}
		now.Cameras = append(now.Cameras, one)
	}
	return now
}

func statsOf(all []pipeline.CameraStats, camera string) int {
	return slices.IndexFunc(all, func(s pipeline.CameraStats) bool { return s.Camera == camera })
}

// cameraState returns the state of a camera, apart from the counters of its network.
func (r *run) cameraState(c *camera.Camera) state.Camera {
	name := c.Site.Name
	one := state.Camera{
		Site: c.Site, Leaving: true, Capture: c.Capture.Stats(), Hardware: r.fleet.devices.Hardware(name),
		ModelText: r.fleet.devices.Describe(name), Seen: r.outputs.Seen(name),
	}
	inForce := r.fleet.Site()
	if now := inForce.Camera(name); now != nil {
		one.Site, one.Leaving = *now, false
	}
	if at := r.fleet.devices.Of(name); at != nil {
		model := at.Running().Model()
		one.Model = &model
		settings, known := at.Settings(name)
		if known && settings.Classes != nil && len(settings.Classes) == 0 {
			one.NoClasses = noClasses(&one.Site)
		}
	}
	if c.Loop.Tracker != nil {
		one.Tracked, one.Analytics = true, c.Loop.Tracker.Config
	} else if c.Loop.MapStats != nil {
		one.Analytics = c.Loop.MapStats.Config
	}
	return one
}

// final builds the State at the end of the run: cameras are in the state before they were stopped.
func (r *run) final() *state.State {
	now := r.state(interval{})
	for i := range now.Cameras {
		now.Cameras[i].Capture = r.fleet.cameras.Last(now.Cameras[i].Site.Name)
	}
	return now
}
