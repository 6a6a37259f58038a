package site

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Action is how a running camera, group or output changes to other settings, in ascending order of disruption.
type Action uint8

// The actions.
const (
	Keep      Action = iota
	Tune             // new values between two frames; everything goes on
	Reopen           // the output is closed and opened again, everything else goes on
	Rearrange        // the camera is taken into the frame loop, changed in it, or taken out
	Restart          // the process starts again
)

// String is the action's name.
func (a Action) String() string {
	return [...]string{"keep", "tune", "reopen", "rearrange", "restart"}[a]
}

// Change is the change of one camera, group or output.
type Change struct {
	Camera string // empty for a group, an output or the whole site
	Group  []string
	Output string
	Action Action
	Reason string // empty for Keep
}

// String is a line for the log.
func (c Change) String() string {
	subject := "camera " + c.Camera
	switch {
	case c.Output != "":
		subject = c.Output
	case c.Camera == "" && len(c.Group) > 0:
		subject = "cameras " + strings.Join(c.Group, ", ")
	case c.Camera == "":
		subject = "all cameras"
	}
	text := subject + ": " + c.Action.String()
	if c.Reason != "" {
		text += " (" + c.Reason + ")"
	}
	return text
}

// Changes lists the groups of the new site, then its cameras, then the removed cameras.
type Changes []Change

// Action returns the most disturbing action of all.
func (c Changes) Action() (most Action) {
	for i := range c {
		most = max(most, c[i].Action)
	}
	return most
}

// Reasons describes the changes that take an action.
func (c Changes) Reasons(a Action) (all []string) {
	for i := range c {
		if c[i].Action == a {
			all = append(all, c[i].String())
		}
	}
	return all
}

// Diff returns what has to be done for next to run instead of old.
func Diff(old, next Site) (all Changes) {
	switch {
	case !reflect.DeepEqual(old.Cascade, next.Cascade):
		all = append(all, Change{Action: Restart, Reason: "cascade"})
	case old.Track != next.Track:
		all = append(all, Change{Action: Restart, Reason: "detect.track"})
	}
	for i := range next.Groups {
		all = append(all, diffGroup(&old, &next.Groups[i]))
	}
	for i := range old.Groups {
		if g := &old.Groups[i]; next.Group(&g.Network) == nil {
			all = append(all, Change{Group: g.names(), Action: Restart, Reason: "no camera uses the network"})
		}
	}
	for _, camera := range next.Cameras() {
		all = append(all, diffCamera(old.Camera(camera.Name), &camera))
	}
	for _, camera := range old.Cameras() {
		if next.Camera(camera.Name) == nil {
			all = append(all, Change{Camera: camera.Name, Action: Rearrange, Reason: "removed"})
		}
	}
	return all
}

func diffGroup(old *Site, next *Group) Change {
	c := Change{Group: next.names()}
	before := old.Group(&next.Network)
	switch {
	case before == nil:
		c.Action = Restart
		c.Reason = "new network"
		if len(old.Groups) == 1 {
			c.Reason = "network: " + different(old.Groups[0].Network, next.Network)
		}
	case next.MinScore < before.MinScore:
		c.Action = Restart
		c.Reason = fmt.Sprintf("scores from %.3g are needed, opened for %.3g", next.MinScore, before.MinScore)
	case !reflect.DeepEqual(before.Decoding, next.Decoding):
		c.Action = Tune
		c.Reason = different(before.Decoding, next.Decoding)
	}
	return c
}

func diffCamera(before, next *Camera) Change {
	c := Change{Camera: next.Name}
	switch {
	case before == nil:
		c.Action = Rearrange
		c.Reason = "new"
	case reflect.DeepEqual(before, next):
	case reflect.DeepEqual(before.placed(), next.placed()):
		c.Action = Tune
		c.Reason = different(before.Settings, next.Settings)
		switch {
		case c.Reason != "":
		case !reflect.DeepEqual(before.Clips, next.Clips):
			c.Reason = "clips"
		case before.Record != next.Record:
			c.Reason = "record"
		default:
			c.Reason = "configured " + different(before.Configured, next.Configured)
		}
	default:
		c.Action = Rearrange
		c.Reason = different(before.placed(), next.placed())
	}
	return c
}

// placed returns the camera with the values alone that the frame loop cannot change between two frames.
func (c *Camera) placed() Camera {
	p := *c
	p.Settings = Settings{}
	p.Record = ""
	p.Clips = Clips{Enabled: c.Clips.Any(), Before: c.Clips.Before}
	p.Configured = Settings{Confidence: c.Configured.Confidence}
	return p
}

// SamePlace reports whether the camera can stay open in its frame loop; other settings may have changed.
func (c *Camera) SamePlace(other *Camera) bool { return reflect.DeepEqual(c.placed(), other.placed()) }

// SameCapture reports whether the images of the camera can go on being captured for the other one. Its recorded stream may differ.
func (c *Camera) SameCapture(other *Camera) bool {
	return c.Name == other.Name && c.URI == other.URI && c.Stall == other.Stall &&
		c.MaxPixels == other.MaxPixels && c.Clips.Any() == other.Clips.Any() && c.Clips.Before == other.Clips.Before &&
		c.Privacy.Enabled() == other.Privacy.Enabled() &&
		c.Network.Equal(&other.Network)
}

func (g *Group) names() (all []string) {
	for i := range g.Cameras {
		all = append(all, g.Cameras[i].Name)
	}
	return all
}

// different names the fields in which two structs of one type differ. It does not show values: they may be addresses with passwords.
func different(a, b any) string {
	var names []string
	one, two := reflect.ValueOf(a), reflect.ValueOf(b)
	for i := range one.NumField() {
		if !reflect.DeepEqual(one.Field(i).Interface(), two.Field(i).Interface()) {
			names = append(names, strings.ToLower(one.Type().Field(i).Name))
		}
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}
