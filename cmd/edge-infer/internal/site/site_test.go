package site

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/mqtt/command"
)

func pointer[T any](v T) *T { return &v }

// load reads a configuration from the sources that a run has.
func load(t *testing.T, file string, environment map[string]string, flags ...string) *config.Config {
	t.Helper()
	s := config.Sources{Environment: func(name string) (string, bool) {
		value, set := environment[name]
		return value, set
	}}
	set := pflag.NewFlagSet("run", pflag.ContinueOnError)
	s.Flags(set)
	require.NoError(t, set.Parse(flags))
	s.File = filepath.Join(t.TempDir(), "edge-infer.yaml")
	require.NoError(t, os.WriteFile(s.File, []byte(file), 0o600))
	c, err := s.Load()
	require.NoError(t, err)
	return c
}

func TestPrecedence(t *testing.T) {
	file := func(own, rest string) string { return "cameras: [{name: a, uri: demo" + own + "}]\n" + rest }
	for _, test := range []struct {
		name        string
		file        string
		environment map[string]string
		flags       []string
		remote      command.Kept
		want        Settings
	}{
		{"default", file("", ""), nil, nil, command.Kept{}, Settings{Detect: true, Confidence: 0.25, Interval: 1}},
		{
			"file", file(", interval: 3", "detect: {confidence: 0.3, classes: [gear]}"), nil, nil,
			command.Kept{},
			Settings{Detect: true, Confidence: 0.3, Interval: 3, Classes: []string{"gear"}},
		},
		{
			"environment over file", file("", "detect: {confidence: 0.3}"),
			map[string]string{"EDGE_INFER_CONFIDENCE": "0.4"},
			nil,
			command.Kept{},
			Settings{Detect: true, Confidence: 0.4, Interval: 1},
		},
		{
			"flag over environment", file("", "detect: {confidence: 0.3}"),
			map[string]string{"EDGE_INFER_CONFIDENCE": "0.4"},
			[]string{"--confidence", "0.5", "--classes", "nut"},
			command.Kept{},
			Settings{Detect: true, Confidence: 0.5, Interval: 1, Classes: []string{"nut"}},
		},
		{
			"the camera's own over all", file(", confidence: 0.6", "detect: {confidence: 0.3}"), nil,
			[]string{"--confidence", "0.5"},
			command.Kept{},
			Settings{Detect: true, Confidence: 0.6, Interval: 1},
		},
		{
			"remote over everything", file(", confidence: 0.6, interval: 3", "detect: {classes: [gear]}"), nil,
			[]string{"--confidence", "0.5"},
			command.Kept{Detect: pointer(false), Threshold: pointer(0.9), Interval: pointer(7), Labels: &[]string{"nut"}},
			Settings{Confidence: 0.9, Interval: 7, Classes: []string{"nut"}},
		},
		{
			"remote: all classes", file("", "detect: {classes: [gear]}"), nil, nil,
			command.Kept{Labels: &[]string{}},
			Settings{Detect: true, Confidence: 0.25, Interval: 1},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := load(t, test.file, test.environment, test.flags...)
			s := Resolve(c, map[string]command.Kept{"a": test.remote})
			assert.Equal(t, test.want, s.Camera("a").Settings)
			withdrawn := Resolve(c, nil)
			assert.Equal(t, withdrawn.Camera("a").Settings, s.Camera("a").Configured, "what holds when remote values are withdrawn")
		})
	}
}

// TestRemoteClassesGoBeforeTheFiles: the network must find what is set remotely, although the file selects something else.
func TestRemoteClassesGoBeforeTheFiles(t *testing.T) {
	c := load(t, "cameras: [{name: a, uri: demo}, {name: b, uri: demo}]\ndetect: {classes: [gear]}\n", nil)
	s := Resolve(c, nil)
	require.Len(t, s.Groups, 1)
	assert.Equal(t, []string{"gear"}, s.Groups[0].Decoding.Classes)
	s = Resolve(c, map[string]command.Kept{"b": {Labels: &[]string{"nut"}}})
	assert.Nil(t, s.Groups[0].Decoding.Classes)
	assert.Equal(t, []string{"gear"}, s.Camera("a").Settings.Classes)
	assert.Equal(t, []string{"nut"}, s.Camera("b").Settings.Classes)
}

func TestGroups(t *testing.T) {
	c := config.Default()
	c.Detect.Classes = []string{"gear"}
	c.Inference.Ensemble = []string{"second.onnx"}
	c.Cameras = []config.Camera{
		{Name: "a"},
		{Name: "b", Tile: pointer(320)},
		{Name: "c", Confidence: 0.1},
		{Name: "d", Model: &config.Model{Path: "own.onnx"}},
		{Name: "e", Overlap: pointer(0.5)},
	}
	s := Resolve(c, nil)
	var names [][]string
	for i := range s.Groups {
		names = append(names, s.Groups[i].names())
	}
	assert.Equal(t, [][]string{{"a", "c", "e"}, {"b"}, {"d"}}, names, "an overlap without tiles means nothing")
	assert.InDelta(t, 0.05, s.Groups[0].MinScore, 1e-9)
	assert.InDelta(t, 0.1, s.Groups[1].MinScore, 1e-9)
	assert.Nil(t, s.Groups[2].Decoding.Classes)
	assert.Nil(t, s.Groups[2].Network.Inference.Ensemble)
	assert.True(t, s.Groups[0].Network.SharesEngines(&s.Groups[1].Network))
	assert.False(t, s.Groups[0].Network.SharesEngines(&s.Groups[2].Network))
	c.Detect.Track = false
	s = Resolve(c, map[string]command.Kept{"b": {Threshold: pointer(0.2)}})
	assert.InDelta(t, 0.1, s.Groups[0].MinScore, 1e-9)
	assert.InDelta(t, 0.2, s.Groups[1].MinScore, 1e-9)
}

func TestDiff(t *testing.T) {
	base := func() *config.Config {
		c := config.Default()
		c.Cameras = []config.Camera{{Name: "a", URI: "demo"}, {Name: "b", URI: "demo"}}
		return c
	}
	for _, test := range []struct {
		name   string
		change func(*config.Config)
		remote command.Kept // of a
		action Action
		want   []string
	}{
		{"nothing", func(*config.Config) {}, command.Kept{}, Keep, nil},
		{"interval", func(c *config.Config) { c.Cameras[0].Interval = 4 }, command.Kept{}, Tune, []string{"camera a: tune (interval)"}},
		{
			"configured below a remote value", func(c *config.Config) { c.Cameras[0].Interval = 4 },
			command.Kept{Interval: pointer(9)},
			Tune,
			[]string{"camera a: tune (configured interval)"},
		},
		{
			"IoU", func(c *config.Config) { c.Detect.IoU = 0.6 }, command.Kept{}, Tune, []string{"cameras a, b: tune (iou)"},
		},
		{
			"confidence", func(c *config.Config) { c.Cameras[1].Confidence = 0.5 },
			command.Kept{},
			Rearrange,
			[]string{"camera b: rearrange (configured)"},
		},
		{
			"address", func(c *config.Config) { c.Cameras[1].URI = "demo?seed=2" },
			command.Kept{},
			Rearrange,
			[]string{"camera b: rearrange (uri)"},
		},
		{
			"privacy", func(c *config.Config) { c.Cameras[1].Privacy.Labels = []string{"gear"} },
			command.Kept{},
			Rearrange,
			[]string{"camera b: rearrange (privacy)"},
		},
		{
			"removed", func(c *config.Config) { c.Cameras = c.Cameras[:1] },
			command.Kept{},
			Rearrange,
			[]string{"camera b: rearrange (removed)"},
		},
		{
			"added", func(c *config.Config) { c.Cameras = append(c.Cameras, config.Camera{Name: "c", URI: "demo"}) },
			command.Kept{},
			Rearrange,
			[]string{"camera c: rearrange (new)"},
		},
		{
			"model", func(c *config.Config) { c.Model.Path = "other.onnx" },
			command.Kept{},
			Restart,
			[]string{"cameras a, b: restart (network: model)", "cameras a, b: restart (no camera uses the network)"},
		},
		{
			"tiles of one camera", func(c *config.Config) { c.Cameras[1].Tile = pointer(320) },
			command.Kept{},
			Restart,
			[]string{"cameras b: restart (network: inference)"},
		},
		{
			"weaker boxes", func(c *config.Config) { c.Detect.Confidence = 0.1 },
			command.Kept{},
			Restart,
			[]string{"cameras a, b: restart (scores from 0.05 are needed, opened for 0.1)"},
		},
		{
			"tracking", func(c *config.Config) { c.Detect.Track = false },
			command.Kept{},
			Restart,
			[]string{"all cameras: restart (detect.track)"},
		},
		{
			"cascade", func(c *config.Config) { c.Cascade = []config.Cascade{{Name: "colour"}} },
			command.Kept{},
			Restart,
			[]string{"all cameras: restart (cascade)"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := base()
			test.change(c)
			remote := map[string]command.Kept{"a": test.remote}
			changes := Diff(Resolve(base(), remote), Resolve(c, remote))
			assert.Equal(t, test.action, changes.Action(), "%v", changes)
			if test.want == nil {
				assert.Len(t, changes, 3, "one group and two cameras are kept")
			}
			if test.want != nil {
				assert.Equal(t, test.want, changes.Reasons(test.action))
			}
		})
	}
}

// TestPrivateObjectsAreFound, also where they are not reported; the capture goes on unless the camera's packets may no longer leave.
func TestPrivateObjectsAreFound(t *testing.T) {
	c := config.Default()
	c.Detect.Classes = []string{"gear"}
	c.Detect.Track = false
	c.Cameras = []config.Camera{{Name: "a", URI: "demo"}, {Name: "b", URI: "demo"}}
	open := Resolve(c, nil)
	c.Cameras[1].Privacy.Labels = []string{"person", "gear"}
	private := Resolve(c, nil)
	assert.Equal(t, []string{"gear"}, open.Groups[0].Decoding.Classes)
	assert.Equal(t, []string{"gear", "person"}, private.Groups[0].Decoding.Classes)
	assert.Equal(t, []string{"gear"}, c.Detect.Classes)
	assert.Equal(t, []string{"gear"}, private.Camera("b").Settings.Classes)
	assert.Equal(t, c.Detect.Confidence, open.Groups[0].MinScore)
	assert.Less(t, private.Groups[0].MinScore, c.Detect.Confidence)
	assert.False(t, open.Camera("b").SameCapture(private.Camera("b")))
	c.Cameras[1].Privacy.Labels = []string{"person"}
	other := Resolve(c, nil)
	assert.True(t, other.Camera("b").SameCapture(private.Camera("b")))
}

func TestPredictorsStayOpenForTheLowestScore(t *testing.T) {
	c := config.Default()
	c.Detect.Track = false
	c.Cameras = []config.Camera{{Name: "a"}}
	opened := Resolve(c, nil)
	c.Detect.Confidence = 0.5
	next := Resolve(c, nil).OpenedAs(opened)
	assert.InDelta(t, 0.25, next.Groups[0].MinScore, 0)
	assert.Equal(t, Rearrange, Diff(opened, next).Action())
	c.Detect.Confidence = 0.3
	assert.Equal(t, Rearrange, Diff(next, Resolve(c, nil)).Action(), "down again, but not below what is open")
}

// TestRecordedCameras: a camera keeps its packets from its first recording on, and goes on while continuous recording joins its clips.
func TestRecordedCameras(t *testing.T) {
	resolve := func(own *config.CameraClips) *Camera {
		c := config.Default()
		c.Cameras = []config.Camera{{Name: "a", URI: "demo", Clips: own}}
		s := Resolve(c, nil)
		return s.Camera("a")
	}
	none, clips := resolve(nil), resolve(&config.CameraClips{Enabled: pointer(true)})
	continuous, both := resolve(&config.CameraClips{Continuous: true}), resolve(&config.CameraClips{Enabled: pointer(true), Continuous: true})
	assert.Equal(t, Clips{Continuous: true, Before: 5 * time.Second}, continuous.Clips)
	for _, test := range []struct {
		before, next *Camera
		action       Action
	}{{none, continuous, Rearrange}, {continuous, none, Rearrange}, {clips, both, Tune}, {both, continuous, Tune}} {
		assert.Equal(t, test.action, diffCamera(test.before, test.next).Action)
		assert.Equal(t, test.action == Tune, test.before.SameCapture(test.next))
	}
	assert.Equal(t, "clips", diffCamera(clips, both).Reason)
	another := *both
	another.Record = "rtsp://192.0.2.1/main"
	assert.Equal(t, Change{Camera: "a", Action: Tune, Reason: "record"}, diffCamera(both, &another))
	assert.True(t, both.SameCapture(&another))
}
