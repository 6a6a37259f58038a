package site

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/mqtt/command"
)

// permutations calls f with every order of the cameras.
func permutations(cameras, rest []string, f func([]string)) {
	if len(rest) == 0 {
		f(cameras)
	}
	for i := range rest {
		others := slices.Delete(slices.Clone(rest), i, i+1)
		permutations(append(slices.Clip(cameras), rest[i]), others, f)
	}
}

// Whatever the order of the cameras, each reports the same classes, and the network finds what the cameras report.
func TestOrderOfCamerasChangesNothing(t *testing.T) {
	const model = "model: {path: yolo.onnx, imgsz: 640}\ndetect: {classes: [person, car]}\n"
	for name, test := range map[string]struct {
		cameras []string
		remote  map[string]command.Kept
		classes []string // of the network
	}{
		"no models of their own": {
			[]string{"{name: a, uri: demo}", "{name: b, uri: demo}", "{name: c, uri: demo}"}, nil, []string{"person", "car"},
		},
		"own models": {[]string{
			"{name: a, uri: demo}", "{name: b, uri: demo, model: {path: yolo.onnx, imgsz: 640}}",
			"{name: c, uri: demo, model: {path: yolo.onnx, imgsz: 640x640, layout: auto}, interval: 1}",
			"{name: d, uri: demo, model: {path: yolo.onnx, imgsz: 640, activation: auto, preprocess: ''}, tile: 0}",
		}, nil, nil},
		"privacy": {
			[]string{
				"{name: a, uri: demo, privacy: {labels: [face]}}", "{name: b, uri: demo, privacy: {labels: [plate, person]}}", "{name: c, uri: demo}",
			}, nil, []string{"person", "car", "face", "plate"},
		},
		"set remotely": {
			[]string{"{name: a, uri: demo}", "{name: b, uri: demo, privacy: {labels: [face]}}", "{name: c, uri: demo}"},
			map[string]command.Kept{"b": {Labels: pointer([]string{"dog"})}},
			nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			own := map[string]Camera{}
			permutations(nil, test.cameras, func(order []string) {
				s := Resolve(load(t, model+"cameras: ["+strings.Join(order, ", ")+"]\n", nil), test.remote)
				require.Len(t, s.Groups, 1, order)
				assert.Equal(t, test.classes, s.Groups[0].Decoding.Classes, order)
				for _, camera := range s.Groups[0].Cameras {
					if before, seen := own[camera.Name]; seen {
						assert.Equal(t, before, camera, order)
					}
					own[camera.Name] = camera
				}
			})
		})
	}
}

// A default that is written out is the same as one that is left out.
func TestWrittenDefaultsAreTheSame(t *testing.T) {
	for _, c := range []struct{ one, other string }{
		{"layout: ''", "layout: auto"},
		{"activation: auto", "labels: ''"},
		{"imgsz: 640", "imgsz: 640x640"},
		{"preprocess: torchvision", "preprocess: {preset: torchvision}"},
		{"preprocess: {mean: [0, 0, 0], pad: 114}", "preprocess: {pad: 114, mean: [0.0, 0.0, 0.0]}"},
	} {
		var c2 [2]*config.Config
		for i, own := range []string{c.one, c.other} {
			c2[i] = load(t, "cameras: [{name: a, uri: demo, model: {path: a.onnx, "+own+"}}]\n", nil)
		}
		c2[0].Cameras = append(c2[0].Cameras, c2[1].Cameras[0])
		c2[0].Cameras[1].Name = "b"
		assert.Len(t, Resolve(c2[0], nil).Groups, 1, c)
	}
	s := load(t, "inference: {ensemble: [], weights: []}\ncameras: [{name: a, uri: demo}, {name: b, uri: demo, model: {path: x.onnx}}]\n"+
		"model: {path: x.onnx}\n", nil)
	assert.Len(t, Resolve(s, nil).Groups, 1)
}
