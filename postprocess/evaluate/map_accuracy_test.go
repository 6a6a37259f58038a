package evaluate

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/postprocess"
)

func TestSegmentationByHand(t *testing.T) {
	// Four cells over an image of 4x2: the upper row is of classes 0 and 1, the lower of 2 and none.
	m := &postprocess.DenseMap{Width: 2, Height: 2, StepX: .5, StepY: 1, X: -.25, Classes: []uint8{0, 1, 2, postprocess.NoClass}}
	p := Segmentation{Classes: 3}
	p.Add(m, 4, 2, &LabelMap{Width: 4, Height: 2, Numbers: []float32{
		0, 1, 1, IgnoredClass,
		2, 2, 2, 7,
	}})
	r := p.Result()
	assert.Equal(t, int64(6), r.Pixels)
	assert.InDelta(t, 4./6, r.Accuracy, 1e-9)
	assert.Equal(t, []ClassSegmentation{{0, 1, .5, 1}, {1, 2, .5, .5}, {2, 3, 2. / 3, 2. / 3}}, r.Classes)
	assert.InDelta(t, (.5+.5+2./3)/3, r.MeanIoU, 1e-9)
	// Labels of another size, whose numbers begin at 1; a class that is nowhere labelled does not count.
	p = Segmentation{Classes: 3, FirstClass: 1}
	p.Add(m, 4, 2, &LabelMap{Width: 2, Height: 1, Numbers: []float32{3, 0}})
	assert.Equal(t, SegmentationResult{MeanIoU: 1, Accuracy: 1, Pixels: 1, Classes: []ClassSegmentation{{2, 1, 1, 1}}}, p.Result())
	p.Add(nil, 4, 2, &LabelMap{Width: 1, Height: 1, Numbers: []float32{3}})
	assert.InDelta(t, .5, p.Result().Accuracy, 1e-9)
	assert.Equal(t, SegmentationResult{}, (&Segmentation{Classes: 3}).Result())
}

func TestDepthByHand(t *testing.T) {
	numbers := make([]float32, 16)
	depths := make([]float32, 16)
	for i := range numbers {
		numbers[i], depths[i] = 2000, 4
	}
	numbers[0], numbers[1] = 0, 90000 // not known, and beyond what counts
	depths[15] = 2
	m := &postprocess.DenseMap{Width: 4, Height: 4, StepX: 1, StepY: 1, Depths: depths}
	labels := &LabelMap{Width: 4, Height: 4, Numbers: numbers}
	d := Depth{Scale: 1000, MaxDepth: 80}
	d.Add(m, 4, 4, labels)
	r := d.Result()
	assert.Equal(t, 1, r.Images)
	assert.InDelta(t, 13./14, r.AbsRel, 1e-6) // 13 of 14 are 4 m for 2 m
	assert.InDelta(t, math.Sqrt(13./14*4), r.RMSE, 1e-6)
	assert.InDelta(t, 1./14, r.Delta125, 1e-6)
	d = Depth{Scale: 1000, MaxDepth: 80, Align: true}
	d.Add(m, 4, 4, labels)
	assert.InDelta(t, 13./14, d.Result().Delta125, 1e-6, "twice as far everywhere is the same without a scale")
	assert.InDelta(t, .5/14, d.Result().AbsRel, 1e-6)
	// A missing prediction counts as the largest error; an image with too few labels does not count.
	d = Depth{MaxDepth: 80}
	d.Add(nil, 4, 4, &LabelMap{Width: 5, Height: 2, Numbers: []float32{8, 8, 8, 8, 8, 8, 8, 8, 8, 8}})
	d.Add(m, 4, 4, &LabelMap{Width: 3, Height: 3, Numbers: make([]float32, 9)})
	assert.Equal(t, DepthResult{Images: 1, AbsRel: 9, RMSE: 72}, d.Result())
	assert.Equal(t, DepthResult{}, (&Depth{}).Result())
}

func encoded(t testing.TB, p image.Image) []byte {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, png.Encode(&out, p))
	return out.Bytes()
}

// npy is a header of NumPy before numbers.
func npy(kind, shape string, data ...byte) []byte {
	header := "{'descr': '" + kind + "', 'fortran_order': False, 'shape': " + shape + ", }\n"
	return append(append([]byte("\x93NUMPY\x01\x00"), byte(len(header)), 0), append([]byte(header), data...)...)
}

func TestLabelMapFiles(t *testing.T) {
	palette := image.NewPaletted(image.Rect(0, 0, 2, 1), color.Palette{color.Black, color.White, color.Gray{9}})
	palette.Pix = []uint8{2, 1}
	grey := image.NewGray(image.Rect(0, 0, 2, 1))
	grey.Pix = []uint8{7, 255}
	deep := image.NewGray16(image.Rect(0, 0, 1, 2))
	deep.Pix = []uint8{1, 2, 0, 9}
	for name, c := range map[string]struct {
		data []byte
		want LabelMap
		err  string
	}{
		"palette": {encoded(t, palette), LabelMap{2, 1, []float32{2, 1}}, ""},
		"grey":    {encoded(t, grey), LabelMap{2, 1, []float32{7, 255}}, ""},
		"16 bits": {encoded(t, deep), LabelMap{1, 2, []float32{258, 9}}, ""},
		"colours": {
			encoded(t, image.NewNRGBA(image.Rect(0, 0, 1, 1))),
			LabelMap{},
			"is a colour image; a label map has one number per pixel, grey or with a palette",
		},
		"array": {npy("<f4", "(1, 2)", 0, 0, 0x80, 0x3f, 0, 0, 0, 0x40), LabelMap{2, 1, []float32{1, 2}}, ""},
		"bytes": {npy("|u1", "(2, 1, 2)", 1, 2, 3, 4), LabelMap{2, 2, []float32{1, 2, 3, 4}}, ""},
		"three sizes": {
			npy("|u1", "(2, 2, 2)", 1, 2, 3, 4, 5, 6, 7, 8), LabelMap{}, "has the shape [2 2 2]: a label map has rows and columns",
		},
		"wide integers": {npy("<i4", "(2, 2)", make([]byte, 16)...), LabelMap{}, "holds int32: save it as float32, or as uint8 for classes"},
		"text":          {[]byte("0 .5 .5 1 1"), LabelMap{}, "is neither PNG nor NPY: png: invalid format: not a PNG file"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "x.png")
			require.NoError(t, os.WriteFile(path, c.data, 0o600))
			m, err := ReadLabelMap(path)
			if c.err != "" {
				require.EqualError(t, err, "labels "+path+": "+c.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, &c.want, m)
		})
	}
	_, err := ReadLabelMap(filepath.Join(t.TempDir(), "none.png"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

// FuzzLabelMap reads any bytes: an error or as many numbers as there are pixels.
func FuzzLabelMap(f *testing.F) {
	f.Add(encoded(f, image.NewGray(image.Rect(0, 0, 2, 3))))
	f.Add(encoded(f, image.NewGray16(image.Rect(0, 0, 2, 3))))
	f.Add(npy("<f4", "(1, 2)", 0, 0, 0x80, 0x3f, 0, 0, 0xc0, 0x7f))
	f.Add(npy("|u1", "(3, 1, 0)"))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := parseLabelMap(data)
		if err != nil {
			return
		}
		if m.Width < 1 || m.Height < 1 || len(m.Numbers) != m.Width*m.Height {
			t.Fatalf("%dx%d with %d numbers", m.Width, m.Height, len(m.Numbers))
		}
		(&Segmentation{Classes: 3}).Add(nil, 5, 4, m)
		(&Depth{MaxDepth: 10, Align: true}).Add(nil, 5, 4, m)
	})
}
