package fleet

import (
	"slices"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/daemon/camera"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/state"
)

// Interval selects what a State has of the time since the previous one with it. One goroutine may ask for it.
type Interval struct{ Cameras, Stages bool }

// Report adds cameras and networks, which must be open, to a State.
func (f *Fleet) Report(now *state.State, since Interval) {
	now.Runtime = state.Runtime{
		Processors: f.Process.Processors, GC: f.Process.GC, MemoryLimit: f.Process.MemoryLimit, LimitText: f.Process.LimitText(),
		Capture: f.Process.Capture.State(),
	}
	now.Model = f.devices.Model()
	now.Accuracy = f.verdict.Load()
	now.Upgrade.Text, now.Upgrade.Failed = f.upgrade.Doing()
	now.FirstFrame = f.devices.FirstFrame()
	now.Inference = f.devices.InferenceTime()
	now.FrameMemory = f.devices.FrameMemory()
	now.Stages = f.devices.Stages.Totals()
	now.Servers = f.devices.Servers()
	if f.cascade != nil {
		now.Secondary, now.HangRestart = f.cascade.Stats(), f.devices.HangRestart()
	}
	for _, d := range f.devices.Groups() {
		group := state.Group{Cameras: d.CameraNames(), Description: d.Describe(), Model: d.Running().Model(), Waits: d.Waits()}
		now.Groups = append(now.Groups, group)
	}
	if since.Stages {
		now.RecentStages = f.devices.Stages.Recent()
	}
	var recent []pipeline.CameraStats
	if since.Cameras {
		recent = f.devices.Stats()
	}
	totals := f.devices.Totals()
	for _, c := range f.cameras.All() {
		one := f.camera(c)
		if i := statsOf(totals, c.Site.Name); i >= 0 {
			one.Totals = totals[i]
		}
		if i := statsOf(recent, c.Site.Name); i >= 0 {
			one.Recent = &recent[i]
		}
		now.Cameras = append(now.Cameras, one)
	}
}

// ReportEnd is Report at the end of the run: it has the state that each camera was in when it was stopped.
func (f *Fleet) ReportEnd(now *state.State) {
	f.Report(now, Interval{})
	for i := range now.Cameras {
		now.Cameras[i].Capture = f.cameras.Last(now.Cameras[i].Site.Name)
	}
}

func statsOf(all []pipeline.CameraStats, camera string) int {
	return slices.IndexFunc(all, func(s pipeline.CameraStats) bool { return s.Camera == camera })
}

// camera returns the state of a camera, apart from the counters of its network.
func (f *Fleet) camera(c *camera.Camera) state.Camera {
	name := c.Site.Name
	one := state.Camera{
		Site: c.Site, Leaving: true, Capture: c.Capture.Stats(), Hardware: f.devices.Hardware(name),
		ModelText: f.devices.Describe(name),
	}
	inForce := f.Site()
	if now := inForce.Camera(name); now != nil {
		one.Site, one.Leaving = *now, false
	}
	if at := f.devices.Of(name); at != nil {
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
