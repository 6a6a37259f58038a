package accuracy

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/engine/onnx"
	"github.com/edge-infer/edge-infer/engine/onnx/testnet"
)

// mapper is a network that takes the levels of an image's colours for the scores of three classes, or their mean for its depth.
func mapper(t *testing.T, task string) string {
	b := testnet.NewBuilder(1)
	x := b.Input("images", 1, 3, 32, 64)
	if task == "depth" {
		b.Output(b.Rename(b.Node("ReduceMean", "/mean", []string{x}, onnx.Ints("axes", 1)), "output0"), 1, 1, 32, 64)
	} else {
		b.Output(b.Rename(b.Node("Identity", "/same", []string{x}), "output0"), 1, 3, 32, 64)
	}
	m := b.Model(13)
	m.SetMetadata("task", task)
	m.SetMetadata("names", "{0: 'red', 1: 'green', 2: 'blue'}")
	data, err := proto.Marshal(m.Proto)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), task+".onnx")
	require.NoError(t, os.WriteFile(path, data, 0o600))
	return path
}

// halved writes an image whose left half is of one colour and whose right half is of another.
func halved(t *testing.T, path string, p interface {
	image.Image
	Set(x, y int, c color.Color)
}, left, right color.Color,
) {
	for y := range p.Bounds().Dy() {
		for x := range p.Bounds().Dx() {
			if c := left; x < p.Bounds().Dx()/2 {
				p.Set(x, y, c)
			} else {
				p.Set(x, y, right)
			}
		}
	}
	var out bytes.Buffer
	require.NoError(t, png.Encode(&out, p))
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, out.Bytes(), 0o600))
}

func measured(t *testing.T, task, data string, change func(*Validate)) (*Report, error) {
	c := config.Default()
	c.Model.Path, c.Engine.Backend = mapper(t, task), "onnxruntime"
	v := &Validate{Data: data, Convention: Published, DepthScale: 1000, MaxDepth: 100, Config: c}
	if change != nil {
		change(v)
	}
	return v.Run(t.Context())
}

func TestValidateSemanticSegmentation(t *testing.T) {
	dir, size := t.TempDir(), image.Rect(0, 0, 64, 32)
	for i := range 2 {
		name := strconv.Itoa(i) + ".png"
		halved(t, filepath.Join(dir, "images", name), image.NewNRGBA(size), color.NRGBA{R: 255, A: 255}, color.NRGBA{B: 255, A: 255})
		// The second one is labelled otherwise on the right.
		halved(t, filepath.Join(dir, "masks", name), image.NewGray(size), color.Gray{0}, color.Gray{uint8(2 - i)})
	}
	report, err := measured(t, "semantic", dir, nil)
	require.NoError(t, err)
	require.InDelta(t, .75, *report.PixelAccuracy, .02) // the edge between colours is drawn softly
	require.InDelta(t, (1+0+.5)/3, *report.MeanIoU, .02)
	require.Len(t, report.Segmentation, 3)
	var text bytes.Buffer
	require.NoError(t, report.Print(&text))
	require.Contains(t, text.String(), "red    2048    1.0000  1.0000")
	report, err = measured(t, "semantic", dir, func(v *Validate) { v.Limit = 1 })
	require.NoError(t, err)
	require.InDelta(t, 1, *report.PixelAccuracy, .02)
	_, err = measured(t, "semantic", dir, func(v *Validate) { v.Predictions = "x.json" })
	require.ErrorContains(t, err, "--predictions is for networks that detect objects")
}

func TestValidateDepth(t *testing.T) {
	dir, size := t.TempDir(), image.Rect(0, 0, 64, 32)
	// The mean of white is 1, that of red a third: labelled as 2 m and 1 m.
	halved(t, filepath.Join(dir, "images", "a.png"), image.NewNRGBA(size), color.White, color.NRGBA{R: 255, A: 255})
	halved(t, filepath.Join(dir, "depth", "a.png"), image.NewGray16(size), color.Gray16{2000}, color.Gray16{1000})
	report, err := measured(t, "depth", dir, func(v *Validate) { v.Config.Detect.DepthUnit = "m" })
	require.NoError(t, err)
	require.InDelta(t, (.5+2./3)/2, report.Depth.AbsRel, .02)
	require.InDelta(t, 0, report.Depth.Delta125, .05)
	report, err = measured(t, "depth", dir, nil) // the median of the labels is 1 m, that of the network a third
	require.NoError(t, err)
	require.InDelta(t, .25, report.Depth.AbsRel, .02)
	require.InDelta(t, .5, report.Depth.Delta125, .05)
	var text bytes.Buffer
	require.NoError(t, report.Print(&text))
	require.Contains(t, text.String(), "of 1 images, depths whose median is made that of the labels")
}

// scaled is the network of mapper with its numbers multiplied by those, one for each class or for the depth.
func scaled(t *testing.T, task string, factors ...float32) string {
	channels := int64(len(factors))
	b := testnet.NewBuilder(1)
	x := b.Input("images", 1, 3, 32, 64)
	if channels == 1 {
		x = b.Node("ReduceMean", "/mean", []string{x}, onnx.Ints("axes", 1))
	}
	y := b.Node("Mul", "/scaled", []string{x, b.Floats("factors", factors, channels, 1, 1)})
	b.Output(b.Rename(y, "output0"), 1, channels, 32, 64)
	m := b.Model(13)
	m.SetMetadata("task", task)
	m.SetMetadata("names", "{0: 'red', 1: 'green', 2: 'blue'}")
	data, err := proto.Marshal(m.Proto)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "scaled.onnx")
	require.NoError(t, os.WriteFile(path, data, 0o600))
	return path
}

// TestValidateOfMapsFitsOpenSizes: also with labels, and the report says in which size the images were taken.
func TestValidateOfMapsFitsOpenSizes(t *testing.T) {
	dir, size := t.TempDir(), image.Rect(0, 0, 640, 360)
	halved(t, filepath.Join(dir, "images", "a.png"), image.NewNRGBA(size), color.NRGBA{R: 255, A: 255}, color.NRGBA{B: 255, A: 255})
	halved(t, filepath.Join(dir, "masks", "a.png"), image.NewGray(size), color.Gray{Y: 0}, color.Gray{Y: 2})
	b := testnet.NewBuilder(1)
	b.Output(b.Rename(b.Node("Identity", "/same", []string{b.Input("images", 1, 3, -1, -1)}), "output0"), 1, 3, -1, -1)
	m := b.Model(13)
	m.SetMetadata("task", "semantic")
	m.SetMetadata("names", "{0: 'red', 1: 'green', 2: 'blue'}")
	data, err := proto.Marshal(m.Proto)
	require.NoError(t, err)
	model := filepath.Join(t.TempDir(), "open.onnx")
	require.NoError(t, os.WriteFile(model, data, 0o600))
	for imgsz, want := range map[string]string{"": "640x384: ", "320": "320x320: "} {
		report, err := measured(t, "semantic", dir, func(v *Validate) { v.Config.Model.Path, v.Config.Model.Size = model, imgsz })
		require.NoError(t, err)
		require.InDelta(t, 1, *report.MeanIoU, .02)
		require.Contains(t, report.Image, want)
		var text bytes.Buffer
		require.NoError(t, report.Print(&text))
		require.Contains(t, text.String(), want)
	}
	report, err := measured(t, "semantic", filepath.Join(dir, "images"), func(v *Validate) {
		v.Config.Model.Path, v.Reference = model, "onnxruntime"
	})
	require.NoError(t, err)
	require.InDelta(t, 1, report.Maps.Same, 1e-9)
	require.Equal(t, report.Image, report.Reference.Image, "without labels, and the reference sees what the candidate sees")
}

func TestValidateMapsAgainstAReference(t *testing.T) {
	dir, size := t.TempDir(), image.Rect(0, 0, 64, 32)
	halved(t, filepath.Join(dir, "a.png"), image.NewNRGBA(size), color.White, color.NRGBA{R: 255, G: 128, A: 255})
	halved(t, filepath.Join(dir, "b.png"), image.NewNRGBA(size), color.NRGBA{B: 255, A: 255}, color.NRGBA{B: 255, A: 255})
	report, err := measured(t, "semantic", dir, func(v *Validate) { v.Reference = "onnxruntime" })
	require.NoError(t, err)
	require.InDelta(t, 1, report.Maps.Same, 1e-9, "the same model is the reference")
	require.Nil(t, report.PixelAccuracy, "there are no labels")
	report, err = measured(t, "semantic", dir, func(v *Validate) {
		v.Reference, v.ReferenceModel = "onnxruntime", scaled(t, "semantic", .25, 1, 1)
	})
	require.NoError(t, err)
	require.Equal(t, 2, report.Maps.Images)
	require.InDelta(t, 0, report.Maps.SameMin, .02, "the reference takes white and orange for green")
	require.InDelta(t, .5, report.Maps.Same, .02)
	var text bytes.Buffer
	require.NoError(t, report.Print(&text))
	require.Contains(t, text.String(), "of the pixels have its class, ")

	report, err = measured(t, "depth", dir, func(v *Validate) {
		v.Reference, v.ReferenceModel = "onnxruntime", scaled(t, "depth", 2)
	})
	require.NoError(t, err)
	require.InDelta(t, 1, report.Maps.MaxError, .02, "white is 1 here and 2 there")
	require.InDelta(t, .5, report.Maps.Relative, .001)
	require.Zero(t, report.Maps.Delta125)
	text.Reset()
	require.NoError(t, report.Print(&text))
	require.Contains(t, text.String(), " at most, in the mean 0.5000 of their size")
	_, err = measured(t, "depth", dir, func(v *Validate) {
		v.Reference, v.ReferenceModel = "onnxruntime", scaled(t, "semantic", 1, 1, 1)
	})
	require.ErrorContains(t, err, "is for semantic, not depth")
	_, err = measured(t, "depth", dir, func(v *Validate) { v.Reference, v.Limits.MatchRate = "onnxruntime", .9 })
	require.ErrorContains(t, err, "the gate is for networks that detect objects")
}

func TestValidateOfLabelsThatDoNotFit(t *testing.T) {
	dir, size := t.TempDir(), image.Rect(0, 0, 64, 32)
	halved(t, filepath.Join(dir, "images", "a.png"), image.NewNRGBA(size), color.White, color.White)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "labels"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "labels", "a.txt"), []byte("0 .5 .5 1 1\n"), 0o600))
	_, err := measured(t, "semantic", dir, nil)
	require.EqualError(t, err, "labels of a network for semantic are a PNG or NPY file for each image, of its name: images/ with masks/, labels/ "+
		"or depth/ beside it")
	halved(t, filepath.Join(dir, "labels", "a.png"), image.NewGray(size), color.White, color.White)
	_, err = measured(t, "semantic", dir, func(v *Validate) { v.Config.Model.Path = "" })
	require.ErrorContains(t, err, "holds labels of maps, but model demo is for detect")
}
