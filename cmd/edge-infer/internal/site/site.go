// Package site resolves what runs: the groups of cameras that share a network, and for each camera every value that it runs by. Nothing
// else decides which of two values is in force, so all parts of the daemon take it from here.
//
// Precedence, lowest first: built-in defaults, configuration files, environment, command line, values set remotely over MQTT. A value of
// one camera goes before the value for all cameras. A remotely set value stays in force whatever is edited in the files, until it is
// withdrawn; the configured value takes its place then.
package site

import (
	"cmp"
	"reflect"
	"slices"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/mqtt/command"
	"github.com/edge-infer/edge-infer/postprocess/track"
	"github.com/edge-infer/edge-infer/postprocess/zone"
)

// Site is the resolved configuration of a run. It is immutable after Resolve, and Diff compares two of them.
type Site struct {
	Groups  []Group          // in the order of their first cameras
	Cascade []config.Cascade // secondary networks
	Track   bool             // objects are tracked
	order   []string         // of the cameras, as they are configured
}

// Group is the cameras that share a network.
type Group struct {
	Network Network
	// Decoding and MinScore configure the decoding of the network's outputs. A running predictor accepts another Decoding, and a higher
	// MinScore than it was opened with.
	Decoding Decoding
	MinScore float64
	Cameras  []Camera
}

// Network holds the settings of a predictor; changing them takes a restart.
type Network struct {
	Model     config.Model
	Engine    config.Engine
	Remote    config.Remote
	Inference config.Inference
}

// Decoding selects boxes.
type Decoding struct {
	IoU           float64
	MaxDetections int
	Top           int
	Classes       []string // nil: all
}

// Camera is everything that one camera runs by.
type Camera struct {
	Name string
	URI  string
	// Record is the address of the stream that is recorded, empty for that of URI.
	Record string
	// Network is the group's.
	Network Network

	Stall     time.Duration
	MaxPixels int
	ROI       *config.Area
	Rate      float64
	Priority  int
	Deadline  time.Duration
	Motion    config.CameraMotion
	Clips     Clips
	Privacy   config.Privacy
	Profile   track.Profile
	Analytics zone.Config

	// Settings are in force. Configured are the values without those set remotely; the tracker works with their confidence.
	Settings, Configured Settings
}

// Clips configures the camera's recordings.
type Clips struct {
	Enabled        bool     // of events
	Classes, Zones []string // empty for all
	Continuous     bool     // of everything
	// Before is how much of the time before an event is recorded: the camera keeps that of its video. 0 if nothing is recorded.
	Before time.Duration
}

// Any reports whether anything of the camera is recorded.
func (c *Clips) Any() bool { return c.Enabled || c.Continuous }

// Settings are the values of a camera that can be set remotely.
type Settings struct {
	Detect     bool
	Confidence float64
	Interval   int      // the network runs on every Interval-th frame, 1 or more
	Classes    []string // that are reported, nil for all
}

// apply puts remotely set values in the place of the configured ones.
func (s Settings) apply(remote command.Kept) Settings {
	if remote.Detect != nil {
		s.Detect = *remote.Detect
	}
	if remote.Threshold != nil {
		s.Confidence = *remote.Threshold
	}
	if remote.Interval != nil {
		s.Interval = *remote.Interval
	}
	if remote.Labels != nil {
		s.Classes = nil
		if len(*remote.Labels) > 0 {
			s.Classes = slices.Clone(*remote.Labels)
		}
	}
	return s
}

// Resolve returns what runs with a configuration, which holds defaults, files, environment and flags, and with the values that were set
// remotely, by camera.
func Resolve(c *config.Config, remote map[string]command.Kept) Site {
	s := Site{Cascade: slices.Clone(c.Cascade), Track: c.Detect.Track}
	for i := range c.Cameras {
		camera := resolveCamera(c, &c.Cameras[i], remote[c.Cameras[i].Name])
		s.order = append(s.order, camera.Name)
		at := slices.IndexFunc(s.Groups, func(g Group) bool { return g.Network.Equal(&camera.Network) })
		if at < 0 {
			at = len(s.Groups)
			s.Groups = append(s.Groups, Group{Network: camera.Network, MinScore: 1, Decoding: decoding(c)})
		}
		g := &s.Groups[at]
		g.Cameras = append(g.Cameras, camera)
		g.MinScore = min(g.MinScore, s.minScore(&camera))
	}
	for i := range s.Groups {
		g := &s.Groups[i]
		g.Decoding.Classes = g.classes(c.Detect.Classes, remote)
	}
	return s
}

// classes returns what the network finds for all cameras, whatever their order; each camera selects its own. It is nil where a camera
// reports all classes, or those that were set remotely.
func (g *Group) classes(configured []string, remote map[string]command.Kept) []string {
	var hidden []string
	for i := range g.Cameras {
		camera := &g.Cameras[i]
		if camera.Configured.Classes == nil || remote[camera.Name].Labels != nil {
			return nil
		}
		hidden = append(hidden, camera.Privacy.Labels...) // found also where its objects are not reported
	}
	slices.Sort(hidden)
	all := slices.Clip(configured)
	for _, label := range hidden {
		if !slices.Contains(all, label) {
			all = append(all, label)
		}
	}
	return all
}

// resolveCamera resolves the settings of one camera. A model of its own is neither part of an ensemble nor filtered by the classes of the
// others.
func resolveCamera(c *config.Config, camera *config.Camera, remote command.Kept) Camera {
	n := Network{Model: c.Model, Engine: c.Engine, Remote: c.Remote, Inference: c.Inference}
	if camera.Tile != nil {
		n.Inference.Tile = *camera.Tile
	}
	if camera.Overlap != nil {
		n.Inference.Overlap = *camera.Overlap
	}
	if n.Inference.Tile == 0 {
		n.Inference.Overlap = 0
	}
	classes := c.Detect.Classes
	if camera.Model != nil {
		n.Model = *camera.Model
		n.Inference.Ensemble = nil
		n.Inference.Weights = nil
		classes = nil
	}
	if len(classes) == 0 {
		classes = nil
	}
	n.Model = n.Model.Canonical()
	if len(n.Inference.Ensemble) == 0 { // also one that is written as an empty list
		n.Inference.Ensemble = nil
	}
	if len(n.Inference.Weights) == 0 {
		n.Inference.Weights = nil
	}
	configured := Settings{
		Detect: true, Confidence: cmp.Or(camera.Confidence, c.Detect.Confidence), Interval: max(camera.Interval, 1), Classes: classes,
	}
	return Camera{
		Name: camera.Name, URI: camera.URI, Record: camera.Record, Network: n, Stall: camera.Stall,
		MaxPixels: camera.MaxPixels, ROI: camera.ROI, Rate: camera.Rate,
		Priority: camera.Priority, Deadline: camera.Deadline, Motion: c.MotionOf(camera),
		Profile: track.Profile(cmp.Or(camera.Profile, c.Detect.Profile)), Analytics: camera.Analytics,
		Settings: configured.apply(remote), Configured: configured, Clips: clips(c, camera), Privacy: camera.Privacy,
	}
}

func clips(c *config.Config, camera *config.Camera) Clips {
	to := Clips{Enabled: c.ClipsEnabled(camera)}
	if own := camera.Clips; own != nil {
		to.Classes, to.Zones, to.Continuous = own.Classes, own.Zones, own.Continuous
	}
	if to.Any() {
		to.Before = c.Clips.Before
	}
	return to
}

func decoding(c *config.Config) Decoding {
	return Decoding{IoU: c.Detect.IoU, MaxDetections: c.Detect.MaxDetections, Top: c.Detect.Top}
}

// minScore is the score that a camera needs detections from: the tracker takes weaker ones than are reported, and weaker ones are hidden.
func (s *Site) minScore(camera *Camera) float64 {
	least := camera.Configured.Confidence
	if s.Track || len(camera.Privacy.Labels) > 0 {
		least = min(least/2, track.DefaultLowThreshold)
	}
	return min(least, camera.Settings.Confidence)
}

// Equal reports whether two networks are the same, so that cameras can share one predictor.
func (n *Network) Equal(other *Network) bool { return reflect.DeepEqual(n, other) }

// SharesEngines reports whether two networks differ in their tiles alone.
func (n *Network) SharesEngines(other *Network) bool {
	one, two := *n, *other
	one.Inference.Tile, one.Inference.Overlap = 0, 0
	two.Inference.Tile, two.Inference.Overlap = 0, 0
	return one.Equal(&two)
}

// Cameras returns the cameras of all groups, in the order in which they are configured.
func (s *Site) Cameras() (all []Camera) {
	for _, name := range s.order {
		all = append(all, *s.Camera(name))
	}
	return all
}

// Camera returns a camera by its name, nil for one that is not there.
func (s *Site) Camera(name string) *Camera {
	for i := range s.Groups {
		for j := range s.Groups[i].Cameras {
			if s.Groups[i].Cameras[j].Name == name {
				return &s.Groups[i].Cameras[j]
			}
		}
	}
	return nil
}

// Group returns the group with a network, nil where no camera has it.
func (s *Site) Group(n *Network) *Group {
	for i := range s.Groups {
		if s.Groups[i].Network.Equal(n) {
			return &s.Groups[i]
		}
	}
	return nil
}

// OpenedAs returns the site with the minimum scores that the predictors of another site were opened with, where those are lower.
func (s Site) OpenedAs(opened Site) Site {
	s.Groups = slices.Clone(s.Groups)
	for i := range s.Groups {
		if g := opened.Group(&s.Groups[i].Network); g != nil {
			s.Groups[i].MinScore = min(s.Groups[i].MinScore, g.MinScore)
		}
	}
	return s
}
