package engine

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParsePreprocess(t *testing.T) {
	level := 0
	everything := Preprocess{
		Preset: "torchvision", Resize: Crop, ShorterSide: 232, Interpolation: BicubicAntialias, Pad: &level, Colour: BGRColour,
		Range: []float64{0, 255}, Mean: []float64{1, 2, 3.5}, Deviation: []float64{57}, Layout: NHWC,
	}
	for _, test := range []struct {
		text string
		want Preprocess
		err  string
	}{
		{text: ""},
		{text: "# nothing yet\n"},
		{text: "torchvision\n", want: Preprocess{Preset: "torchvision"}},
		{text: "preset: yolox", want: Preprocess{Preset: "yolox"}},
		{
			text: "preset: torchvision\nresize: crop\nshorter_side: 232\ninterpolation: bicubic-antialias\npad: 0\ncolour: bgr\nrange: [0, 255]\nmean: [1, 2, 3.5]\n" +
				"deviation: [57]\nlayout: nhwc\n",
			want: everything,
		},
		{text: "{resize: stretch, range: [-1, 1]}", want: Preprocess{Resize: Stretch, Range: []float64{-1, 1}}},
		{text: "yolo", err: `preprocess preset: "yolo" is not known, did you mean yolox or yolo-nas?`},
		{text: "resize: stretch\nmeans: [1]", err: `preprocess line 2: unknown field "means"`},
		{text: "resize: stretch\npad: many", err: "preprocess line 2: a string is not what belongs here"},
		{text: "pad: -1", err: "preprocess pad: -1 is not a level of gray from 0 to 255"},
		{text: "- crop", err: "preprocess line 1: sequence was used where mapping is expected"},
		{text: "mean: !1 0", err: "preprocess: not YAML that can be read"},
		{text: strings.Repeat("#", 9000), err: "preprocess: over 8192 bytes"},
	} {
		got, err := ParsePreprocess([]byte(test.text))
		if test.err != "" {
			require.EqualError(t, err, test.err, test.text)
			continue
		}
		require.NoError(t, err, test.text)
		assert.Equal(t, test.want, got, test.text)
	}
	// What is written is read again, as YAML and as the JSON of a plan.
	text, err := yaml.Marshal(everything)
	require.NoError(t, err)
	back, err := ParsePreprocess(text)
	require.NoError(t, err)
	assert.Equal(t, everything, back)
	header, err := json.Marshal(Metadata{Preprocess: everything})
	require.NoError(t, err)
	var m Metadata
	require.NoError(t, json.Unmarshal(header, &m))
	assert.Equal(t, everything, m.Preprocess)
	header, err = json.Marshal(Metadata{})
	require.NoError(t, err)
	assert.NotContains(t, string(header), "Preprocess")
}

func FuzzParsePreprocess(f *testing.F) {
	f.Add("preset: torchvision\nmean: [1, 2, 3]")
	f.Add("{resize: crop, shorter_side: 256, pad: 0}")
	f.Add("[[[[")
	f.Add("mean: !1 0")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParsePreprocess([]byte(text))
		if err != nil {
			if err.Error() == "" || strings.Contains(err.Error(), "\n") {
				t.Fatalf("error %q", err)
			}
			return
		}
		for _, kind := range []DataType{Float32, Float16, Uint8} {
			in, err := FindImageInput([]TensorInfo{{Name: "x", Type: kind, Shape: []int64{1, 3, 8, 8}}}, Metadata{Preprocess: p})
			if err != nil {
				continue
			}
			scale, bias := in.Affine()
			for c := range scale {
				if top := 255*scale[c] + bias[c]; !(scale[c] > 0 && top-top == 0) {
					t.Fatalf("%+v makes %v and %v", p, scale, bias)
				}
			}
		}
	})
}

func TestReadPreprocess(t *testing.T) {
	dir := t.TempDir()
	model := filepath.Join(dir, "resnet18.onnx")
	p, err := ReadPreprocess(model)
	require.NoError(t, err)
	assert.True(t, p.IsZero())
	beside := filepath.Join(dir, "resnet18.preprocess.yaml")
	require.NoError(t, os.WriteFile(beside, []byte("preset: torchvision\n"), 0o600))
	for _, name := range []string{"resnet18.onnx", "resnet18.plan", "resnet18"} {
		p, err = ReadPreprocess(filepath.Join(dir, name))
		require.NoError(t, err)
		assert.Equal(t, Preprocess{Preset: "torchvision"}, p, name)
	}
	require.NoError(t, os.WriteFile(beside, []byte("preset: torch\n"), 0o600))
	_, err = ReadPreprocess(model)
	require.ErrorContains(t, err, beside+`: preprocess preset: "torch" is not known, did you mean torchvision?`)
	require.NoError(t, os.WriteFile(beside, make([]byte, 1<<20), 0o600))
	_, err = ReadPreprocess(model)
	require.EqualError(t, err, beside+": preprocess: over 8192 bytes")
}

func TestOverridePreprocess(t *testing.T) {
	level := 7
	file := Preprocess{Preset: "ultralytics", Resize: Stretch, Mean: []float64{1}}
	assert.Equal(t, file, file.Override(Preprocess{}))
	assert.Equal(t, Preprocess{Preset: "yolox"}, file.Override(Preprocess{Preset: "yolox"}), "a preset begins anew")
	by := Preprocess{
		Resize: Crop, ShorterSide: 1, Interpolation: Bilinear, Pad: &level, Colour: BGRColour, Range: []float64{0, 2}, Mean: []float64{3},
		Deviation: []float64{4}, Layout: NHWC,
	}
	want := by
	want.Preset = "ultralytics"
	assert.Equal(t, want, file.Override(by))
	assert.False(t, by.IsZero())
	assert.Equal(t, Preprocess{Preset: "yolox"}, Metadata{Preprocess: file}.Override(Metadata{
		Preprocess: Preprocess{Preset: "yolox"},
	}).Preprocess)
}
