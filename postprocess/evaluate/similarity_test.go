package evaluate

import (
	"encoding/json"
	"image"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
)

// labelled is an annotation or a result of testdata/tasks.json.
type labelled struct {
	Image        int `json:"image_id"`
	Category     int `json:"category_id"`
	Crowd        int `json:"iscrowd"`
	Score        float32
	Box          [4]float32 `json:"bbox"`
	Area         float64
	Keypoints    []float64
	Segmentation json.RawMessage
	Oriented     []float32
}

const goldenSide = 96

func (l *labelled) truth(t *testing.T) Truth {
	mask, err := parseSegmentation(l.Segmentation, goldenSide, goldenSide)
	require.NoError(t, err)
	points, err := parseKeypoints(l.Keypoints)
	require.NoError(t, err)
	return Truth{Box: l.box(), Class: l.Category, Crowd: l.Crowd != 0, Mask: mask, Keypoints: points, Oriented: l.turned(), Area: l.Area}
}

func (l *labelled) box() postprocess.Box {
	return postprocess.Box{X1: l.Box[0], Y1: l.Box[1], X2: l.Box[0] + l.Box[2], Y2: l.Box[1] + l.Box[3]}
}

func (l *labelled) turned() *postprocess.OrientedBox {
	if l.Oriented == nil {
		return nil
	}
	o := l.Oriented
	return &postprocess.OrientedBox{X: o[0], Y: o[1], Width: o[2], Height: o[3], Angle: o[4]}
}

// finding has its mask in a grid of one point for each pixel.
func (l *labelled) detection(t *testing.T) postprocess.Detection {
	truth := l.truth(t)
	d := &postprocess.Detail{Keypoints: truth.Keypoints, Oriented: truth.Oriented}
	if truth.Mask != nil {
		d.Mask = &postprocess.Mask{
			Bounds: image.Rect(0, 0, goldenSide, goldenSide), Width: goldenSide, Height: goldenSide, StepX: 1, StepY: 1,
			Logits: make([]float32, goldenSide*goldenSide),
		}
		at := 0
		for i, n := range truth.Mask.Runs() {
			for range n {
				d.Mask.Logits[at%goldenSide*goldenSide+at/goldenSide] = float32(i%2) - 0.5
				at++
			}
		}
	}
	return postprocess.Detection{Box: truth.Box, Class: truth.Class, Score: l.Score, Detail: d}
}

func TestAccuracyOfAllTasksEqualsPycocotools(t *testing.T) {
	var all []struct {
		Task          engine.Task
		MAP, MAP50    float64
		Truths, Found []labelled
	}
	readJSON(t, "tasks.json", &all)
	require.Len(t, all, 3)
	for _, c := range all {
		t.Run(string(c.Task), func(t *testing.T) {
			truths, found := map[int][]Truth{}, map[int][]postprocess.Detection{}
			for i := range c.Truths {
				truths[c.Truths[i].Image] = append(truths[c.Truths[i].Image], c.Truths[i].truth(t))
			}
			for i := range c.Found {
				found[c.Found[i].Image] = append(found[c.Found[i].Image], c.Found[i].detection(t))
			}
			accuracy := Accuracy{Similarity: SimilarityOf(c.Task)}
			for image := range 12 {
				accuracy.Add(truths[image], found[image])
			}
			got := accuracy.Result()
			require.InDelta(t, c.MAP, got.MAP, 1e-3)
			require.InDelta(t, c.MAP50, got.MAP50, 1e-3)
			require.NotEqual(t, ByBox, accuracy.Similarity)
			boxes := Accuracy{}
			for image := range 12 {
				boxes.Add(truths[image], found[image])
			}
			require.NotEqual(t, boxes.Result(), got, "boxes alone would give another figure")
		})
	}
}

func TestPolygonsFillThePixelsOfPycocotools(t *testing.T) {
	// pycocotools.mask.frPyObjects of the same polygons on 12x10 pixels.
	for _, c := range []struct {
		polygons [][]float64
		want     string
	}{
		{[][]float64{{2.3, 1.1, 9.7, 2.4, 6.2, 8.8}}, "o0291N2N1ON2O1Nd0"},
		{[][]float64{{0, 0, 12, 0, 12, 10, 0, 10}}, "0h3"},
		{[][]float64{{1, 1, 5, 1, 5, 5, 1, 5}, {4, 4, 9.5, 4, 9.5, 8.5, 4, 8.5}}, ";4600004OM00000000`0"},
		{[][]float64{{6.14, 8.28, 11.41, 4.09, 1.73, 5.5, 11.38, 0.28, 3.74, 7.54, 5.08, 5.38}}, "\\11105123LMM04OL14OM0706"},
		{[][]float64{{3.96, 2.03, 9.46, 2.62, 3.64, 7.5, 5.44, 2.8, 1.61, 4.85, 4.84, 9.81}}, "h0282LMN3103O1O1Om0"},
		{[][]float64{{11.54, 5.16, 8.7, 1.16, 6.49, 6.23, 3.32, 7.77, 1.93, 6.13, 11.64, 9.17}}, "j01:0b01ZO2N2011N1OK"},
		{[][]float64{{0.48, 5.93, 6.34, 2.6, 5.51, 8.4, 0.75, 5.09, 7.7, 5.11, 10.23, 7.53}}, "?1b00_O060K031MO51101Oh0"},
		{[][]float64{{1.78, 1.91, 9.84, 0.82, 8.2, 8.55, 9.45, 8.61, 2.3, 8.77, 9.63, 4.72}}, "P1150N020M120N100000000OO3Oh0"},
		{[][]float64{{3.29, 2.15, 0.09, 6.39, 7.75, 8.05, 8.64, 9.64, 10.03, 1.51, 3.38, 4.82}}, ">3612NO101N100O2OKg0"},
		{[][]float64{{10.74, 8.27, 5.07, 8.86, 7.07, 6.6, 0.29, 2.46, 8.08, 7.69, 11.03, 2.12}}, "R11g00@21O0OO2N27"},
		{[][]float64{{9.98, 6.91, 0.75, 1.79, 9.91, 3.96, 1.97, 0.06, 4.5, 2.62, 3.8, 4.21}}, "f0190O020G060=0`0"},
	} {
		var text []byte
		text = fill(c.polygons, 12, 10).AppendCounts(text)
		require.Equal(t, c.want, string(text), "%v", c.polygons)
	}
}

func TestSegmentationRefuses(t *testing.T) {
	for text, want := range map[string]string{
		`[[1,2,3]]`:                    "a polygon of 3 numbers",
		`[[1,2,3,4,5,1e7]]`:            "a corner at 1e+07",
		`{"size":[2,3],"counts":[5]}`:  "run lengths of 5 pixels in [2 3] for an image of 3x2",
		`{"size":[2,3],"counts":"!"}`:  "run 0 of the counts is none",
		`{"size":[2,3],"counts":true}`: "counts that are neither numbers nor text",
		`7`:                            "neither polygons nor run lengths",
	} {
		_, err := parseSegmentation(json.RawMessage(text), 3, 2)
		require.EqualError(t, err, want)
	}
	mask, err := parseSegmentation(json.RawMessage(`{"size":[2,3],"counts":[1,2,3]}`), 3, 2)
	require.NoError(t, err)
	require.Equal(t, postprocess.Runs{1, 2, 3}, mask.Runs())
	_, err = parseKeypoints([]float64{1, 2})
	require.EqualError(t, err, "2 numbers are not x, y and visibility")
}
